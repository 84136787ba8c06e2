"""Cancelling, on both stores: it marks the running attempt, and answer or cancellation wins.

The time grid decides which one wins, not the instant at which the work was done.
"""

import asyncio
import time
from typing import Any

import pytest
from sqlalchemy import select

from app.errors import NotFound, StillRunning
from app.ledger.leaving import Leaving
from app.ledger.orders import (
    Cancelling,
    CancelOrder,
    Charged,
    ForfeitOrder,
    LeaseRenewed,
    ProgressOrder,
    RecordOrder,
    Settled,
    State,
    WriterOrder,
)
from app.store import tables
from app.store.writer.charge_decisions import ChargeDecisions
from app.store.writer.writer import Writer
from tests.store.ledgers import Ledger, execute

GRID = 60.0  # no test lasts until the second grid point


def cancel(charge: Charged, analyst_id: str | None = None) -> CancelOrder:
    return CancelOrder(charge.charge_id, analyst_id)


def alive(charge: Charged, grid_seconds: float = 0.0) -> ProgressOrder:
    return ProgressOrder(charge.charge_id, charge.attempt, None, None, 60.0, grid_seconds)


def record(charge: Charged, grid_seconds: float = 0.0) -> RecordOrder:
    return RecordOrder(charge.charge_id, charge.attempt, "answer", Leaving(grid_seconds))


def shown(ledger: Ledger, charge: Charged) -> tuple[State, str | None, bool]:
    asked = ledger.history.one(charge.charge_id, analyst_id=None)
    return asked.state, asked.answer, asked.cancel_asked_at is not None


def without_charges(ledger: Ledger) -> dict[str, list[Any]]:
    return {name: rows for name, rows in ledger.everything().items() if name != "charges"}


def test_a_cancelled_charge_is_forfeited_even_if_its_attempt_stores_an_answer(
    ledger: Ledger,
) -> None:
    charge = ledger.charge(ledger.order(key="k"))
    before = without_charges(ledger)
    assert ledger.settle(alive(charge)) == [LeaseRenewed(held=True)]
    assert ledger.settle(cancel(charge)) == [Cancelling(charge.charge_id)]
    assert shown(ledger, charge) == (State.CHARGED, None, True)
    time.sleep(0.001)
    assert ledger.settle(alive(charge)) == [LeaseRenewed(True, 0.0)]
    late = Settled(charge.charge_id, State.FORFEITED, None)
    assert ledger.settle(record(charge)) == [late]
    assert shown(ledger, charge) == (State.FORFEITED, None, True)
    assert ledger.settle(alive(charge)) == [LeaseRenewed(held=False)]
    assert ledger.spent() == 1
    assert without_charges(ledger) == before
    assert ledger.verified().sound


def test_cancelling_again_changes_nothing(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order())
    ledger.settle(cancel(charge))
    before = ledger.everything()
    assert ledger.settle(cancel(charge), cancel(charge)) == [Cancelling(charge.charge_id)] * 2
    assert ledger.everything() == before


@pytest.mark.parametrize("state", [State.ANSWERED, State.FORFEITED, State.VOIDED])
def test_cancelling_leaves_a_published_outcome_unchanged(ledger: Ledger, state: State) -> None:
    order = ledger.order()
    charge = ledger.charge(order)
    settling: dict[State, WriterOrder] = {
        State.ANSWERED: record(charge),
        State.FORFEITED: ForfeitOrder(charge.charge_id, 1),
        State.VOIDED: ledger.void(order),
    }
    ledger.settle(settling[state])
    before = ledger.everything()
    (settled,) = ledger.settle(cancel(charge))
    assert isinstance(settled, Settled)
    assert settled.state is state
    assert ledger.everything() == before


def test_an_unknown_charge_and_another_analysts_charge_look_alike_and_stay_unchanged(
    ledger: Ledger,
) -> None:
    charge = ledger.charge(ledger.order(who=0))
    before = ledger.everything()
    refusals = ledger.settle(
        CancelOrder("q_none", ledger.analysts[1].id),
        cancel(charge, ledger.analysts[1].id),
        CancelOrder("q_none", None),
    )
    assert [(type(each), str(each)) for each in refusals] == [
        (NotFound, "There is no question of this id.")
    ] * 3
    assert ledger.everything() == before
    own = cancel(charge, ledger.analysts[0].id)
    assert ledger.settle(own) == [Cancelling(charge.charge_id)]


# The time grid


def test_a_stored_answer_before_its_grid_point_looks_like_a_running_attempt(
    ledger: Ledger,
) -> None:
    """The reply to a cancellation and the history reveal nothing about the work."""
    done, running = ledger.charge(ledger.order()), ledger.charge(ledger.order())
    ledger.settle(record(done, GRID))
    settled = ledger.settle(cancel(done), cancel(running))
    assert settled == [Cancelling(done.charge_id), Cancelling(running.charge_id)]
    assert shown(ledger, done) == shown(ledger, running) == (State.CHARGED, None, True)


def test_an_answer_for_the_grid_point_of_a_cancellation_stands(
    ledger: Ledger,
) -> None:
    """Whether stored before the cancellation or after it, the answer appears at the same grid
    point.
    """
    before, after = ledger.charge(ledger.order()), ledger.charge(ledger.order())
    ledger.settle(record(before, GRID))
    ledger.settle(cancel(before), cancel(after))
    ledger.settle(record(after, GRID))
    for charge in (before, after):
        ((state, answer),) = _stored(ledger, charge)
        assert (state, answer) == ("answered", "answer")


def test_a_run_learns_when_its_cancellation_takes_effect(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order())
    ledger.settle(cancel(charge))
    (noted,) = ledger.settle(alive(charge, GRID))
    assert isinstance(noted, LeaseRenewed)
    assert noted.cancelled_in_seconds is not None
    assert GRID - 30 < noted.cancelled_in_seconds <= GRID


def _stored(ledger: Ledger, charge: Charged) -> list[tuple[str, str | None]]:
    """State and answer in the table, whether or not the analyst may see them yet."""
    columns = tables.charges.c
    wanted = select(columns.state, columns.answer).where(columns.id == charge.charge_id)
    with ledger.database.reading() as connection:
        return [(row.state, row.answer) for row in connection.execute(wanted).all()]


# Attempts whose lease has ended


def test_cancelling_forfeits_the_charge_of_a_vanished_attempt_at_once(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order(key="k", lease_seconds=0.0))
    (settled,) = ledger.settle(cancel(charge))
    assert settled == Settled(charge.charge_id, State.FORFEITED, None)
    assert shown(ledger, charge) == (State.FORFEITED, None, True)
    assert ledger.settle(record(charge)) == [Settled(charge.charge_id, State.FORFEITED, None)]
    (again,) = ledger.settle(ledger.order(key="k"))
    assert isinstance(again, Settled)
    assert again.state is State.FORFEITED
    assert ledger.spent() == 1
    assert ledger.verified().sound


def test_a_cancelled_attempt_that_vanishes_is_not_taken_over(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order(key="k"))
    assert ledger.settle(cancel(charge)) == [Cancelling(charge.charge_id)]
    (refused,) = ledger.settle(ledger.order(key="k"))
    assert isinstance(refused, StillRunning)
    ended = "UPDATE charges SET lease_until = 1 WHERE id = :id"
    execute(ledger.database, ended, id=charge.charge_id)
    (again,) = ledger.settle(ledger.order(key="k"))
    assert again == Settled(charge.charge_id, State.FORFEITED, None)
    assert ledger.settle(record(charge)) == [Settled(charge.charge_id, State.FORFEITED, None)]


def test_the_holder_may_refund_a_cancelled_charge(ledger: Ledger) -> None:
    order = ledger.order()
    charge = ledger.charge(order)
    ledger.settle(cancel(charge))
    ledger.settle(ledger.void(order))
    assert shown(ledger, charge) == (State.VOIDED, None, True)
    assert ledger.spent() == 0
    assert ledger.verified().sound


# Saboteurs


def test_saboteur_a_store_that_ignores_the_cancellation_mark_is_caught(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChargeDecisions, "_cancelled_at", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_cancelled_charge_is_forfeited_even_if_its_attempt_stores_an_answer(ledger)


def test_saboteur_a_store_that_cancels_at_the_instant_is_caught(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ChargeDecisions, "_cancelled_at", lambda _, row, grid: row["cancel_asked_at"]
    )
    with pytest.raises(AssertionError):
        test_an_answer_for_the_grid_point_of_a_cancellation_stands(ledger)


# Races


def test_either_answer_or_cancellation_wins_and_every_reply_agrees(ledger: Ledger) -> None:
    """Two writers, as in two processes, submit both at the same instant, many times."""
    won = dict.fromkeys((State.ANSWERED, State.FORFEITED), 0)

    async def race() -> None:
        one, two = Writer(ledger.database), Writer(ledger.database)
        try:
            for number in range(60):
                charge = await one.submit(ledger.order(tenths=0))
                assert isinstance(charge, Charged)
                orders: list[tuple[Writer, WriterOrder]] = [
                    (one, record(charge)),
                    (two, cancel(charge)),
                ]
                if number % 2:
                    orders.reverse()
                outcomes = await asyncio.gather(*(w.submit(o) for w, o in orders))
                recorded, cancelled = outcomes if number % 2 == 0 else reversed(outcomes)
                assert isinstance(recorded, Settled)
                won[recorded.state] += 1
                asked = ledger.history.one(charge.charge_id, analyst_id=None)
                assert (asked.state, asked.answer) == (recorded.state, recorded.answer)
                if recorded.state is State.FORFEITED:
                    assert cancelled == Cancelling(charge.charge_id)
                    assert recorded.answer is None
                elif isinstance(cancelled, Settled):
                    assert cancelled.state is State.ANSWERED
        finally:
            await one.stop()
            await two.stop()

    asyncio.run(race())
    assert sum(won.values()) == 60
    assert min(won.values()) > 0, won
    assert ledger.verified().sound
