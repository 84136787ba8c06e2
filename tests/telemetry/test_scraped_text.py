"""The text of a scrape when the ledger is gone, or has more budgets than are exported."""

from decimal import Decimal

import pytest

from app.accounting import COMPOSITION_RULES
from app.accounting.rules.terms import GrantTerms
from app.errors import StoreUnavailable
from app.ledger.account import Account
from app.ledger.balance import Balance
from app.ports.telemetry import LedgerFigures
from app.telemetry.counters import Counters, CountLayout, Workers
from app.telemetry.metrics import Build, ScrapedText
from app.telemetry.observer import count_names
from app.telemetry.worker_state import STATE
from tests.end_to_end.telemetry.exposition import samples, value

RULE = COMPOSITION_RULES["pure"]
TERMS = RULE.freeze(GrantTerms(epsilon=Decimal(1), delta=Decimal(0)))


class OneLedger:
    """A ledger with this many budgets; a read returns as many as are allowed."""

    def __init__(self, budgets: int, *, here: bool = True) -> None:
        self._budgets = budgets
        self._here = here

    def read(self, accounts_max: int) -> LedgerFigures:
        if not self._here:
            raise StoreUnavailable("The ledger cannot be reached; try again.")
        accounts = tuple(
            ("census", Account("b", f"h{i}", f"H{i}", "pure", TERMS, Balance(RULE.nothing), 1))
            for i in range(min(accounts_max, self._budgets))
        )
        return LedgerFigures(False, 7, 1_000_000, self._budgets, accounts)


def scraped(ledger: OneLedger, *, stopped: bool = False) -> str:
    layout = CountLayout(STATE, count_names([("/v1/me", "GET")], ["no-grant"], ["count"]))
    state, counts = Counters(layout).read()
    state["stopped"] = int(stopped)
    workers = Workers({1: state}, counts)
    build = Build("0.1.0", "3.11", "sqlite")
    return ScrapedText(build, ledger, lambda: workers, lambda: None, accounts_max=3).text().decode()


def test_without_the_ledger_the_rest_is_still_shown() -> None:
    text = scraped(OneLedger(2, here=False))
    assert value(text, "bursar_ledger_up") == 0
    assert value(text, "bursar_workers") == 1
    assert not any(name.startswith("bursar_budget_") for name, _, _ in samples(text))


@pytest.mark.parametrize(("budgets", "left_out"), [(2, 0), (3, 0), (5, 2)])
def test_budgets_that_are_left_out_are_counted(budgets: int, left_out: int) -> None:
    text = scraped(OneLedger(budgets))
    assert value(text, "bursar_budgets") == budgets
    assert value(text, "bursar_budgets_left_out") == left_out
    shown = [name for name, _, _ in samples(text) if name == "bursar_budget_used_ratio"]
    assert len(shown) == budgets - left_out


def test_a_worker_that_misses_its_own_commits_shows_charging_as_stopped() -> None:
    assert value(scraped(OneLedger(1)), "bursar_charging_stopped") == 0
    assert value(scraped(OneLedger(1), stopped=True), "bursar_charging_stopped") == 1


def test_counts_that_alerts_watch_are_shown_from_the_start() -> None:
    """A count that appears with its first event has no increase that an alert could see."""
    text = scraped(OneLedger(1))
    assert value(text, "bursar_refusals_total", type="no-grant") == 0
    assert value(text, "bursar_overruns_total", kind="count") == 0
    assert value(text, "bursar_forfeits_total") == 0
