"""Progress reports of a long run, on both stores: only the current attempt renews its lease."""

import time
from typing import Any

import pytest

from app.errors import StillRunning
from app.ledger.orders import (
    Charged,
    ForfeitOrder,
    LeaseRenewed,
    ProgressOrder,
    RecordOrder,
    Settled,
    State,
)
from tests.store.ledgers import Ledger

STEPS = 100


def progress(
    charge: Charged, step: int, *, attempt: int | None = None, lease_seconds: float = 60.0
) -> ProgressOrder:
    attempt = charge.attempt if attempt is None else attempt
    return ProgressOrder(charge.charge_id, attempt, step, STEPS, lease_seconds)


def shown(ledger: Ledger, charge: Charged) -> tuple[int, int] | None:
    return ledger.history.one(charge.charge_id, analyst_id=None).progress


def without_charges(ledger: Ledger) -> dict[str, list[Any]]:
    return {name: rows for name, rows in ledger.everything().items() if name != "charges"}


def test_an_ordinary_question_has_no_progress(ledger: Ledger) -> None:
    assert shown(ledger, ledger.charge(ledger.order())) is None


def test_a_progress_report_is_stored_and_changes_nothing_else(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order())
    before = without_charges(ledger)
    for step in (0, 7, 99):
        assert ledger.settle(progress(charge, step)) == [LeaseRenewed(held=True)]
        assert shown(ledger, charge) == (step, STEPS)
    assert without_charges(ledger) == before
    assert ledger.verified().sound
    (listed,) = ledger.history.asked(analyst_id=ledger.analysts[0].id, after=None, limit=10)
    assert listed.progress == (99, STEPS)
    assert listed.state is State.CHARGED


def test_a_progress_report_renews_the_lease(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order(key="k", lease_seconds=0.0))
    ledger.settle(progress(charge, 1))
    (refused,) = ledger.settle(ledger.order(key="k"))
    assert isinstance(refused, StillRunning)
    assert 1 <= refused.retry_after_seconds <= 60
    ledger.settle(progress(charge, 2, lease_seconds=0.05))
    time.sleep(0.1)
    assert ledger.charge(ledger.order(key="k")).attempt == 2
    assert ledger.spent() == 1


def test_a_progress_report_renews_the_lease_within_one_batch(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order(key="k", lease_seconds=0.0))
    noted, refused = ledger.settle(progress(charge, 1), ledger.order(key="k"))
    assert noted == LeaseRenewed(held=True)
    assert isinstance(refused, StillRunning)
    noted, taken = ledger.settle(progress(charge, 2, lease_seconds=-1), ledger.order(key="k"))
    assert isinstance(taken, Charged)
    assert taken.attempt == 2


def test_an_attempt_that_was_taken_over_can_neither_report_nor_renew(ledger: Ledger) -> None:
    first = ledger.charge(ledger.order(key="k", lease_seconds=0.0))
    ledger.settle(progress(first, 50, lease_seconds=0.0))
    second = ledger.charge(ledger.order(key="k", lease_seconds=0.0))
    ledger.settle(progress(second, 3, lease_seconds=0.0))
    before = ledger.everything()
    for attempt in (0, 1, 3):
        stale = progress(second, 60, attempt=attempt)
        assert ledger.settle(stale) == [LeaseRenewed(held=False)]
    assert ledger.everything() == before
    assert ledger.charge(ledger.order(key="k")).attempt == 3


@pytest.mark.parametrize("state", [State.ANSWERED, State.FORFEITED, State.VOIDED])
def test_a_settled_charge_accepts_no_progress(ledger: Ledger, state: State) -> None:
    order = ledger.order()
    charge = ledger.charge(order)
    ledger.settle(progress(charge, 5))
    match state:
        case State.ANSWERED:
            ledger.settle(RecordOrder(charge.charge_id, 1, "answer"))
        case State.FORFEITED:
            ledger.settle(ForfeitOrder(charge.charge_id, 1))
        case _:
            ledger.settle(ledger.void(order))
    before = ledger.everything()
    assert ledger.settle(progress(charge, 6)) == [LeaseRenewed(held=False)]
    assert ledger.everything() == before


def test_an_unknown_charge_accepts_no_progress(ledger: Ledger) -> None:
    before = ledger.everything()
    assert ledger.settle(ProgressOrder("q_none", 1, 1, 2, 60.0)) == [LeaseRenewed(held=False)]
    assert ledger.everything() == before


def test_an_answer_stays_when_one_batch_holds_progress_and_answer(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order())
    results = ledger.settle(
        progress(charge, 99), RecordOrder(charge.charge_id, 1, "answer"), progress(charge, 100)
    )
    assert results == [
        LeaseRenewed(held=True),
        Settled(charge.charge_id, State.ANSWERED, "answer"),
        LeaseRenewed(held=False),
    ]
    assert shown(ledger, charge) == (99, STEPS)
