"""One key is one charge, and a repeated question returns its stored answer, on both stores."""

import pytest

from app.errors import DatasetClosed, IdempotencyConflict, StillRunning
from app.ledger.leaving import Leaving
from app.ledger.orders import Charged, ForfeitOrder, RecordOrder, Settled, State, WriterOrder
from tests.store.ledgers import Ledger


def test_the_same_key_twice_in_one_batch_is_charged_once(ledger: Ledger) -> None:
    first, second = ledger.order(key="k"), ledger.order(key="k")
    other_body = ledger.order(key="k", tenths=2)
    results = ledger.settle(first, second, other_body)
    assert [type(result) for result in results] == [Charged, StillRunning, IdempotencyConflict]
    assert ledger.spent() == 1


def test_the_same_key_of_two_analysts_is_two_questions(ledger: Ledger) -> None:
    ledger.settle(ledger.order(key="k"), ledger.order(key="k", who=1))
    assert (ledger.spent(0), ledger.spent(1)) == (1, 1)


def test_the_reply_for_a_running_key_does_not_depend_on_whether_its_work_is_done(
    ledger: Ledger,
) -> None:
    """Before its grid point, no reply reveals that an answer is stored."""
    charge = ledger.charge(ledger.order(key="k", lease_seconds=60.0))
    refusals = ledger.settle(ledger.order(key="k"))
    ledger.settle(RecordOrder(charge.charge_id, 1, "answer", Leaving(60.0)))
    refusals += ledger.settle(ledger.order(key="k"))
    replies = []
    for refusal in refusals:
        assert isinstance(refusal, StillRunning)
        replies.append((refusal.retry_after_seconds, refusal.members, refusal.charged))
    assert replies == [(1, {"id": charge.charge_id}, charge.charged)] * 2


def test_a_batch_rerun_after_an_unknown_commit_finds_its_own_rows(
    ledger: Ledger,
) -> None:
    ready = [ledger.order() for _ in range(3)]
    ledger.settle(*ready)
    batch: list[WriterOrder] = [
        ledger.order(tenths=2),
        RecordOrder(ready[0].charge_id, 1, "an answer"),
        ForfeitOrder(ready[1].charge_id, 1),
        ledger.void(ready[2]),
        ledger.order(tenths=6),
        ledger.order(tenths=3),
    ]
    first = ledger.settle(*batch)
    after = ledger.everything()
    again = ledger.settle(*batch)
    assert ledger.everything() == after
    assert [type(result) for result in again] == [type(result) for result in first]
    assert again[:4] == first[:4]
    assert ledger.spent() == 1 + 1 + 2 + 6


# Reuse


def test_a_repeated_question_of_one_analyst_returns_the_stored_answer_for_free(
    ledger: Ledger,
) -> None:
    first = ledger.order(fresh=False)
    ledger.charge(first)
    ledger.settle(RecordOrder(first.charge_id, 1, "the answer"))
    second = ledger.order(fresh=False)
    (settled,) = ledger.settle(second)
    assert settled == Settled(first.charge_id, State.ANSWERED, "the answer", reused=True)
    asked = ledger.history.one(second.charge_id, analyst_id=None)
    assert (asked.answer, asked.reused_from, asked.epsilon) == ("the answer", first.charge_id, 0)
    assert ledger.spent() == 1
    (replay,) = ledger.settle(second)
    assert replay == Settled(second.charge_id, State.ANSWERED, "the answer", replayed=True)
    assert ledger.verified().sound


def test_fresh_questions_other_analysts_other_plans_and_other_versions_are_charged(
    ledger: Ledger,
) -> None:
    first = ledger.order(fresh=False)
    ledger.charge(first)
    ledger.settle(RecordOrder(first.charge_id, 1, "the answer"))
    for order in (
        ledger.order(fresh=True),
        ledger.order(fresh=False, who=1),
        ledger.order(fresh=False, plan_digest="another"),
        ledger.order(fresh=False, version_id="v_other"),
    ):
        assert isinstance(ledger.settle(order)[0], Charged)


@pytest.mark.parametrize("settled", ["charged", "forfeited", "voided"])
def test_a_charge_without_an_answer_is_not_reused(ledger: Ledger, settled: str) -> None:
    first = ledger.order(fresh=False)
    ledger.charge(first)
    if settled != "charged":
        ledger.settle(
            ForfeitOrder(first.charge_id, 1) if settled == "forfeited" else ledger.void(first)
        )
    assert isinstance(ledger.settle(ledger.order(fresh=False))[0], Charged)


def test_a_closed_dataset_still_returns_stored_answers(ledger: Ledger) -> None:
    first = ledger.order(key="k", fresh=False)
    ledger.charge(first)
    ledger.settle(RecordOrder(first.charge_id, 1, "the answer"))
    reused, replayed, refused = ledger.settle(
        ledger.order(fresh=False, refusal=DatasetClosed("closed")),
        ledger.order(key="k", refusal=DatasetClosed("closed")),
        ledger.order(refusal=DatasetClosed("closed")),
    )
    assert isinstance(reused, Settled)
    assert isinstance(replayed, Settled)
    assert (reused.answer, replayed.answer) == ("the answer", "the answer")
    assert isinstance(refused, DatasetClosed)
