"""The writer of a process: commits all waiting orders together.

Hot routes hand it orders and await the outcome. No outcome is sent before its batch is durable.
While PostgreSQL writes one batch, the next one gathers. SQLite writes on the event loop itself, so
before each batch the loop reads the requests that have arrived meanwhile. So under load one commit
carries many charges, and a single charge waits for no other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from app.errors import StoreUnavailable
from app.ledger.account import Account
from app.ledger.chain import canonical
from app.ledger.orders import (
    CancelOrder,
    ForfeitOrder,
    Outcome,
    ProgressOrder,
    RecordOrder,
    WriterOrder,
)
from app.ledger.stream_orders import AnswerAskOrder, ForfeitAskOrder
from app.ports.telemetry import UNOBSERVED, Observer
from app.store.connect import Database
from app.store.writer.accounts import find_accounts
from app.store.writer.batch import Result, settle
from app.store.writer.connection import ConnectionLost, WriteConflict, WriterConnection
from app.store.writer.postgresql import PostgresWriterConnection
from app.store.writer.sqlite import SQLiteWriterConnection
from app.store.writer.statements import Statements, statements

BATCH_MAX = 256
TRIES_MAX = 6
RETRY_SECONDS = 0.25
OUTCOME_UNKNOWN = (
    "The ledger cannot be reached; send the same request with the same Idempotency-Key again."
)

T = TypeVar("T")
Look = Callable[[WriterConnection, Statements], Awaitable[Any]]
_log = logging.getLogger("bursar.writer")


_STORES = (
    RecordOrder | ForfeitOrder | ProgressOrder | CancelOrder | AnswerAskOrder | ForfeitAskOrder
)


async def open_connection(database: Database) -> WriterConnection:
    """Open the writer's connection to a ledger."""
    if database.is_sqlite:
        return SQLiteWriterConnection(database)
    # Connecting may wait for seconds.
    return await asyncio.to_thread(PostgresWriterConnection, database)


class _Job(NamedTuple):
    """An order or a read, the future of its result, and when it arrived, on the loop's clock."""

    work: WriterOrder | Look
    future: asyncio.Future[Any]
    arrived: float


class Writer:
    """The writing connections of a process, used from one event loop.

    SQLite has one connection. PostgreSQL has a second one for storing answers, which locks no
    account. It commits while the first waits for the database.
    """

    def __init__(self, database: Database, observer: Observer = UNOBSERVED) -> None:
        connections = 1 if database.is_sqlite else 2
        self._queues = [_ConnectionQueue(database, observer) for _ in range(connections)]

    async def stop(self) -> None:
        """Finish all submitted work, then stop."""
        for queue in self._queues:
            await queue.stop()

    @property
    def waiting(self) -> int:
        """Number of orders and reads that wait or are carried out."""
        return sum(len(queue.jobs) for queue in self._queues)

    def lag_seconds(self) -> float:
        """Age of the oldest order or read that is not done."""
        arrivals = [queue.jobs[0].arrived for queue in self._queues if queue.jobs]
        return asyncio.get_running_loop().time() - min(arrivals) if arrivals else 0.0

    @property
    def stopped(self) -> bool:
        """True if charging was stopped when a connection last read that."""
        return any(queue.hot is not None and queue.hot.known.stopped for queue in self._queues)

    async def submit(self, order: WriterOrder) -> Outcome:
        """Carry out one order. Raises its refusal, or StoreUnavailable for an unknown outcome."""
        stores = isinstance(order, _STORES)
        result: Outcome = await self._queues[-1 if stores else 0].put(order)
        return result

    async def look(self, look: Callable[[WriterConnection, Statements], Awaitable[T]]) -> T:
        """Read through a writing connection, between two batches."""
        result: T = await self._queues[0].put(look)
        return result

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]:
        return await self.look(
            lambda hot, sql: find_accounts(hot, sql, book_id=book_id, holders=holders)
        )

    def known_account(self, book_id: str, holders: tuple[str, ...]) -> Account | None:
        hot = self._queues[0].hot
        return None if hot is None else hot.known.first_account(book_id, holders)

    async def answered(self, reuse_key: str) -> bool:
        keys = canonical([reuse_key])
        rows = await self.look(lambda hot, sql: hot.read([(sql.answers_to_reuse, (keys,))]))
        return any(row[1] is not None for row in rows[0])


class _ConnectionQueue:
    """One connection, and a task that commits waiting orders while there are any."""

    def __init__(self, database: Database, observer: Observer) -> None:
        self._database = database
        self._observer = observer
        self._current: list[_Job] = []
        self._sql = statements(sqlite=database.is_sqlite)
        self._waiting: list[_Job] = []
        self._task: asyncio.Task[None] | None = None
        self.hot: WriterConnection | None = None
        self._crowded = False  # True if the last batch had more than one order

    def put(self, work: WriterOrder | Look) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        job = _Job(work, loop.create_future(), loop.time())
        self._waiting.append(job)
        assert self._task is None or self._task.get_loop() is loop
        if self._task is None:
            self._task = loop.create_task(self._run())
        return job.future

    async def stop(self) -> None:
        while self._task is not None:
            await self._task
        self._disconnect()

    async def _run(self) -> None:
        try:
            while self._waiting:
                if self._database.is_sqlite:
                    await self._gather()
                jobs = self._waiting[:BATCH_MAX]
                del self._waiting[:BATCH_MAX]
                self._current = jobs
                await self._carry_out(jobs)
                self._current = []
        finally:
            self._task, self._current = None, []

    @property
    def jobs(self) -> list[_Job]:
        """All jobs that are not done, oldest first."""
        return self._current + self._waiting

    async def _gather(self) -> None:
        """Let the event loop read the requests that have arrived, while their number grows.

        No request is read while the loop writes. Nobody waits for time to pass, only for requests
        that are there to be read. The first round reads them, the second brings them here.
        """
        before = 0
        while before < len(self._waiting) < BATCH_MAX and (self._crowded or len(self._waiting) > 1):
            before = len(self._waiting)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        self._crowded = len(self._waiting) > 1

    async def _carry_out(self, jobs: list[_Job]) -> None:
        orders = [job for job in jobs if not callable(job.work)]
        if orders:
            self._observer.batch(len(orders))
            results = await self._settle([job.work for job in orders])  # type: ignore[misc]  # no looks
            for job, result in zip(orders, results, strict=True):
                _resolve(job.future, result)
        for job in jobs:
            if callable(job.work):
                _resolve(job.future, await self._look(job.work))

    async def _connected(self) -> WriterConnection:
        if self.hot is None:
            self.hot = await open_connection(self._database)
        return self.hot

    def _disconnect(self) -> None:
        hot, self.hot = self.hot, None
        if hot is not None:
            hot.close()

    async def _settle(self, orders: list[WriterOrder]) -> list[Result | Exception]:
        """Settle a batch; while the outcome is unknown, try again on a fresh connection."""
        for attempt in range(TRIES_MAX):
            try:
                hot = await self._connected()
                return list(await settle(orders, hot, self._sql, self._database.anchors))
            except ConnectionLost:
                self._disconnect()
            except WriteConflict:
                if len(orders) > 1:  # decide each alone, so that one cannot fail the others
                    return await self._one_by_one(orders)
            except Exception as error:  # noqa: BLE001  # the writer must outlive any one batch
                _log.error("a batch failed: %s", type(error).__name__)
                self._disconnect()
                if len(orders) > 1:
                    return await self._one_by_one(orders)
                return [StoreUnavailable(OUTCOME_UNKNOWN)]
            await asyncio.sleep(RETRY_SECONDS * attempt)
        return [StoreUnavailable(OUTCOME_UNKNOWN) for _ in orders]

    async def _one_by_one(self, orders: list[WriterOrder]) -> list[Result | Exception]:
        return [result for order in orders for result in await self._settle([order])]

    async def _look(self, look: Look) -> Any:
        for _ in range(2):
            try:
                return await look(await self._connected(), self._sql)
            except ConnectionLost:
                self._disconnect()
            except Exception as error:  # noqa: BLE001  # handed to the caller
                return error
        return StoreUnavailable("The ledger cannot be reached; try again.")


def _resolve(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():  # the caller has left
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
