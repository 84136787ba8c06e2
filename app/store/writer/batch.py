"""One batch of orders: lock and read, decide in order, write and commit once.

`charge_decisions.py` decides charges and `stream_decisions.py` decides asks of streams. Each order
is decided against the state that the orders before it have left. A refused order changes nothing.
Lock order: accounts, books, request keys, streams, asks, each by id. Running a batch again after an
unknown commit is safe: each order finds its own earlier result.
"""

from collections.abc import Sequence

from app.errors import AppError
from app.fault_points import crash_point
from app.ledger.orders import Outcome, Settled, WriterOrder
from app.ledger.stamp import StampChain, new_chain, stamp_key
from app.ledger.stream_orders import StreamOrder
from app.store.anchors.files import AnchorFiles
from app.store.writer.charge_decisions import ChargeDecisions
from app.store.writer.connection import SnapshotStale, WriteConflict, WriterConnection
from app.store.writer.statements import Statements
from app.store.writer.stream_decisions import StreamDecisions

Result = Outcome | AppError


async def settle(
    orders: Sequence[WriterOrder],
    hot: WriterConnection,
    sql: Statements,
    anchors: AnchorFiles | None = None,
) -> list[Result]:
    if hot.stamps is None:
        hot.stamps = await _new_chain(hot, sql)
    if hot.known.can_decide(orders):
        results = await _on_what_is_known(orders, hot, sql, anchors)
        if results is not None:
            return results
    batch = _Batch(orders, sql, hot.stamps, anchors)
    try:
        await batch.read(hot)
        return await batch.commit(hot, batch.decide())
    except BaseException:
        await _undo(hot)
        raise


async def _new_chain(hot: WriterConnection, sql: Statements) -> StampChain:
    """Start a stamp chain for this connection.

    After a commit with unknown outcome nobody knows where the old chain ends.
    """
    (((secret,),),) = await hot.read([(sql.identity, ())])
    return new_chain(stamp_key(secret))


async def _on_what_is_known(
    orders: Sequence[WriterOrder],
    hot: WriterConnection,
    sql: Statements,
    anchors: AnchorFiles | None,
) -> list[Result] | None:
    """Decide a batch from the cached snapshot, or return None.

    None unless every order is charged: a refusal or a repetition must be decided from rows read.
    """
    assert hot.stamps is not None
    batch = _Batch(orders, sql, hot.stamps, anchors)
    try:
        await hot.begin()
        batch.charges.load_snapshot(hot.known)
        results = batch.decide()
        if not any(isinstance(result, AppError) for result in results):
            return await batch.commit(hot, results)
        await hot.rollback()
    except WriteConflict:
        await _undo(hot)
    except SnapshotStale:
        await _undo(hot)
        hot.known.back_off()
    except BaseException:
        await _undo(hot)
        raise
    return None


async def _undo(hot: WriterConnection) -> None:
    hot.known.forget()
    await hot.rollback()


class _Batch:
    """Charges and asks that are committed together."""

    def __init__(
        self,
        orders: Sequence[WriterOrder],
        sql: Statements,
        stamps: StampChain,
        anchors: AnchorFiles | None,
    ) -> None:
        self._orders = orders
        self._anchors = anchors
        self._stamps = stamps.copy()  # becomes the connection's chain when the batch commits
        self._stamped_before = stamps.seq
        about_charges = [o for o in orders if not isinstance(o, StreamOrder)]
        self.charges = ChargeDecisions(about_charges, sql, self._stamps, anchors)
        about_streams = [o for o in orders if isinstance(o, StreamOrder)]
        self._asks = StreamDecisions(about_streams, sql, self._stamps)

    async def read(self, hot: WriterConnection) -> None:
        """Read under locks, which are held until the commit."""
        charges, asks = self.charges, self._asks
        reads = charges.reads()
        rows = await hot.begin_and_read([*reads, *asks.reads()])
        charges.load(rows[: len(reads)])
        asks.load(
            rows[len(reads) :],
            now=charges.now,
            catalogue=charges.catalogue,
            stopped=charges.stopped,
        )
        hot.known.read_clock(charges.now)
        hot.known.stopped = charges.stopped

    def decide(self) -> list[Result]:
        return [
            self._asks.decide(order)
            if isinstance(order, StreamOrder)
            else self.charges.decide(order)
            for order in self._orders
        ]

    async def commit(self, hot: WriterConnection, results: list[Result]) -> list[Result]:
        """Commit, and return the outcomes to send once they are durable."""
        charges, asks = self.charges, self._asks
        if charges.charged or asks.claimed:
            crash_point("F2")
        if charges.recorded or asks.recorded:
            crash_point("F8")
        after = charges.reads_after()
        stored = await hot.write_and_commit(
            [*charges.writes(), *asks.writes()], [*after, *asks.reads_after()]
        )
        hot.stamps = self._stamps
        charges.update_snapshot(hot.known)
        if charges.charged or asks.claimed:
            crash_point("F3")
        if charges.recorded or asks.recorded:
            crash_point("F9")
        self._anchor()
        settled = charges.stored(stored[: len(after)])
        return _concluded(results, settled | asks.stored(stored[len(after) :]))

    def _anchor(self) -> None:
        """Anchor after the commit, so that an anchor is never ahead of the ledger."""
        if self._anchors is not None:
            stamped = self._stamps.seq != self._stamped_before
            self._anchors.append_soon(self.charges.ends, self._stamps if stamped else None)


def _concluded(results: list[Result], settled: dict[str, Settled]) -> list[Result]:
    """Replace settled orders with the stored result, which was read after the commit."""
    return [
        settled[result.charge_id]
        if isinstance(result, Settled) and result.charge_id in settled and not result.replayed
        else result
        for result in results
    ]
