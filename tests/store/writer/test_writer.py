"""The writer: many callers submit at once, one task commits them together, replies wait for the
commit.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from app.errors import BudgetExhausted, StillRunning, StoreUnavailable
from app.ledger.account import EVERYBODY
from app.ledger.orders import Charged, Outcome, RecordOrder, Settled, State, WriterOrder
from app.store.catalogue import CachedCatalogue
from app.store.connect import Database
from app.store.writer import writer as writer_module
from app.store.writer.batch import Result
from app.store.writer.batch import settle as settle_really
from app.store.writer.connection import (
    ConnectionLost,
    Read,
    Rows,
    Write,
    WriteConflict,
    WriterConnection,
)
from app.store.writer.writer import Writer, open_connection
from tests.store.ledgers import TENTH, Ledger, together


@pytest.fixture
def writer(ledger: Ledger) -> Iterator[Writer]:
    made = Writer(ledger.database)
    yield made
    asyncio.run(made.stop())


def test_of_hundreds_of_concurrent_charges_exactly_those_that_fit_are_made(
    ledger: Ledger, writer: Writer
) -> None:
    ledger.grant(EVERYBODY, tenths=150)
    for analyst in ledger.analysts:
        ledger.grant(analyst.name, tenths=100)
    orders = [ledger.order(who=i % 2) for i in range(30)]
    orders += [ledger.order(who=0, catalogue=orders[0].catalogue) for _ in range(170)]
    results = asyncio.run(together(writer, orders))
    assert sum(isinstance(result, Charged) for result in results) == 100 + 15
    refused = [result for result in results if not isinstance(result, Charged)]
    assert {type(result) for result in refused} == {BudgetExhausted}
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (100, 15, 115)
    assert ledger.verified().sound


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches settled so far."""
    batch_sizes: list[int] = []

    async def settle(orders: Sequence[WriterOrder], *more: Any) -> list[Result]:
        batch_sizes.append(len(orders))
        return await settle_really(orders, *more)

    monkeypatch.setattr(writer_module, "settle", settle)
    return batch_sizes


async def in_turn(writer: Writer, orders: Sequence[WriterOrder], rounds: int) -> list[Outcome]:
    """Submit the orders one after the other, with this many rounds of the event loop in between."""

    async def late(order: WriterOrder, by: int) -> Outcome:
        for _ in range(by):
            await asyncio.sleep(0)
        return await writer.submit(order)

    turns = enumerate(orders)
    return await asyncio.gather(*(late(order, by * rounds) for by, order in turns))


WHERE_THE_LOOP_WRITES = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@WHERE_THE_LOOP_WRITES
def test_orders_that_arrive_while_others_wait_join_their_batch(
    ledger: Ledger, writer: Writer, sizes: list[int]
) -> None:
    orders = [ledger.order() for _ in range(9)]

    async def run() -> None:
        await writer.submit(orders[0])
        await together(writer, orders[1:3])  # so other orders are in progress
        assert sizes == [1, 2]
        await in_turn(writer, orders[3:], 1)

    asyncio.run(run())
    assert sizes == [1, 2, 6]
    assert ledger.spent() == 9


def test_a_batch_does_not_wait_for_a_steady_flow_of_orders(
    ledger: Ledger, writer: Writer, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "BATCH_MAX", 4)
    ledger.grant(EVERYBODY, tenths=1000)
    ledger.grant(ledger.analysts[0].name, tenths=1000)
    orders = [ledger.order() for _ in range(50)]

    async def run() -> int:
        await together(writer, orders[:2])
        submitted: list[asyncio.Future[Outcome]] = []
        while len(sizes) == 1 and len(submitted) < 48:
            submitted.append(asyncio.ensure_future(writer.submit(orders[2 + len(submitted)])))
            await asyncio.sleep(0)
        come = len(submitted)
        await asyncio.gather(*submitted)
        return come

    come = asyncio.run(run())
    assert come < 10, "orders submitted when the second batch began"
    assert ledger.spent() == 2 + come


def test_a_single_order_is_settled_without_delay(
    ledger: Ledger, writer: Writer, sizes: list[int]
) -> None:
    orders = [ledger.order() for _ in range(3)]
    rounds: list[int] = []

    async def run() -> None:
        for order in orders:
            done = asyncio.ensure_future(writer.submit(order))
            for waited in range(100):
                if sizes and sum(sizes) == len(rounds) + 1:
                    rounds.append(waited)
                    break
                await asyncio.sleep(0)
            await done

    asyncio.run(run())
    assert sizes == [1, 1, 1]
    assert max(rounds[1:]) <= 2, "one round to start the task, one to start the batch"


def test_several_writers_share_one_ledger(ledger: Ledger) -> None:
    """Server processes do the same; every server gets the same keys."""
    keys = [f"{ledger.dataset.id} shared {i}" for i in range(30)]
    outcomes: list[list[object]] = []

    async def serve(who: int) -> None:
        writer = Writer(ledger.database)
        orders = [ledger.order(key=key, who=who) for key in keys]
        outcomes.append(await together(writer, orders))
        await writer.stop()

    threads = [
        threading.Thread(target=lambda who=who: asyncio.run(serve(who)))
        for who in (0, 0, 1, 0, 0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flat = [result for outcome in outcomes for result in outcome]
    assert len(flat) == 180
    assert {type(result) for result in flat} <= {Charged, StillRunning, BudgetExhausted}
    charged = [result.charge_id for result in flat if isinstance(result, Charged)]
    assert len(charged) == len(set(charged)) == 20
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (10, 10, 20)
    assert ledger.verified().sound


def test_orders_submitted_before_the_stop_are_settled(ledger: Ledger) -> None:
    writer = Writer(ledger.database)
    order = ledger.order()

    async def submit_and_stop() -> object:
        task = asyncio.ensure_future(writer.submit(order))
        await asyncio.sleep(0)
        await writer.stop()
        assert task.done()
        return await task

    assert isinstance(asyncio.run(submit_and_stop()), Charged)
    assert ledger.spent() == 1


def test_a_cancelled_caller_does_not_disturb_the_others(ledger: Ledger, writer: Writer) -> None:
    async def leave() -> object:
        gone = asyncio.ensure_future(writer.submit(ledger.order()))
        stays = asyncio.ensure_future(writer.submit(ledger.order()))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert isinstance(asyncio.run(leave()), Charged)
    assert ledger.spent() == 2


def test_accounts_are_read_between_batches(ledger: Ledger, writer: Writer) -> None:
    async def run() -> int:
        await writer.submit(ledger.order(tenths=3))
        found = await writer.accounts(ledger.dataset.book_id, [EVERYBODY, "nobody"])
        assert set(found) == {EVERYBODY}
        return found[EVERYBODY].balance.common[0]

    assert asyncio.run(run()) == ledger.account(EVERYBODY).balance.common[0] == 3 * TENTH


def test_a_failed_read_raises_for_its_own_caller(ledger: Ledger, writer: Writer) -> None:
    async def broken(hot: WriterConnection, sql: object) -> int:
        raise LookupError("nothing here")

    with pytest.raises(LookupError):
        asyncio.run(writer.look(broken))
    assert isinstance(asyncio.run(writer.submit(ledger.order())), Charged)


# Faults: a real connection that fails at a chosen moment


class Failing:
    """A real connection whose first commit of a batch fails in a chosen way."""

    def __init__(self, hot: WriterConnection, faults: list[str]) -> None:
        self._hot = hot
        self._faults = faults
        self.known = hot.known
        self.stamps = hot.stamps

    async def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]:
        return await self._hot.begin_and_read(reads)

    async def begin(self) -> None:
        await self._hot.begin()

    async def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]:
        fault = self._faults.pop(0) if self._faults else ""
        match fault:
            case "lost reply":
                await self._hot.write_and_commit(writes, then)
                raise ConnectionLost
            case "lost before":
                raise ConnectionLost
            case "clash":
                raise WriteConflict
            case "bug":
                raise LookupError("the text of a driver, with a secret")
        return await self._hot.write_and_commit(writes, then)

    async def read(self, reads: Sequence[Read]) -> list[Rows]:
        return await self._hot.read(reads)

    async def rollback(self) -> None:
        await self._hot.rollback()

    def close(self) -> None:
        self._hot.close()


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the faults to come, one per commit."""
    coming: list[str] = []
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.001)

    async def open_failing(database: Database) -> Failing:
        return Failing(await open_connection(database), coming)

    monkeypatch.setattr(writer_module, "open_connection", open_failing)
    return coming


@pytest.mark.parametrize(
    "coming",
    [
        ["lost reply"],
        ["lost before"],
        ["lost reply", "lost before", "lost reply"],
        ["clash"],
        ["clash", "clash", "lost reply"],
    ],
)
def test_a_commit_with_unknown_outcome_is_looked_up_and_charged_once(
    ledger: Ledger, faults: list[str], writer: Writer, coming: list[str]
) -> None:
    faults += coming
    orders = [ledger.order() for _ in range(5)]
    results = asyncio.run(together(writer, orders))
    assert [result.charge_id for result in results] == [order.charge_id for order in orders]
    assert {result.attempt for result in results} == {1}
    assert ledger.spent() == 5
    assert ledger.verified().sound


def test_after_an_unknown_commit_of_an_answer_the_stored_answer_is_returned(
    ledger: Ledger, faults: list[str], writer: Writer
) -> None:
    order = ledger.order()
    asyncio.run(writer.submit(order))
    faults.append("lost reply")
    settled = asyncio.run(writer.submit(RecordOrder(order.charge_id, 1, "the answer")))
    assert settled == Settled(order.charge_id, State.ANSWERED, "the answer")


def test_an_unknown_outcome_is_reported_and_the_key_resolves_it(
    ledger: Ledger, faults: list[str], writer: Writer
) -> None:
    never = ledger.order(tenths=2)
    faults += ["lost before"] * writer_module.TRIES_MAX
    with pytest.raises(StoreUnavailable, match="same Idempotency-Key"):
        asyncio.run(writer.submit(never))
    assert ledger.spent() == 0
    assert isinstance(asyncio.run(writer.submit(never)), Charged)
    assert ledger.spent() == 2
    done = ledger.order(tenths=3)
    faults += ["lost reply"] + ["lost before"] * (writer_module.TRIES_MAX - 1)
    with pytest.raises(StoreUnavailable, match="same Idempotency-Key"):
        asyncio.run(writer.submit(done))
    assert ledger.spent() == 5
    (again,) = asyncio.run(together(writer, [done]))
    assert isinstance(again, Charged)
    assert ledger.spent() == 5


def test_the_writer_survives_a_bug_in_one_batch_and_hides_its_text(
    ledger: Ledger, faults: list[str], writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    faults += ["bug"]
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailable) as caught:
        asyncio.run(writer.submit(ledger.order()))
    assert "secret" not in caught.value.detail + caplog.text
    assert isinstance(asyncio.run(writer.submit(ledger.order())), Charged)
    assert ledger.spent() == 1


def test_an_unreachable_ledger_is_reported_as_unavailable_and_no_more(
    faults: list[str], tmp_path_factory: pytest.TempPathFactory, ledger: Ledger
) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere")
    writer = Writer(Database(f"postgresql://nobody:hidden@/none?host={nowhere}"))
    try:
        with pytest.raises(StoreUnavailable) as caught:
            asyncio.run(writer.submit(ledger.order()))
        assert "hidden" not in caught.value.detail
        with pytest.raises(StoreUnavailable):
            asyncio.run(CachedCatalogue(writer).dataset("people"))
    finally:
        asyncio.run(writer.stop())
