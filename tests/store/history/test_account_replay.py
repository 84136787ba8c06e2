"""An account replayed from its entries equals the live account after each of them.

Every currency, with and without cells, on both stores. Hypothesis draws the histories.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from typing_extensions import override

from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, generic_loss, pure_loss
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import PICO
from app.actions.budgets import replay_account
from app.actions.budgets.replay_account import ReplayAccount, ReplayedStates
from app.data.card import Card
from app.errors import AppError, StoreUnavailable
from app.ledger.account import EVERYBODY, Account
from app.ledger.account_history.replay import Step
from app.ledger.balance import CellIndices
from app.ledger.orders import Charged, ChargeOrder
from app.ledger.records import AccountEntries
from app.store.administration import Administration
from app.store.connect import Database
from app.store.history.account_entries import SqlAccountEntries
from app.store.rollback import reconcile
from tests.effort import examples
from tests.store.ledgers import CARD, CELLED, TENTH, Ledger, make_ledger

WISH = GrantTerms(epsilon=Decimal(3), delta=Decimal("1e-6"))
CURRENCIES = ["pure", "approximate", "zcdp", "renyi", "gdp"]
CARDS = {
    "no cells": CARD,
    "cells": Card.model_validate(CELLED),
    "pairs of cells": Card.model_validate(CELLED | {"neighbours": "replace_one", "rows": 100}),
}
LOSSES: list[Loss] = [
    pure_loss(TENTH),
    pure_loss(3 * TENTH + 7),
    generic_loss(TENTH // 3, 10**9),
    gaussian_loss(Fraction(30), (TENTH, 10**9)),
]


@dataclass(frozen=True)
class Charge:
    who: int
    loss: int
    cells: CellIndices


@dataclass(frozen=True)
class Void:
    which: int


@dataclass(frozen=True)
class Book:
    losses: tuple[int, ...]


@dataclass(frozen=True)
class Grant:
    who: int | None
    tenths: int
    currency: str | None  # None: unchanged


cells = st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple)
charges = st.builds(Charge, who=st.integers(0, 1), loss=st.integers(0, 3), cells=cells)
changes = st.one_of(
    charges,
    charges,
    st.builds(Void, which=st.integers(0, 5)),
    st.builds(Book, st.lists(st.integers(0, 2), min_size=1, max_size=2).map(tuple)),
    st.builds(
        Grant,
        who=st.sampled_from([None, 0]),
        tenths=st.integers(0, 30),
        currency=st.sampled_from([None, None, *CURRENCIES]),
    ),
)


class Replayed:
    """A ledger that notes each account after every entry that changes it."""

    def __init__(self, database: Database, currency: str, cells_of: str) -> None:
        self.ledger = make_ledger(database, card=CARDS[cells_of])
        self.has_cells = cells_of != "no cells"
        self.noted: dict[str, list[Account]] = {}
        self.currencies = dict.fromkeys(self.names, "pure")
        self._open: list[ChargeOrder] = []
        self.note()
        for who in (None, 0):
            self.change(Grant(who, 20, currency))

    @property
    def names(self) -> list[str]:
        return [EVERYBODY, *(analyst.name for analyst in self.ledger.analysts)]

    def note(self) -> None:
        for name in self.names:
            account, earlier = self.ledger.account(name), self.noted.setdefault(name, [])
            if not earlier or earlier[-1].version != account.version:
                earlier.append(account)

    def change(self, change: Charge | Void | Book | Grant) -> None:
        with contextlib.suppress(AppError):  # refused: nothing changed, and there is no entry
            self._change(change)
        self.note()

    def _change(self, change: Charge | Void | Book | Grant) -> None:
        ledger = self.ledger
        match change:
            case Charge():
                pinned = change.cells if self.has_cells else None
                order = ledger.order(who=change.who, loss=LOSSES[change.loss], cells=pinned)
                (result,) = ledger.settle(order)
                if isinstance(result, Charged):
                    self._open.append(order)
            case Void() if self._open:
                ledger.settle(ledger.void(self._open.pop(change.which % len(self._open))))
            case Book():
                ledger.budgets.book(
                    "admin",
                    ledger.dataset,
                    (EVERYBODY, ledger.analysts[0].name.lower()),
                    losses=[LOSSES[index] for index in change.losses],
                    record={},
                    reason=None,
                    request=None,
                    body="",
                )
            case Grant():
                name = EVERYBODY if change.who is None else ledger.analysts[change.who].name
                currency = change.currency or self.currencies[name]
                delta = Decimal(0) if currency == "pure" else Decimal("1e-6")
                wish = GrantTerms(epsilon=Decimal(change.tenths + 1) / 10, delta=delta)
                ledger.grant(name, tenths=None, currency=currency, wish=wish)
                self.currencies[name] = currency


def figures(account: Account) -> dict[str, Any]:
    return {
        "currency": account.currency,
        "limit": account.limit,
        "used": account.used,
        **account.balances(),
        "balance": account.balance,
    }


def all_steps(replay: ReplayAccount, live: Account, limit: int) -> Iterator[Step]:
    after, complete = 0, False
    while not complete:
        page = replay(live, after=after, limit=limit)
        assert len(page.steps) <= limit
        yield from page.steps
        after, complete = page.after, page.complete


@pytest.mark.parametrize("cells_of", list(CARDS))
@pytest.mark.parametrize("currency", CURRENCIES)
@examples(
    6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(changes, min_size=1, max_size=14), st.integers(1, 5))
def test_each_replayed_state_is_the_live_account_of_that_moment(
    database: Database,
    currency: str,
    cells_of: str,
    history: list[Charge | Void | Book | Grant],
    limit: int,
) -> None:
    run = Replayed(database, currency, cells_of)
    try:
        for change in history:
            run.change(change)
        entries = SqlAccountEntries(database)
        for name in run.names:
            live = run.ledger.account(name)
            steps = list(all_steps(ReplayAccount(entries), live, limit))
            assert [figures(step.account) for step in steps] == [
                figures(account) for account in run.noted[name]
            ]
            assert figures(steps[-1].account) == figures(live)
    finally:
        run.ledger.close()


def test_a_cursor_stays_valid_while_entries_are_added_and_after_the_cache_is_lost(
    ledger: Ledger,
) -> None:
    entries, live = SqlAccountEntries(ledger.database), ledger.account(EVERYBODY)
    for _ in range(4):
        ledger.charge(ledger.order())
    first = ReplayAccount(entries)(live, after=0, limit=2)
    assert not first.complete
    for who in (0, 1):
        ledger.charge(ledger.order(who=who))
    second = ReplayAccount(entries)(live, after=first.after, limit=200)  # a new process
    assert second.complete
    spent = [step.account.balance.common[0] // TENTH for step in (*first.steps, *second.steps)]
    assert spent == [0, 1, 2, 3, 4, 5, 6]


def test_since_leaves_out_earlier_rows_and_still_counts_them(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.charge(ledger.order())
    replay, live = ReplayAccount(SqlAccountEntries(ledger.database)), ledger.account(EVERYBODY)
    everything = replay(live, after=0, limit=200).steps
    page = replay(live, after=0, limit=200, since=everything[-1].entry.at)
    assert page.complete
    assert page.steps == [s for s in everything if s.entry.at >= everything[-1].entry.at]
    assert page.steps[-1].account.balance.common[0] == 3 * TENTH
    assert replay(live, after=0, limit=200, since=everything[-1].entry.at + 1).steps == []


def test_a_later_since_begins_at_a_cached_state(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_account, "CHUNK", 2)
    for _ in range(8):
        ledger.charge(ledger.order())
    live = ledger.account(EVERYBODY)
    replay = ReplayAccount(SqlAccountEntries(ledger.database))
    everything = list(all_steps(replay, live, 2))
    monkeypatch.setattr(replay_account, "READS_MAX", 2)
    for index in range(5, 9):
        page = replay(live, after=0, limit=3, since=everything[index].entry.at)
        assert page.steps[0] == everything[index]


def test_one_call_reads_a_limited_number_of_entries_and_the_next_goes_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_account, "CHUNK", 2)
    monkeypatch.setattr(replay_account, "READS_MAX", 2)
    for _ in range(9):
        ledger.charge(ledger.order())
    replay, live = ReplayAccount(SqlAccountEntries(ledger.database)), ledger.account(EVERYBODY)
    last = ledger.history.entries(book_id=live.book_id, after=(0, "", 0), limit=100)[-1]
    after, calls = last.seq - 1, 0
    steps: list[Step] = []
    while not steps:
        page = replay(live, after=after, limit=50)
        assert page.after == after or page.complete
        steps, calls = page.steps, calls + 1
    assert calls == 3  # ten entries of this account, four a call
    assert [step.account.balance.common[0] // TENTH for step in steps] == [9]
    assert replay(live, after=after, limit=50).steps == steps


def test_cached_states_of_another_chain_are_not_continued(ledger: Ledger) -> None:
    replay, live = ReplayAccount(SqlAccountEntries(ledger.database)), ledger.account(EVERYBODY)
    ledger.charge(ledger.order())
    end = replay(live, after=0, limit=200)
    state = replay.states.latest(live.id, end.after)
    assert state is not None
    wrong = live._replace(balance=live.balance._replace(common=(77, 0)))
    replay.states.put(live.id, state._replace(head="0" * 64, account=wrong))
    ledger.charge(ledger.order())
    (step,) = replay(live, after=end.after, limit=200).steps
    assert step.account.balance.common[0] == 2 * TENTH


def test_the_cache_drops_the_least_recently_used_states(ledger: Ledger) -> None:
    for _ in range(5):
        ledger.charge(ledger.order())
    live = ledger.account(EVERYBODY)
    replay = ReplayAccount(SqlAccountEntries(ledger.database), ReplayedStates(weight_max=2))
    steps = list(all_steps(replay, live, 1))
    sequences = [step.entry.seq for step in steps]
    assert replay.states.latest(live.id, sequences[-3]) is None
    kept = replay.states.latest(live.id, sequences[-2])
    assert kept is not None
    assert kept.seq == sequences[-2]


def test_spends_booked_after_a_restore_are_replayed(ledger_with_cells: Ledger) -> None:
    ledger_with_cells.charge(ledger_with_cells.order(cells=(1,)))
    account = ledger_with_cells.account(EVERYBODY)
    spent = reconcile._Lost(
        holder=EVERYBODY,
        shown=EVERYBODY,
        currency="zcdp",
        terms=None,
        persons_may_move=False,
        common=(TENTH, 0, TENTH),
        cells={1: (TENTH, 0, 7)},
    )
    with Administration(ledger_with_cells.database).change() as change:
        reconcile._book_lost(
            change, "admin", "a test", account.book_id, [], {}, {EVERYBODY: [spent]}
        )
    ledger_with_cells.grant(EVERYBODY, tenths=None, currency="zcdp", wish=WISH)
    live = ledger_with_cells.account(EVERYBODY)
    steps = list(all_steps(ReplayAccount(SqlAccountEntries(ledger_with_cells.database)), live, 2))
    assert [step.entry.kind for step in steps] == ["grant", "charge", "reconciled", "grant"]
    assert [step.account.currency for step in steps] == ["pure", "pure", "zcdp", "zcdp"]
    assert figures(steps[-1].account) == figures(live)
    assert live.balance.cells[1][2] > 7


class Forged(SqlAccountEntries):
    """Entries whose last one was changed to something that is no loss."""

    @override
    def after(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
        read = super().after(account, seq, limit=limit)
        text = json.loads(read.entries[-1].text)
        text["body"]["epsilon"] = "a secret"
        read.entries[-1] = read.entries[-1]._replace(text=json.dumps(text))
        return read


def test_an_entry_that_cannot_be_read_is_reported_and_nothing_of_it_is_shown(
    ledger: Ledger,
) -> None:
    ledger.charge(ledger.order())
    replay = ReplayAccount(Forged(ledger.database))
    with pytest.raises(StoreUnavailable) as refused:
        replay(ledger.account(EVERYBODY), after=0, limit=200)
    assert "secret" not in refused.value.detail


def test_a_name_inside_another_entry_is_no_touch(ledger: Ledger) -> None:
    """The database looks for the name as text; the replay decides by the accounts listed."""
    name = ledger.analysts[0].name
    ledger.charge(ledger.order(who=1, record={"query": "count", "column": name.lower()}))
    replay, live = ReplayAccount(SqlAccountEntries(ledger.database)), ledger.account(name)
    (granted,) = replay(live, after=0, limit=200).steps
    assert granted.entry.kind == "grant"
    assert granted.account.terms.epsilon == PICO
