"""An account rewound from its present balance shows the same rows as a replay, newest first.

Every currency, with and without cells, on both stores. Hypothesis draws the histories.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from typing_extensions import override

from app.actions.budgets import replay_account, rewind_account
from app.actions.budgets.replay_account import ReplayAccount
from app.actions.budgets.rewind_account import RewindAccount
from app.errors import StoreUnavailable
from app.ledger.account import EVERYBODY, Account
from app.ledger.account_history.replay import Step
from app.ledger.records import AccountEntries
from app.store.connect import Database
from app.store.history.account_entries import SqlAccountEntries
from tests.effort import examples
from tests.store.history.test_account_replay import (
    CARDS,
    CURRENCIES,
    LOSSES,
    WISH,
    Book,
    Charge,
    Grant,
    Replayed,
    Void,
    all_steps,
    changes,
    figures,
)
from tests.store.ledgers import TENTH, Ledger


def rewinding(database: Database) -> RewindAccount:
    entries = SqlAccountEntries(database)
    return RewindAccount(entries, ReplayAccount(entries))


def all_steps_back(
    rewind: RewindAccount, live: Account, limit: int, since: int | None = None
) -> Iterator[Step]:
    before, complete = None, False
    while not complete:
        page = rewind(live, before=before, limit=limit, since=since)
        assert len(page.steps) <= limit
        yield from page.steps
        before, complete = page.before, page.complete


def shown(step: Step) -> tuple[Any, ...]:
    """A row without cells that cost nothing: a rewind cannot know of them, and nobody sees them."""
    account = step.account
    cells = {cell: spend for cell, spend in account.balance.cells.items() if any(spend)}
    balance = account.balance._replace(cells=cells)
    return step.entry, figures(account._replace(balance=balance)) | {"used": account.used}


@pytest.mark.parametrize("cells_of", list(CARDS))
@pytest.mark.parametrize("currency", CURRENCIES)
@examples(
    6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(changes, min_size=1, max_size=14), st.integers(1, 5))
def test_a_rewind_shows_the_rows_of_a_replay_in_reverse(
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
        for name in run.names:
            live = run.ledger.account(name)
            forward = list(all_steps(ReplayAccount(SqlAccountEntries(database)), live, 200))
            back = list(all_steps_back(rewinding(database), live, limit))
            assert [shown(step) for step in back] == [shown(step) for step in forward[::-1]]
    finally:
        run.ledger.close()


def charged_with_infinite_epsilon_in_between(ledger: Ledger) -> Account:
    """Gaussian noise has no pure epsilon: the pure sum is infinite from its charge on."""
    name = ledger.analysts[0].name
    for holder in (EVERYBODY, name):
        ledger.grant(holder, tenths=None, currency="zcdp", wish=WISH)
    for index in (0, 1, 0, 3, 0, 0, 3, 0):
        ledger.charge(ledger.order(loss=LOSSES[index]))
    return ledger.account(name)


def test_the_finite_sum_before_an_infinite_charge_is_shown_exactly(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = charged_with_infinite_epsilon_in_between(ledger)
    entries = SqlAccountEntries(ledger.database)
    forward = [shown(step) for step in all_steps(ReplayAccount(entries), live, 200)]
    monkeypatch.setattr(replay_account, "READS_MAX", 1)
    monkeypatch.setattr(replay_account, "CHUNK", 2)  # so that the replay needs several calls
    monkeypatch.setattr(rewind_account, "CHUNK", 2)
    back = [shown(step) for step in all_steps_back(rewinding(ledger.database), live, 3)]
    assert back == forward[::-1]


def test_the_newest_rows_need_no_older_entry(ledger: Ledger) -> None:
    live = charged_with_infinite_epsilon_in_between(ledger)
    calls: list[int] = []

    class Counted(SqlAccountEntries):
        @override
        def before(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
            read = super().before(account, seq, limit=limit)
            calls.append(len(read.entries))
            return read

        @override
        def after(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
            raise AssertionError("the newest rows need no replay")

    counted = Counted(ledger.database)
    rewind = RewindAccount(counted, ReplayAccount(counted))
    page = rewind(live, before=None, limit=2)
    assert [step.entry.kind for step in page.steps] == ["charge", "charge"]
    assert sum(calls) == 3
    assert figures(page.steps[0].account) == figures(ledger.account(live.holder))


def test_since_ends_the_rows_at_this_time(ledger: Ledger) -> None:
    for _ in range(4):
        ledger.charge(ledger.order())
    live, rewind = ledger.account(EVERYBODY), rewinding(ledger.database)
    everything = list(all_steps_back(rewind, live, 200))
    since = everything[1].entry.at
    wanted = [step for step in everything if step.entry.at >= since]
    assert list(all_steps_back(rewind, live, 1, since)) == wanted
    assert rewind(live, before=None, limit=1, since=everything[0].entry.at + 1).steps == []


def test_a_cursor_stays_valid_while_entries_are_added(ledger: Ledger) -> None:
    for _ in range(4):
        ledger.charge(ledger.order())
    live, rewind = ledger.account(EVERYBODY), rewinding(ledger.database)
    first = rewind(live, before=None, limit=2)
    ledger.charge(ledger.order())
    for later in (rewind, rewinding(ledger.database)):  # with and without its cached states
        second = later(live, before=first.before, limit=200)
        spent = [s.account.balance.common[0] // TENTH for s in (*first.steps, *second.steps)]
        assert spent == [4, 3, 2, 1, 0]


def test_one_call_reads_a_limited_number_of_entries_and_the_next_goes_on_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewind_account, "CHUNK", 2)
    monkeypatch.setattr(rewind_account, "READS_MAX", 2)
    for _ in range(9):
        ledger.charge(ledger.order())
    live, rewind = ledger.account(EVERYBODY), rewinding(ledger.database)
    (first,) = rewinding(ledger.database)(live, before=None, limit=1).steps
    before, calls = first.entry.seq - 6, 0
    steps: list[Step] = []
    while not steps:
        page = rewind(live, before=before, limit=1)
        assert page.before == before or page.steps
        steps, calls = page.steps, calls + 1
    assert calls > 1
    assert [step.account.balance.common[0] // TENTH for step in steps] == [2]


def test_cached_states_of_another_chain_are_not_rewound(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.charge(ledger.order())
    live, rewind = ledger.account(EVERYBODY), rewinding(ledger.database)
    first = rewind(live, before=None, limit=1)
    state = rewind.states.earliest(live.id, first.before - 1)
    assert state is not None
    wrong = live._replace(balance=live.balance._replace(common=(77 * TENTH, 0)))
    rewind.states.put(live.id, state._replace(head="0" * 64, account=wrong))
    second = rewind(live, before=first.before, limit=1)
    assert second.steps[0].account.balance.common[0] == 2 * TENTH


def test_a_name_inside_another_entry_is_no_step_back(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    ledger.charge(ledger.order(who=1, record={"query": "count", "column": name.lower()}))
    (granted,) = all_steps_back(rewinding(ledger.database), ledger.account(name), 200)
    assert granted.entry.kind == "grant"


def test_a_balance_below_its_charges_is_reported_and_not_shown(ledger: Ledger) -> None:
    ledger.charge(ledger.order())
    live = ledger.account(EVERYBODY)

    class TooSmall(SqlAccountEntries):
        @override
        def present(self, account: Account) -> tuple[Account, int]:
            present, seq = super().present(account)
            return present._replace(balance=present.balance._replace(common=(1, 0))), seq

    entries = TooSmall(ledger.database)
    with pytest.raises(StoreUnavailable):
        RewindAccount(entries, ReplayAccount(entries))(live, before=None, limit=9)
