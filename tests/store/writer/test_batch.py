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
from app.ledger.orders import Charged, RecordOrder, Settled, StaleCatalogue, State
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
