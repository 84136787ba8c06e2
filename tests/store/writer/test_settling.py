"""Charges are settled once, by their current attempt, on both stores."""

import pytest

from app.errors import StillRunning
from app.ledger.orders import (
    ATTEMPTS_MAX,
    Charged,
    ForfeitOrder,
    RecordOrder,
    Settled,
    State,
    WriterOrder,
)
from tests.store.ledgers import Ledger


def test_an_answer_is_stored_once_and_every_reply_repeats_it(ledger: Ledger) -> None:
    order = ledger.order(key="k")
    charge = ledger.charge(order)
    results = ledger.settle(
        RecordOrder(charge.charge_id, 1, "first"), RecordOrder(charge.charge_id, 1, "second")
    )
    assert results == [Settled(charge.charge_id, State.ANSWERED, "first")] * 2
    (late,) = ledger.settle(RecordOrder(charge.charge_id, 1, "third"))
    assert late == Settled(charge.charge_id, State.ANSWERED, "first")
    (replay,) = ledger.settle(ledger.order(key="k"))
    assert replay == Settled(charge.charge_id, State.ANSWERED, "first", replayed=True)
    assert ledger.spent() == 1


def test_a_forfeited_charge_stays_paid_and_is_never_answered(ledger: Ledger) -> None:
    charge = ledger.charge(ledger.order(key="k"))
    (result,) = ledger.settle(ForfeitOrder(charge.charge_id, 1))
    assert result == Settled(charge.charge_id, State.FORFEITED, None)
    late, replay = ledger.settle(RecordOrder(charge.charge_id, 1, "late"), ledger.order(key="k"))
    assert late == Settled(charge.charge_id, State.FORFEITED, None)
    assert replay == Settled(charge.charge_id, State.FORFEITED, None, replayed=True)
    assert ledger.spent() == 1


def test_a_void_refunds_once_and_is_an_entry(ledger: Ledger) -> None:
    order = ledger.order(key="k", tenths=4)
    ledger.charge(order)
    results = ledger.settle(ledger.void(order), ledger.void(order))
    assert results == [Settled(order.charge_id, State.VOIDED, None)] * 2
    ledger.settle(ledger.void(order))
    assert (ledger.spent(0), ledger.spent(None)) == (0, 0)
    entries = ledger.history.entries(book_id=ledger.dataset.book_id, after=(0, "", 0), limit=100)
    assert [entry.kind for entry in entries].count("void") == 1
    assert ledger.verified().sound
    (replay,) = ledger.settle(ledger.order(key="k", tenths=4))
    assert replay == Settled(order.charge_id, State.VOIDED, None, replayed=True)
    assert ledger.spent() == 0


@pytest.mark.parametrize("settled", [State.ANSWERED, State.FORFEITED])
def test_a_settled_charge_cannot_be_voided(ledger: Ledger, settled: State) -> None:
    order = ledger.order()
    ledger.charge(order)
    deed = (
        RecordOrder(order.charge_id, 1, "a")
        if settled is State.ANSWERED
        else ForfeitOrder(order.charge_id, 1)
    )
    ledger.settle(deed)
    before = ledger.everything()
    (result,) = ledger.settle(ledger.void(order))
    assert isinstance(result, Settled)
    assert result.state is settled
    assert ledger.everything() == before


def test_a_settlement_of_a_charge_that_does_not_exist_changes_nothing(ledger: Ledger) -> None:
    before = ledger.everything()
    ledger.settle(RecordOrder("q_none", 1, "a"), ForfeitOrder("q_none", 1))
    ledger.settle(ledger.void(ledger.order()))
    assert ledger.everything() == before


# Take-over


def test_an_abandoned_attempt_is_taken_over_without_a_second_charge(ledger: Ledger) -> None:
    first = ledger.order(key="k", lease_seconds=0.0)
    first_charge = ledger.charge(first)
    second = ledger.charge(ledger.order(key="k", lease_seconds=60.0))
    assert (second.charge_id, second.attempt) == (first.charge_id, 2)
    assert second.charged == first_charge.charged
    assert second.version_id == first_charge.version_id
    (third,) = ledger.settle(ledger.order(key="k"))
    assert isinstance(third, StillRunning)
    assert ledger.spent() == 1


def test_an_attempt_that_is_not_current_stores_nothing(ledger: Ledger) -> None:
    first = ledger.order(key="k", lease_seconds=0.0)
    ledger.charge(first)
    ledger.charge(ledger.order(key="k"))
    before = ledger.everything()
    for deed in (
        RecordOrder(first.charge_id, 1, "old"),
        ForfeitOrder(first.charge_id, 1),
        ledger.void(first, attempt=1),
        ledger.void(first, attempt=3),
    ):
        (result,) = ledger.settle(deed)
        assert result == Settled(first.charge_id, State.CHARGED, None)
    assert ledger.everything() == before
    ledger.settle(RecordOrder(first.charge_id, 2, "new"))
    (late,) = ledger.settle(RecordOrder(first.charge_id, 1, "old"))
    assert late == Settled(first.charge_id, State.ANSWERED, "new")


def test_a_charge_is_forfeited_after_three_attempts(ledger: Ledger) -> None:
    orders = [ledger.order(key="k", lease_seconds=0.0) for _ in range(ATTEMPTS_MAX + 2)]
    results = [ledger.settle(order)[0] for order in orders]
    attempts = [result.attempt for result in results if isinstance(result, Charged)]
    assert attempts == [1, 2, 3]
    forfeited = Settled(orders[0].charge_id, State.FORFEITED, None)
    assert results[3:] == [forfeited, forfeited._replace(replayed=True)]
    assert ledger.state(orders[0]) == (State.FORFEITED, None)
    assert ledger.spent() == 1
    (late,) = ledger.settle(RecordOrder(orders[0].charge_id, 3, "late"))
    assert late == forfeited


def test_attempts_run_out_within_one_batch_too(ledger: Ledger) -> None:
    orders = [ledger.order(key="k", lease_seconds=0.0) for _ in range(5)]
    ledger.charge(orders[0])
    results = ledger.settle(*orders[1:])
    assert [type(result) for result in results] == [Charged, Charged, Settled, Settled]
    assert ledger.state(orders[0]) == (State.FORFEITED, None)


def test_a_charge_that_was_taken_over_is_not_handed_back_to_the_first_worker(
    ledger: Ledger,
) -> None:
    """The first worker does not know whether its commit succeeded. Another worker takes over
    meanwhile.
    """
    first = ledger.order(key="k", lease_seconds=0.0)
    ledger.charge(first)
    second = ledger.charge(ledger.order(key="k", lease_seconds=60.0))
    (again,) = ledger.settle(first)
    assert not isinstance(again, Charged) or again.attempt != second.attempt


@pytest.mark.parametrize("old_first", [True, False])
@pytest.mark.parametrize("deed", ["record", "forfeit", "void"])
def test_a_take_over_and_a_settlement_in_one_batch_see_each_other(
    ledger: Ledger, deed: str, old_first: bool
) -> None:
    first = ledger.order(key="k", lease_seconds=0.0)
    ledger.charge(first)
    deeds: dict[str, WriterOrder] = {
        "record": RecordOrder(first.charge_id, 1, "old"),
        "forfeit": ForfeitOrder(first.charge_id, 1),
        "void": ledger.void(first),
    }
    old = deeds[deed]
    take_over = ledger.order(key="k")
    if old_first:
        _, taken = ledger.settle(old, take_over)
        assert isinstance(taken, Settled)
        assert taken.state == ledger.state(first)[0] != State.CHARGED
    else:
        taken, _ = ledger.settle(take_over, old)
        assert isinstance(taken, Charged)
        assert taken.attempt == 2
        assert ledger.state(first) == (State.CHARGED, None)
        assert ledger.spent() == 1
    assert ledger.verified().sound
