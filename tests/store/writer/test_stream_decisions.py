"""Orders about streams, decided on a real database: claims, leases, fences, ends and saboteurs."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from app.errors import IdempotencyConflict, NotFound, StillRunning, StreamEnded
from app.ledger.chain import canonical
from app.ledger.leaving import AT_ONCE, Leaving
from app.ledger.orders import RecordOrder, Settled, StaleCatalogue, State
from app.ledger.stream_orders import (
    AnswerAskOrder,
    Claimed,
    ClaimOrder,
    Closed,
    CloseOrder,
    ForfeitAskOrder,
    NewStream,
    Stream,
    StreamBusy,
)
from app.names import new_id
from app.store.history.streams import SqlStreams
from app.store.writer.writer import Writer
from tests.store.ledgers import Ledger, execute


class Opened:
    """A stream of the first analyst, with orders for it."""

    def __init__(self, ledger: Ledger, *, crossings: int = 2, asks_max: int = 10) -> None:
        self.ledger = ledger
        self.charge = ledger.order()
        ledger.charge(self.charge)
        made = NewStream(
            analyst_id=ledger.analysts[0].id,
            charge_id=self.charge.charge_id,
            dataset_id=ledger.dataset.id,
            kind="above_threshold",
            parameters="{}",
            secret="sealed",
            crossings=crossings,
            asks_max=asks_max,
        )
        self.id = made.id
        opening = canonical({"crossings_left": crossings, "asks_left": asks_max})
        self.record = RecordOrder(self.charge.charge_id, 1, opening, AT_ONCE, made)
        (settled,) = ledger.settle(self.record)
        assert isinstance(settled, Settled)
        assert settled.state is State.ANSWERED

    def claim(self, key: str = "", **changes: Any) -> ClaimOrder:
        made = ClaimOrder(
            ask_id=new_id("a"),
            stream_id=self.id,
            analyst_id=self.ledger.analysts[0].id,
            request_key=key or new_id("k"),
            body_hash="body",
            question="{}",
            version_id=self.ledger.dataset.version.id,
            refusal=None,
            catalogue=self.ledger.catalogue(),
            lease_seconds=60.0,
        )
        return replace(made, **changes)

    def claimed(self, key: str = "", **changes: Any) -> Claimed:
        (result,) = self.ledger.settle(self.claim(key, **changes))
        assert isinstance(result, Claimed), result
        return result

    def answer(self, claim: Claimed, *, above: bool = False, **changes: Any) -> AnswerAskOrder:
        answer = canonical({"id": claim.ask_id, "attempt": claim.attempt, "above": above})
        made = AnswerAskOrder(claim.ask_id, self.id, claim.attempt, claim.fence, answer, above, {})
        return replace(made, **changes)

    def answered(self, claim: Claimed, **changes: Any) -> Settled:
        (result,) = self.ledger.settle(self.answer(claim, **changes))
        assert isinstance(result, Settled), result
        return result

    def only(self, order: Any) -> Any:
        (result,) = self.ledger.settle(order)
        return result

    @property
    def row(self) -> Stream:
        return SqlStreams(self.ledger.database).one(self.id, analyst_id=None)

    @property
    def left(self) -> tuple[int | None, int | None]:
        return self.row.crossings_left, self.row.asks_left

    def let_leases_end(self) -> None:
        execute(
            self.ledger.database, f"UPDATE asks SET lease_until = 1 WHERE stream_id='{self.id}'"
        )
        execute(self.ledger.database, f"UPDATE streams SET held_until = 1 WHERE id = '{self.id}'")


@pytest.fixture
def opened(ledger: Ledger) -> Opened:
    return Opened(ledger)


def test_a_stream_is_stored_once_with_the_answer_that_opens_it(opened: Opened) -> None:
    before = opened.ledger.everything()
    (again,) = opened.ledger.settle(replace(opened.record, answer="another"))
    assert isinstance(again, Settled)
    assert again.answer == opened.record.answer
    assert opened.ledger.everything() == before
    assert opened.ledger.verified().sound


def test_an_attempt_that_was_taken_over_opens_no_stream(ledger: Ledger) -> None:
    order = ledger.order(lease_seconds=0.0)
    ledger.charge(order)
    assert ledger.charge(order._replace(charge_id=new_id("q"))).attempt == 2
    late = NewStream("a", order.charge_id, "d", "above_threshold", "{}", "late", 1, 1)
    ledger.settle(RecordOrder(order.charge_id, 1, "late", AT_ONCE, late))
    mine = replace(late, secret="mine")
    (settled,) = ledger.settle(RecordOrder(order.charge_id, 2, "mine", AT_ONCE, mine))
    assert isinstance(settled, Settled)
    assert settled.answer == "mine"
    rows = [row for row in ledger.everything()["streams"] if order.charge_id in row]
    assert len(rows) == 1
    assert "mine" in rows[0]


def test_asks_count_down_and_the_last_crossing_ends_the_stream(opened: Opened) -> None:
    for above, left in ((False, (2, 9)), (True, (1, 8)), (True, (0, 7))):
        assert opened.answered(opened.claimed(), above=above).state is State.ANSWERED
        assert opened.left == left
    before = opened.ledger.everything()
    assert isinstance(opened.only(opened.claim()), StreamEnded)
    assert opened.ledger.everything() == before


def test_the_last_ask_ends_the_stream(ledger: Ledger) -> None:
    opened = Opened(ledger, asks_max=1)
    opened.answered(opened.claimed())
    assert isinstance(opened.only(opened.claim()), StreamEnded)
    assert opened.left == (2, 0)


def test_while_one_ask_holds_the_stream_other_asks_wait_and_use_nothing(opened: Opened) -> None:
    first = opened.claimed()
    before = opened.ledger.everything()
    assert isinstance(opened.only(opened.claim()), StreamBusy)
    assert opened.ledger.everything() == before
    opened.answered(first)
    opened.claimed()


def test_one_key_is_one_ask(opened: Opened) -> None:
    claim = opened.claimed("key")
    refused = opened.only(opened.claim("key"))
    assert isinstance(refused, StillRunning)
    assert refused.retry_after_seconds == 1  # as for a stored answer before its grid point
    settled = opened.answered(claim)
    again = opened.only(opened.claim("key"))
    assert (again.answer, again.replayed) == (settled.answer, True)
    assert isinstance(opened.only(opened.claim("key", body_hash="other")), IdempotencyConflict)
    assert opened.left == (2, 9)


def test_an_order_rerun_after_an_unknown_commit_finds_its_own_rows(opened: Opened) -> None:
    order = opened.claim("key")
    first, again = opened.only(order), opened.only(order)
    assert first == again
    assert opened.left == (2, 9)
    answer = opened.answer(first, above=True)
    once, twice = opened.only(answer), opened.only(answer)
    assert once.answer == twice.answer == answer.answer
    assert opened.left == (1, 9)
    closing = CloseOrder(opened.id, opened.ledger.analysts[0].id)
    assert opened.only(closing) == opened.only(closing) == Closed(opened.id)


def test_an_abandoned_ask_is_taken_over_at_most_three_times(opened: Opened) -> None:
    first = opened.claimed("key")
    for attempt in (2, 3):
        opened.let_leases_end()
        assert opened.claimed("key").attempt == attempt
    opened.let_leases_end()
    lost = opened.only(opened.claim("key"))
    assert (lost.state, lost.answer) == (State.FORFEITED, None)
    assert opened.answered(first, above=True).state is State.FORFEITED
    assert opened.left == (2, 9)


def test_an_attempt_that_was_taken_over_can_neither_store_nor_forfeit(opened: Opened) -> None:
    first = opened.claimed("key")
    opened.let_leases_end()
    second = opened.claimed("key")
    assert opened.answered(first, above=True).state is State.CHARGED
    forfeit = ForfeitAskOrder(first.ask_id, opened.id, first.attempt, first.fence)
    assert opened.only(forfeit).state is State.CHARGED
    assert opened.answered(second).answer == opened.answer(second).answer
    assert opened.left == (2, 9)


def test_an_ask_that_lost_its_stream_stores_nothing(opened: Opened) -> None:
    sleeper = opened.claimed("sleeps")
    opened.let_leases_end()
    quick = opened.claimed("is quick")
    assert opened.answered(sleeper, above=True).state is State.CHARGED
    assert opened.answered(quick, above=True).state is State.ANSWERED
    assert opened.answered(sleeper, above=True).state is State.CHARGED, (
        "nor after the other ask is stored"
    )
    assert opened.left == (1, 8)
    assert opened.answered(opened.claimed("sleeps"), above=True).state is State.ANSWERED
    assert opened.left == (0, 8)


def test_saboteur_without_the_fence_the_late_ask_would_overwrite_the_other(
    opened: Opened,
) -> None:
    """With a fence that always fits, the same history does what the test above forbids."""
    sleeper = opened.claimed("sleeps")
    opened.let_leases_end()
    quick = opened.claimed("is quick")
    assert opened.answered(sleeper, above=True, fence=quick.fence).state is State.ANSWERED
    assert opened.left == (1, 8)


def test_an_ask_whose_stream_ended_meanwhile_is_forfeited(ledger: Ledger) -> None:
    opened = Opened(ledger, crossings=1)
    opened.claimed("sleeps")
    opened.let_leases_end()
    opened.answered(opened.claimed("is quick"), above=True)
    assert opened.only(opened.claim("sleeps")).state is State.FORFEITED


def test_closing_forfeits_running_asks_and_admits_no_new_ones(opened: Opened) -> None:
    running = opened.claimed("key")
    opened.only(CloseOrder(opened.id, opened.ledger.analysts[0].id))
    assert opened.answered(running, above=True).state is State.FORFEITED
    assert opened.only(opened.claim("key")).state is State.FORFEITED
    opened.let_leases_end()
    assert isinstance(opened.only(opened.claim()), StreamEnded)
    assert opened.left == (2, 9)


def test_another_analysts_stream_and_an_unknown_stream_look_alike(opened: Opened) -> None:
    stranger = opened.ledger.analysts[1].id
    before = opened.ledger.everything()
    refusals = [
        opened.only(opened.claim(analyst_id=stranger)),
        opened.only(opened.claim(stream_id="s_none")),
        opened.only(CloseOrder(opened.id, stranger)),
        opened.only(CloseOrder("s_none", stranger)),
    ]
    assert {type(each) for each in refusals} == {NotFound}
    assert len({str(each) for each in refusals}) == 1
    assert opened.ledger.everything() == before


def test_a_refused_ask_uses_nothing_and_a_stored_answer_is_still_returned(opened: Opened) -> None:
    settled = opened.answered(opened.claimed("key"))
    refused = opened.claim(refusal=StreamEnded("no more"))
    assert isinstance(opened.only(refused), StreamEnded)
    assert opened.left == (2, 9)
    again = opened.only(opened.claim("key", refusal=StreamEnded("no more")))
    assert again.answer == settled.answer


def test_a_claim_planned_on_an_outdated_state_is_stale(opened: Opened) -> None:
    assert isinstance(opened.only(opened.claim(catalogue=0)), StaleCatalogue)
    assert opened.left == (2, 10)


def test_a_crossing_is_hidden_before_its_time_grid_point(opened: Opened) -> None:
    settled = opened.answered(opened.claimed("key"), above=True, leaving=Leaving(60.0))
    assert 0 < settled.wait_seconds <= 60
    assert opened.left == (2, 9), "reading the stream would reveal the crossing too early"
    refused = opened.only(opened.claim("key"))
    assert isinstance(refused, StillRunning)
    assert refused.retry_after_seconds == 1
    assert isinstance(opened.only(opened.claim()), StreamBusy), "the next ask would reveal it too"
    execute(opened.ledger.database, "UPDATE streams SET crossed_at = 1, held_until = 1")
    assert opened.left == (1, 9)


def test_a_tree_node_is_never_stored_twice(ledger: Ledger) -> None:
    opened = Opened(ledger)
    opened.answered(opened.claimed(), nodes={(1, 2): 5, (3, 3): -1})
    claim = opened.claimed()
    assert claim.nodes == {(1, 2): 5, (3, 3): -1}
    writer = Writer(ledger.database)

    async def store_again() -> Any:
        return await writer.submit(opened.answer(claim, nodes={(1, 2): 6}))

    try:
        with pytest.raises(Exception, match="ledger"):
            asyncio.run(store_again())
    finally:
        asyncio.run(writer.stop())
    assert opened.only(opened.claim()).wait_seconds > 0, "the whole batch was rolled back"
    rows = [row for row in ledger.everything()["nodes"] if row[0] == opened.id]
    assert sorted(row[1:4] for row in rows) == [(1, 2, 5), (3, 3, -1)]


def test_orders_of_one_batch_see_the_effects_of_earlier_ones(opened: Opened) -> None:
    one, other = opened.claim("one"), opened.claim("other")
    first, second, again = opened.ledger.settle(one, other, opened.claim("one"))
    assert isinstance(first, Claimed)
    assert isinstance(second, StreamBusy)
    assert isinstance(again, StillRunning)
    settled, ended = opened.ledger.settle(
        opened.answer(first, above=True), CloseOrder(opened.id, opened.ledger.analysts[0].id)
    )
    assert isinstance(settled, Settled)
    assert settled.state is State.ANSWERED
    assert isinstance(ended, Closed)
    assert opened.left == (1, 9)
    assert opened.ledger.verified().sound


def test_an_ask_of_a_stream_closed_meanwhile_is_answered_on_the_grid(
    ledger: Ledger,
) -> None:
    """Otherwise the reply would come when the engine is done and reveal how long it took."""
    opened = Opened(ledger)
    claim = opened.claimed()
    opened.only(CloseOrder(opened.id, ledger.analysts[0].id))
    settled = opened.answered(claim, leaving=Leaving(30.0))
    assert settled.state is State.FORFEITED
    assert 20.0 < settled.wait_seconds <= 30.0
