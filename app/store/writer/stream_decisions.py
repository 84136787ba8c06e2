"""Stream orders of one batch: read under locks, decided in order, written together.

They run in the transaction of `batch.py`. Lock order: the locks of charges, then streams, then
asks, each by id.
"""

from collections.abc import Sequence
from typing import Any

from app.errors import (
    AppError,
    IdempotencyConflict,
    LedgerBehind,
    NotFound,
    StillRunning,
    StreamEnded,
)
from app.ledger.chain import canonical
from app.ledger.orders import ATTEMPTS_MAX, Settled, StaleCatalogue, State
from app.ledger.stamp import AskedFor, StampChain, ask_content
from app.ledger.stream_orders import (
    AnswerAskOrder,
    Claimed,
    ClaimOrder,
    Closed,
    CloseOrder,
    ForfeitAskOrder,
    StreamBusy,
    StreamOrder,
    StreamOutcome,
)
from app.store.writer.charge_decisions import LEDGER_BEHIND
from app.store.writer.connection import Read, Write
from app.store.writer.statements import Statements
from app.store.writer.stream_rows import AskInBatch, StreamInBatch
from app.store.writer.time_grid import leaves_at

UNKNOWN_STREAM = "There is no stream of this id."
STILL_ASKING = "The first attempt at this ask is still running."
StreamResult = StreamOutcome | Settled | StaleCatalogue | AppError


def _many(values: Sequence[str]) -> tuple[str]:
    return (canonical(list(values)),)


class StreamDecisions:
    """State of one transaction's streams while its orders are decided."""

    def __init__(self, orders: Sequence[StreamOrder], sql: Statements, stamps: StampChain) -> None:
        self._sql = sql
        self._stamps = stamps
        self._stopped = False  # True if the ledger is behind its anchors
        self._orders = orders
        self._now = 0
        self._catalogue = 0
        self._streams: dict[str, StreamInBatch] = {}
        self._by_request: dict[str, AskInBatch] = {}
        self._by_id: dict[str, AskInBatch] = {}
        self._nodes: dict[str, dict[tuple[int, int], int]] = {}
        self._changed: set[str] = set()
        self._new_asks: list[tuple[Any, ...]] = []
        self._take_overs: dict[str, tuple[Any, ...]] = {}  # the last one of each ask
        self._settlements: list[tuple[Any, ...]] = []
        self._earliest: dict[str, int] = {}  # when the result may be sent to the order's sender
        self._new_nodes: list[tuple[Any, ...]] = []
        self._ended: list[tuple[Any, ...]] = []
        self.claimed = False
        self.recorded = False

    # Reading, under locks

    def reads(self) -> list[Read]:
        if not self._orders:
            return []
        sql = self._sql
        streams = sorted({order.stream_id for order in self._orders})
        claims = [o.request for o in self._orders if isinstance(o, ClaimOrder)]
        return [
            (sql.streams, _many(streams)),
            (sql.asks_by_request, _many(sorted(claims))),
            (sql.asks_by_id, _many(sorted(self._settling()))),
            (sql.nodes, _many(streams)),
        ]

    def _settling(self) -> list[str]:
        return [o.ask_id for o in self._orders if isinstance(o, AnswerAskOrder | ForfeitAskOrder)]

    def load(
        self, rows: list[list[Any]], *, now: int, catalogue: int, stopped: bool = False
    ) -> None:
        self._now, self._catalogue, self._stopped = now, catalogue, stopped
        if not rows:
            return
        streams, by_request, by_id, nodes = rows
        self._streams = {row[0]: StreamInBatch(*row) for row in streams}
        for row in [*by_request, *by_id]:
            ask = self._by_id.setdefault(row[1], AskInBatch(*row))
            self._by_request[ask.request] = ask
        for stream_id, first, last, noisy in nodes:
            self._nodes.setdefault(stream_id, {})[first, last] = noisy

    # Deciding

    def decide(self, order: StreamOrder) -> StreamResult:
        try:
            match order:
                case ClaimOrder():
                    return self._claim(order)
                case AnswerAskOrder():
                    self._not_before_its_grid(order)
                    self._answer(order)
                    self.recorded = True
                case ForfeitAskOrder():
                    self._not_before_its_grid(order)
                    self._settle(order, State.FORFEITED, None)
                case CloseOrder():
                    return self._close(order)
            return Settled(order.ask_id, State.CHARGED, None)  # concluded after the commit
        except AppError as refusal:
            return refusal

    def _owned(self, order: ClaimOrder | CloseOrder) -> StreamInBatch:
        stream = self._streams.get(order.stream_id)
        if stream is None or stream.analyst_id != order.analyst_id:
            raise NotFound(UNKNOWN_STREAM)
        return stream

    def _claim(self, order: ClaimOrder) -> StreamResult:
        stream, earlier = self._owned(order), self._by_request.get(order.request)
        made = earlier and (earlier.id, earlier.state, earlier.attempt)
        if earlier and made == (order.ask_id, State.CHARGED.value, 1):
            return self._holds(earlier, stream)  # made by this order, in an unknown commit
        if order.catalogue != self._catalogue:
            return StaleCatalogue(self._catalogue)
        if earlier is not None:
            if earlier.body_hash != order.body_hash:
                raise IdempotencyConflict("This Idempotency-Key was used with another body.")
            return self._again(order, earlier, stream)
        held = self._held(stream)
        if held is not None:
            return held
        if stream.over or stream.asks_left == 0:
            raise StreamEnded("This stream has ended and gives no answer; no ask was used.")
        if order.refusal is not None:
            raise order.refusal
        if self._stopped:
            raise LedgerBehind(LEDGER_BEHIND)
        if stream.asks_left is not None:
            stream.asks_left -= 1
        ask = AskInBatch(
            request=order.request,
            id=order.ask_id,
            stream_id=stream.id,
            body_hash=order.body_hash,
            state=State.CHARGED.value,
            attempt=1,
            lease_until=0,
            fence=0,
            version_id=order.version_id,
            answer=None,
            created_at=self._now,
            settled_at=None,
            question=order.question,
        )
        self._by_request[ask.request] = self._by_id[ask.id] = ask
        self._hold(order, ask, stream)
        self._new_asks.append(
            (
                *(ask.id, stream.id, ask.request, ask.body_hash, ask.version_id, ask.state),
                *(ask.attempt, ask.lease_until, ask.fence, order.question, None),
                *(ask.created_at, None),
            )
        )
        return self._holds(ask, stream)

    def _held(self, stream: StreamInBatch) -> StreamBusy | None:
        """Busy if an ask holds the stream, by its lease or until its answer may be shown."""
        wait = stream.held_until - self._now
        return StreamBusy(wait / 1_000_000) if wait > 0 else None

    def _again(self, order: ClaimOrder, ask: AskInBatch, stream: StreamInBatch) -> StreamResult:
        if ask.state != State.CHARGED.value:
            assert ask.settled_at is not None
            if ask.settled_at > self._now:
                raise StillRunning(STILL_ASKING, retry_after_seconds=1)
            return Settled(ask.id, State(ask.state), ask.answer, replayed=True)
        if ask.lease_until > self._now:  # no lease time is sent: it would reveal the work's end
            raise StillRunning(STILL_ASKING, retry_after_seconds=1)
        held = self._held(stream)
        if held is not None:
            return held
        if self._stopped:
            raise LedgerBehind(LEDGER_BEHIND)
        if stream.over or ask.attempt >= ATTEMPTS_MAX:
            ask.state, ask.settled_at = State.FORFEITED.value, self._now
            stamp = self._stamps.stamp(ask.id, ask.state, self._now)
            self._settlements.append((ask.state, None, self._now, stamp, ask.id, ask.attempt))
            return Settled(ask.id, State.FORFEITED, None)
        ask.attempt += 1
        self._hold(order, ask, stream)
        self._take_overs[ask.id] = (ask.attempt, ask.lease_until, ask.fence, ask.id)
        return self._holds(ask, stream)

    def _hold(self, order: ClaimOrder, ask: AskInBatch, stream: StreamInBatch) -> None:
        stream.version += 1
        ask.fence = stream.version
        ask.lease_until = stream.held_until = self._now + int(order.lease_seconds * 1_000_000)
        self._changed.add(stream.id)
        self.claimed = True

    def _holds(self, ask: AskInBatch, stream: StreamInBatch) -> Claimed:
        return Claimed(
            ask_id=ask.id,
            attempt=ask.attempt,
            fence=ask.fence,
            version_id=ask.version_id,
            crossings_left=stream.crossings_left,
            asks_left=stream.asks_left,
            nodes=dict(self._nodes.get(stream.id, {})),
        )

    def _not_before_its_grid(self, order: AnswerAskOrder | ForfeitAskOrder) -> None:
        """Delay this attempt's result to the time grid in every case.

        The attempt arrives when its engine is done, and that moment must stay hidden.
        """
        ask = self._by_id.get(order.ask_id)
        if ask is not None:
            at = leaves_at(self._now, since=ask.created_at, leaving=order.leaving)
            self._earliest[order.ask_id] = at

    def _settle(
        self,
        order: AnswerAskOrder | ForfeitAskOrder,
        state: State,
        answer: str | None,
        *stored: str,
    ) -> StreamInBatch | None:
        """Settle the ask, and return its stream if this attempt may still do so.

        The ask must be neither taken over nor settled, and nobody may have held the stream since.
        """
        ask, stream = self._by_id.get(order.ask_id), self._streams.get(order.stream_id)
        if ask is None or stream is None or ask.stream_id != stream.id:
            return None
        current = (ask.state, ask.attempt, stream.version)
        if current != (State.CHARGED.value, order.attempt, order.fence):
            return None
        at = leaves_at(self._now, since=ask.created_at, leaving=order.leaving)
        ask.state, ask.answer, ask.settled_at = state.value, answer, at
        stamp = self._stamps.stamp(ask.id, state.value, at, *stored)
        self._settlements.append((state.value, answer, at, stamp, ask.id, ask.attempt))
        stream.version += 1
        stream.held_until = at  # until then nothing shows the stream's new state
        self._changed.add(stream.id)
        return stream

    def _content(self, order: AnswerAskOrder) -> tuple[str, ...]:
        """Stored content that the stamp of this answer covers."""
        ask = self._by_id.get(order.ask_id)
        if ask is None:
            return ()  # then it is not settled either
        asked_for = AskedFor(ask.request, ask.body_hash, ask.version_id, ask.question)
        return ask_content(order.answer, order.nodes, asked_for)

    def _answer(self, order: AnswerAskOrder) -> None:
        ask_stream = self._streams.get(order.stream_id)
        if ask_stream is not None and ask_stream.over:
            return  # closed meanwhile; its asks are forfeited
        if self._stopped:  # a lost entry may have answered the ask already
            self._settle(order, State.FORFEITED, None)
            return
        stored = self._content(order)
        stream = self._settle(order, State.ANSWERED, order.answer, *stored)
        if stream is None:
            return
        if order.crossed:
            assert stream.crossings_left is not None
            stream.crossings_left -= 1
            stream.crossed_at = stream.held_until
        for (first, last), noisy in order.nodes.items():
            self._new_nodes.append((stream.id, first, last, noisy, order.ask_id))
            self._nodes.setdefault(stream.id, {})[first, last] = noisy

    def _close(self, order: CloseOrder) -> Closed:
        stream = self._owned(order)
        if stream.closed_at is None:
            stream.closed_at = self._now
            stream.version += 1
            self._changed.add(stream.id)
            self._ended.append((State.FORFEITED.value, self._now, stream.id))
            for ask in self._by_id.values():
                if ask.stream_id == stream.id and ask.state == State.CHARGED.value:
                    ask.state, ask.settled_at = State.FORFEITED.value, self._now
        return Closed(stream.id)

    # Writing

    def writes(self) -> list[Write]:
        sql = self._sql
        streams = [
            (
                *(s.version, s.held_until, s.crossings_left, s.asks_left),
                *(s.crossed_at, s.closed_at, s.id),
            )
            for s in (self._streams[each] for each in sorted(self._changed))
        ]
        pairs = [
            (sql.update_stream, streams),
            (sql.insert_ask, self._new_asks),
            (sql.take_over_ask, list(self._take_overs.values())),
            (sql.settle_ask, self._settlements),
            (sql.insert_node, self._new_nodes),
            (sql.forfeit_asks, self._ended),
        ]
        return [(statement, rows) for statement, rows in pairs if rows]

    def reads_after(self) -> list[Read]:
        settling = self._settling()
        return [(self._sql.stored_asks, _many(settling))] if settling else []

    def stored(self, rows: list[list[Any]]) -> dict[str, Settled]:
        """Stored results of the asks to settle, read after the commit."""
        settled = {}
        for ask_id, state, answer, at in rows[0] if rows else ():
            at = max(at or 0, self._earliest.get(ask_id, 0))
            wait = max(0, at - self._now) / 1_000_000
            settled[ask_id] = Settled(ask_id, State(state), answer, wait_seconds=wait)
        return settled
