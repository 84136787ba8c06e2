"""Random histories on both stores: every sequence of orders and batches keeps spends correct.

Hypothesis draws the histories and prints the failing one. Each has its own dataset and people.
"""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.errors import AppError
from app.ledger.account import EVERYBODY
from app.ledger.orders import (
    Charged,
    ChargeOrder,
    ForfeitOrder,
    PreparedAnswer,
    RecordOrder,
    Settled,
    State,
    WriterOrder,
)
from app.store.connect import Database
from tests.effort import examples
from tests.store.ledgers import TENTH, Ledger, make_ledger

PER_EXAMPLE = examples(
    25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Charge:
    who: int
    key: int
    tenths: int
    lease: float
    fresh: bool
    at_once: bool = False


@dataclass(frozen=True)
class Settle:
    deed: Literal["record", "forfeit", "void"]
    which: int
    attempt: int


@dataclass(frozen=True)
class Grant:
    who: int | None
    tenths: int


charges = st.builds(
    Charge,
    who=st.integers(0, 1),
    key=st.integers(0, 5),
    tenths=st.sampled_from([1, 2, 5]),
    lease=st.sampled_from([0.0, 60.0]),
    fresh=st.booleans(),
    at_once=st.booleans(),
)
settlements = st.builds(
    Settle,
    deed=st.sampled_from(["record", "forfeit", "void"]),
    which=st.integers(0, 9),
    attempt=st.sampled_from([1, 1, 1, 2, 3]),
)
grants = st.builds(Grant, who=st.sampled_from([None, 0, 1]), tenths=st.integers(0, 30))
batches = st.lists(
    st.lists(charges | settlements, min_size=1, max_size=6) | grants, min_size=1, max_size=7
)


class History:
    """Runner of one history on a ledger, which remembers every order."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.orders: list[ChargeOrder] = []
        self.answers: dict[str, tuple[State, str | None]] = {}
        self.limits = {EVERYBODY: 20, 0: 10, 1: 10}

    def orders_of(self, batch: list[Charge | Settle]) -> list[WriterOrder]:
        made: list[WriterOrder] = []
        known = list(self.orders)
        for item in batch:
            if isinstance(item, Charge):
                order = self.ledger.order(
                    who=item.who,
                    key=f"{self.ledger.dataset.id} {item.key}",
                    tenths=item.tenths,
                    lease_seconds=item.lease,
                    fresh=item.fresh,
                    at_once=PreparedAnswer(lambda _: "an answer at once", 0.0)
                    if item.at_once
                    else None,
                )
                self.orders.append(order)
                made.append(order)
            elif known:
                order = known[item.which % len(known)]
                match item.deed:
                    case "record":
                        answer = f"answer {len(made)} of attempt {item.attempt}"
                        made.append(RecordOrder(order.charge_id, item.attempt, answer))
                    case "forfeit":
                        made.append(ForfeitOrder(order.charge_id, item.attempt))
                    case "void":
                        made.append(self.ledger.void(order, item.attempt))
        return made

    def grant(self, grant: Grant) -> None:
        ledger = self.ledger
        name = EVERYBODY if grant.who is None else ledger.analysts[grant.who].name
        ledger.grant(name, tenths=grant.tenths)

    def check(self, before: dict[str, int]) -> None:
        """Check the invariants that hold between any two batches."""
        ledger = self.ledger
        report = ledger.verified()
        assert report.sound, report.findings
        rows = [
            asked
            for analyst in ledger.analysts
            for asked in ledger.history.asked(analyst_id=analyst.id, after=None, limit=1000)
        ]
        paid = {
            analyst.name: sum(
                row.epsilon
                for row in rows
                if row.analyst == analyst.name and row.state is not State.VOIDED
            )
            for analyst in ledger.analysts
        }
        paid[EVERYBODY] = sum(paid.values())
        for name, units in paid.items():
            account = ledger.account(name)
            assert account.balance.common == (units, 0)
            assert units <= max(account.terms.limits[0], before[name])
        for row in rows:
            earlier, answer = self.answers.get(row.id, (State.CHARGED, None))
            assert earlier is State.CHARGED or (earlier, answer) == (row.state, row.answer)
            assert (row.state is State.ANSWERED) == (row.answer is not None)
            self.answers[row.id] = (row.state, row.answer)

    def spends(self) -> dict[str, int]:
        names = [EVERYBODY, *(analyst.name for analyst in self.ledger.analysts)]
        return {name: self.ledger.account(name).balance.common[0] for name in names}


@pytest.mark.invariant("I3")
@PER_EXAMPLE
@given(batches)
def test_spends_are_the_sum_of_the_entries_and_within_the_limits_after_every_batch(
    database: Database, history: list[list[Charge | Settle] | Grant]
) -> None:
    ledger = make_ledger(database)
    run = History(ledger)
    try:
        for batch in history:
            before = run.spends()
            if isinstance(batch, Grant):
                run.grant(batch)
            else:
                ledger.settle(*run.orders_of(batch))
            run.check(before)
    finally:
        ledger.close()


def plain(result: object, names: dict[str, int]) -> Any:
    """A result without identifiers and chain hashes, which differ between two runs."""
    match result:
        case Charged():
            return "charged", names[result.charge_id], result.attempt
        case Settled():
            return (
                result.state,
                names[result.charge_id],
                result.answer,
                result.replayed,
                result.reused,
            )
        case AppError():
            return type(result)
        case other:
            return other


@PER_EXAMPLE
@given(batches)
def test_a_batch_decides_as_if_its_orders_came_one_by_one(
    database: Database, history: list[list[Charge | Settle] | Grant]
) -> None:
    """An answer is reused only by later batches, so every question here is fresh."""
    runs = [History(make_ledger(database)) for _ in range(2)]
    try:
        for batch in history:
            if isinstance(batch, Grant):
                for run in runs:
                    run.grant(batch)
                continue
            fresh = [
                Charge(i.who, i.key, i.tenths, i.lease, True, i.at_once)
                if isinstance(i, Charge)
                else i
                for i in batch
            ]
            together, one_by_one = (run.orders_of(fresh) for run in runs)
            names = [{o.charge_id: i for i, o in enumerate(run.orders)} for run in runs]
            results = runs[0].ledger.settle(*together)
            singles = [r for order in one_by_one for r in runs[1].ledger.settle(order)]
            for order, result, single in zip(together, results, singles, strict=True):
                if isinstance(order, ChargeOrder):  # others return the state stored at the end
                    assert plain(result, names[0]) == plain(single, names[1])
            stored = [
                [
                    (names[i][o.charge_id], run.ledger.state(o))
                    for o in run.orders
                    if o.charge_id in known(run)
                ]
                for i, run in enumerate(runs)
            ]
            assert stored[0] == stored[1]
            assert [spend for _, spend in sorted_spends(runs[0])] == [
                spend for _, spend in sorted_spends(runs[1])
            ]
    finally:
        for run in runs:
            run.ledger.close()


def known(run: History) -> set[str]:
    return {
        asked.id
        for analyst in run.ledger.analysts
        for asked in run.ledger.history.asked(analyst_id=analyst.id, after=None, limit=1000)
    }


def sorted_spends(run: History) -> list[tuple[str, int]]:
    return sorted((name, units // TENTH) for name, units in run.spends().items())
