"""Stamps: one chain per connection, without gaps after any batch, clash or unknown commit."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from app.ledger.orders import Charged, ForfeitOrder, PreparedAnswer, RecordOrder
from app.ledger.stamp import SettledRow, StampChain, stamp_from
from app.ledger.verification.lines import ChargeRow
from app.ledger.verification.report import Report
from app.ledger.verification.stamps import StampChecker
from app.ledger.verification.verify import verify
from app.store import tables
from app.store.connect import Database
from app.store.writer import writer as writer_module
from app.store.writer.connection import ConnectionLost
from app.store.writer.writer import Writer, open_connection
from tests.store.ledgers import Ledger, execute, together


def stamps(ledger: Ledger) -> list[Any]:
    table = tables.charges
    with ledger.database.reading() as connection:
        rows = connection.execute(
            select(table.c.stamp).where(
                table.c.dataset_id == ledger.dataset.id, table.c.stamp.is_not(None)
            )
        ).all()
    return sorted(stamp_from(row.stamp) for row in rows)


def report(ledger: Ledger) -> Report:
    return verify(ledger.history.snapshot(ledger.dataset.book_id, stored=True))


def test_every_settlement_is_stamped_in_order_of_the_batches(ledger: Ledger) -> None:
    orders = [ledger.order() for _ in range(4)]
    ledger.settle(*orders)
    assert stamps(ledger) == [], "an open charge has no stamp"
    answered, forfeited, voided, _ = orders
    ledger.settle(
        RecordOrder(answered.charge_id, 1, "an answer"), ForfeitOrder(forfeited.charge_id, 1)
    )
    ledger.settle(ledger.void(voided))
    ledger.settle(
        ledger.order(at_once=PreparedAnswer(lambda charge: f"of {charge.charge_id}", 0.0))
    )
    found = stamps(ledger)
    assert [stamp.seq for stamp in found] == [1, 2, 3, 4]
    assert len({stamp.chain for stamp in found}) == 1
    assert report(ledger).sound
    assert problems_of_chains(ledger) == []


def test_verify_finds_a_void_that_was_undone(ledger: Ledger) -> None:
    order = ledger.order()
    ledger.charge(order)
    ledger.settle(ledger.void(order))
    for state in ("charged", "forfeited"):
        execute(
            ledger.database,
            "UPDATE charges SET state = :state WHERE id = :id",
            state=state,
            id=order.charge_id,
        )
        problems = {finding.problem for finding in report(ledger).findings}
        assert "the charge and its refund entry disagree" in problems


def test_each_connection_has_a_chain_of_its_own(ledger: Ledger) -> None:
    async def ask() -> None:
        writer = Writer(ledger.database)
        await together(writer, [ledger.order() for _ in range(3)])
        order = ledger.order(at_once=PreparedAnswer(lambda _: "{}", 0.0))
        await writer.submit(order)
        await writer.stop()

    asyncio.run(ask())
    asyncio.run(ask())
    found = stamps(ledger)
    assert [stamp.seq for stamp in found] == [1, 1]
    assert len({stamp.chain for stamp in found}) == 2
    assert report(ledger).sound


class LosesReplies:
    """A real connection that commits, but loses the reply of chosen commits."""

    def __init__(self, hot: Any, lost: list[bool]) -> None:
        self._hot, self._lost = hot, lost
        self.known, self.stamps = hot.known, None

    async def write_and_commit(self, writes: Any, then: Any) -> Any:
        rows = await self._hot.write_and_commit(writes, then)
        if self._lost and self._lost.pop(0):
            raise ConnectionLost
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hot, name)


def test_after_an_unknown_commit_a_new_chain_begins_and_no_chain_has_a_gap(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [False, False, True, False, True, False, False, True]

    async def open_losing(database: Database) -> Any:
        return LosesReplies(await open_connection(database), lost)

    monkeypatch.setattr(writer_module, "open_connection", open_losing)
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.001)

    async def ask() -> None:
        writer = Writer(ledger.database)
        for _ in range(6):
            charge = await writer.submit(ledger.order())
            assert isinstance(charge, Charged)
            await writer.submit(RecordOrder(charge.charge_id, 1, f"of {charge.charge_id}"))
        await writer.stop()

    asyncio.run(ask())
    assert not lost
    by_chain: dict[str, list[int]] = {}
    for stamp in stamps(ledger):
        by_chain.setdefault(stamp.chain, []).append(stamp.seq)
    assert len(by_chain) > 1
    for places in by_chain.values():
        assert places == list(range(1, len(places) + 1))
    assert report(ledger).sound


@pytest.mark.saboteur
def test_verify_notices_a_chain_that_counts_a_rolled_back_batch(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a batch that was rolled back advanced the chain, the next row would leave a gap."""
    monkeypatch.setattr(StampChain, "copy", lambda self: self)
    at_once = PreparedAnswer(lambda charge: f"of {charge.charge_id}", 0.0)
    ledger.settle(ledger.order(at_once=at_once))
    # Both orders are refused, so the batch decided from the snapshot is rolled back and read anew.
    ledger.settle(ledger.order(at_once=at_once), ledger.order(tenths=1000))
    assert any("missing" in problem for problem in problems_of_chains(ledger))


def problems_of_chains(ledger: Ledger) -> list[str]:
    problems: list[str] = []
    checker = StampChecker(lambda _, __, problem: problems.append(problem))
    for line in ledger.history.snapshot(ledger.dataset.book_id, stored=True):
        if isinstance(line, ChargeRow) and line.stamp is not None:
            settled = SettledRow(line.id, line.state, line.settled_at, line.content)
            checker.row(line.book, line.stamp, settled)
    checker.finish()
    return problems
