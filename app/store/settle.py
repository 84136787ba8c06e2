"""One batch of orders: locks and reads, decisions one by one in order, writes and one commit.

Charges are decided in `settle_charges.py`, asks of streams in `settle_asks.py`, each against what
the orders before have left. A refused one changes nothing and leaves the others alone. Lock order:
request keys, accounts, books, streams, asks, each by id. Running a batch again after an unknown
commit is safe: orders find what they did the first time.
"""

from collections.abc import Sequence

from app.errors import AppError
from app.faults import reach
from app.ledger.protocol import Order, Outcome, Settled
from app.ledger.stream_protocol import StreamOrder
from app.store.hot import HotConnection
from app.store.settle_asks import AskBatch
from app.store.settle_charges import ChargeBatch
from app.store.statements import Statements

Result = Outcome | AppError


async def settle(orders: Sequence[Order], hot: HotConnection, sql: Statements) -> list[Result]:
    batch = ChargeBatch([o for o in orders if not isinstance(o, StreamOrder)], sql)
    asks = AskBatch([o for o in orders if isinstance(o, StreamOrder)], sql)
    reads = batch.reads()
    rows = await hot.begin_and_read([*reads, *asks.reads()])
    batch.load(rows[: len(reads)])
    asks.load(rows[len(reads) :], now=batch.now, catalogue=batch.catalogue)
    try:
        results: list[Result] = [
            asks.decide(order) if isinstance(order, StreamOrder) else batch.decide(order)
            for order in orders
        ]
        if batch.charged or asks.claimed:
            reach("F2")
        if batch.recorded or asks.recorded:
            reach("F8")
        charges_after = batch.reads_after()
        stored = await hot.write_and_commit(
            [*batch.writes(), *asks.writes()], [*charges_after, *asks.reads_after()]
        )
    except BaseException:
        await hot.rollback()
        raise
    if batch.charged or asks.claimed:
        reach("F3")
    if batch.recorded or asks.recorded:
        reach("F9")
    found = batch.stored(stored[: len(charges_after)])
    return _concluded(results, found | asks.stored(stored[len(charges_after) :]))


def _concluded(results: list[Result], found: dict[str, Settled]) -> list[Result]:
    """Settled orders are told what the store holds now, read after the commit."""
    return [
        found[result.charge_id]
        if isinstance(result, Settled) and result.charge_id in found and not result.replayed
        else result
        for result in results
    ]
