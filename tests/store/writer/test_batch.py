"""One batch of orders, on both stores: decided in order, and all are durable or none."""

import asyncio
import json
from itertools import product

import pytest

from app.accounting.loss import Loss
from app.errors import (
    AccountFrozen,
    AppError,
    BudgetExhausted,
    DatasetClosed,
    IdempotencyConflict,
    Invalid,
    NoGrant,
    StillRunning,
)
from app.ledger.account import EVERYBODY
from app.ledger.chain import FIRST_PREVIOUS, link
from app.ledger.leaving import Leaving
from app.ledger.orders import (
    ATTEMPTS_MAX,
    Charged,
    ForfeitOrder,
    Order,
    RecordOrder,
    Settled,
    StaleCatalogue,
    State,
)
from app.store.writer.batch import settle
from app.store.writer.statements import statements
from app.store.writer.writer import open_connection
from tests.store.ledgers import TENTH, Ledger


def test_a_charge_debits_both_accounts_and_is_one_entry(ledger: Ledger) -> None:
    before = ledger.verified()
    order = ledger.order(tenths=3)
    charge = ledger.charge(order)
    assert (charge.charge_id, charge.attempt) == (order.charge_id, 1)
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (3, 0, 3)
    after = ledger.verified()
    assert (after.entries, after.charges) == (before.entries + 1, before.charges + 1)
    assert ledger.state(order) == (State.CHARGED, None)
    assert after.sound


def test_a_charge_shows_its_receipt_and_the_analysts_own_balance_only(ledger: Ledger) -> None:
    ledger.charge(ledger.order(who=1, tenths=4))
    reply = json.loads(ledger.charge(ledger.order(tenths=3)).charged)
    own, everybody = reply["charged"]["accounts"]
    assert own["spent"] == {"epsilon": 0.3, "delta": 0.0}
    assert own["remaining"] == {"epsilon": 0.7, "delta": 0.0}
    assert everybody == {"holder": EVERYBODY, "spent": None, "remaining": None}
    entries = ledger.history.entries(book_id=ledger.dataset.book_id, after=(0, "", 0), limit=100)
    assert entries[-1].seq == reply["receipt"]["entry"]
    assert entries[-1].hash == reply["receipt"]["hash"]
    previous = FIRST_PREVIOUS
    for entry in entries:
        previous = link(previous, entry.text)
        assert entry.hash == previous


REFUSALS: dict[str, type[AppError]] = {
    "more than the own limit": BudgetExhausted,
    "more than everybody's limit": BudgetExhausted,
    "a frozen account": AccountFrozen,
    "no grant": NoGrant,
    "a closed dataset": DatasetClosed,
    "delta from a pure account": Invalid,
    "another body under the key": IdempotencyConflict,
    "the key of one that still runs": StillRunning,
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refused_charge_leaves_the_ledger_unchanged(ledger: Ledger, why: str) -> None:
    ledger.charge(ledger.order(key="first", tenths=5))
    order = ledger.order(tenths=2)
    match why:
        case "more than the own limit":
            order = ledger.order(tenths=6)
        case "more than everybody's limit":
            ledger.grant(EVERYBODY, tenths=6)
        case "a frozen account":
            ledger.grant(EVERYBODY, tenths=4)
        case "no grant":
            order = order._replace(holders=("nobody",))
        case "a closed dataset":
            order = order._replace(refusal=DatasetClosed("closed"))
        case "delta from a pure account":
            order = order._replace(loss=Loss(TENTH, 1))
        case "another body under the key":
            order = ledger.order(key="first", tenths=2)
        case "the key of one that still runs":
            order = ledger.order(key="first", tenths=5)
    before = ledger.everything()
    (result,) = ledger.settle(order)
    assert type(result) is REFUSALS[why]
    assert ledger.everything() == before


def test_a_refusal_names_the_binding_account_and_the_largest_charge_that_fits(
    ledger: Ledger,
) -> None:
    ledger.charge(ledger.order(tenths=7))
    (refusal,) = ledger.settle(ledger.order(tenths=4))
    assert isinstance(refusal, BudgetExhausted)
    assert refusal.members["account"] == ledger.analysts[0].name
    assert refusal.members["largest_epsilon"] == 0.3
    ledger.charge(ledger.order(tenths=3))


def test_the_shared_limit_stops_analysts_who_pool_their_budgets(ledger: Ledger) -> None:
    ledger.grant(EVERYBODY, tenths=12)
    orders = [ledger.order(who=i % 2) for i in range(20)]
    results = ledger.settle(*orders)
    assert [type(result) for result in results] == [Charged] * 12 + [BudgetExhausted] * 8
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (6, 6, 12)


def test_ten_tenths_fill_a_budget_of_one_exactly(ledger: Ledger) -> None:
    results = ledger.settle(*[ledger.order() for _ in range(11)])
    assert [type(result) for result in results] == [Charged] * 10 + [BudgetExhausted]
    assert ledger.account(ledger.analysts[0].name).balances()["remaining"] == {
        "epsilon": 0.0,
        "delta": 0.0,
    }


def test_orders_of_a_batch_are_decided_in_order_and_a_refusal_stops_no_other(
    ledger: Ledger,
) -> None:
    results = ledger.settle(*[ledger.order(tenths=tenths) for tenths in (6, 6, 3, 2, 1)])
    assert [type(r) for r in results] == [
        Charged,
        BudgetExhausted,
        Charged,
        BudgetExhausted,
        Charged,
    ]
    assert ledger.spent() == 10
    assert ledger.verified().sound


# One key, one charge


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
    batch: list[Order] = [
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


# Settling


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
    deeds: dict[str, Order] = {
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


# The catalogue


def test_an_order_planned_before_a_catalogue_change_is_stale_and_charges_nothing(
    ledger: Ledger,
) -> None:
    order = ledger.order()
    name = ledger.analysts[0].name
    ledger.people.alter("admin", name, role=None, enabled=False, groups=None, reason=None)
    before = ledger.everything()
    (result,) = ledger.settle(order)
    assert result == StaleCatalogue(order.catalogue + 1)
    assert ledger.everything() == before


def test_a_stale_order_learns_nothing_about_its_idempotency_key(ledger: Ledger) -> None:
    """The API key may have been revoked since. After planning again the order returns the stored
    answer.
    """
    order = ledger.order(key="k")
    ledger.charge(order)
    ledger.settle(RecordOrder(order.charge_id, 1, "the answer"))
    late = ledger.order(key="k", catalogue=0)
    (stale,) = ledger.settle(late)
    assert isinstance(stale, StaleCatalogue)
    again = ledger.order(key="k", catalogue=stale.catalogue)
    assert ledger.settle(again) == [
        Settled(order.charge_id, State.ANSWERED, "the answer", replayed=True)
    ]


# Several connections


def test_alternating_connections_see_each_others_charges(ledger: Ledger) -> None:
    sql = statements(sqlite=ledger.database.is_sqlite)

    async def alternate() -> list[object]:
        hots = [await open_connection(ledger.database) for _ in range(3)]
        try:
            return [
                (await settle([ledger.order(who=who)], hot, sql))[0]
                for _, hot, who in product(range(5), hots, range(2))
            ]
        finally:
            for hot in hots:
                hot.close()

    results = asyncio.run(alternate())
    assert [type(result) for result in results] == [Charged] * 20 + [BudgetExhausted] * 10
    assert ledger.verified().sound


@pytest.mark.parametrize(
    "nasty",
    [
        "'; DROP TABLE entries; --",
        "a'b''c\"d\\e\\'f",
        "%s $1 ? :x {0}",
        "\u2028\n\t\x01 ü 😀 \ufffd",
        "nul\\u0000",
    ],
)
def test_text_is_stored_and_returned_unchanged_and_never_run_as_sql(
    ledger: Ledger, nasty: str
) -> None:
    order = ledger.order(
        key=nasty,
        question=nasty,
        body_hash=nasty,
        plan_digest=nasty,
        actor=nasty,
        record={"note": nasty},
        fresh=False,
    )
    ledger.charge(order)
    (settled,) = ledger.settle(RecordOrder(order.charge_id, 1, nasty))
    assert settled == Settled(order.charge_id, State.ANSWERED, nasty)
    asked = ledger.history.one(order.charge_id, analyst_id=None)
    assert (asked.question, asked.answer) == (nasty, nasty)
    replayed, reused = ledger.settle(
        ledger.order(key=nasty, body_hash=nasty), ledger.order(plan_digest=nasty, fresh=False)
    )
    assert replayed == Settled(order.charge_id, State.ANSWERED, nasty, replayed=True)
    assert reused == Settled(order.charge_id, State.ANSWERED, nasty, reused=True)
    assert ledger.verified().sound
