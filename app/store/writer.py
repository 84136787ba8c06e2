"""The writer of a process: it commits whatever is waiting together.

Hot routes hand it orders and await the outcome. Nobody hears of a charge before the batch it is in
is durable. While one batch is being written the next one gathers, so under load a commit carries
many charges, and alone a charge waits for nobody.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from app.errors import StoreUnavailable
from app.ledger.account import Account
from app.ledger.chain import canonical
from app.ledger.protocol import ForfeitOrder, Order, Outcome, ProgressOrder, RecordOrder
from app.ledger.stream_protocol import AnswerAskOrder, ForfeitAskOrder
from app.store.budgets import find_accounts
from app.store.connect import Database
from app.store.hot import Broken, Clash, HotConnection, open_hot
from app.store.settle import Result, settle
from app.store.statements import Statements, statements

BATCH_MAX = 256
TRIES_MAX = 6
RETRY_SECONDS = 0.25

T = TypeVar("T")
Look = Callable[[HotConnection, Statements], Any]
_log = logging.getLogger("bursar.writer")


_STORES = RecordOrder | ForfeitOrder | ProgressOrder | AnswerAskOrder | ForfeitAskOrder


class _Job:
    """An order or a look, and the loop and future that wait for it."""

    __slots__ = ("future", "loop", "work")

    def __init__(self, work: Order | Look) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()


class Writer:
    """The process's writing connections; start, submit from any event loop, stop.

    SQLite has one lane. PostgreSQL has a second one for storing answers, which needs no account:
    it commits while the first waits for the database.
    """

    def __init__(self, database: Database) -> None:
        self._lanes = [_Lane(database) for _ in range(1 if database.is_sqlite else 2)]

    def start(self) -> None:
        for lane in self._lanes:
            lane.start()

    def stop(self) -> None:
        """Finish what was handed over, then end."""
        for lane in self._lanes:
            lane.stop()

    async def submit(self, order: Order) -> Outcome:
        """Carry out one order; raises the refusal, or StoreUnavailable: then nobody knows."""
        stores = isinstance(order, _STORES)
        result: Outcome = await self._lanes[-1 if stores else 0].put(order)
        return result

    async def look(self, look: Callable[[HotConnection, Statements], T]) -> T:
        """Read through a writing connection, between two batches."""
        result: T = await self._lanes[0].put(look)
        return result

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]:
        return await self.look(
            lambda hot, sql: find_accounts(hot, sql, book_id=book_id, holders=holders)
        )

    async def answered(self, reuse_key: str) -> bool:
        wanted = canonical([reuse_key])
        found = await self.look(lambda hot, sql: hot.read([(sql.answers_to_reuse, (wanted,))]))
        return any(row[1] is not None for row in found[0])


class _Lane:
    """One thread with one connection, that commits whatever is waiting together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = statements(sqlite=database.is_sqlite)
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._hot: HotConnection | None = None
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def put(self, work: Order | Look) -> asyncio.Future[Any]:
        job = _Job(work)
        self._queue.put(job)
        return job.future

    # The thread

    def _run(self) -> None:
        last = False
        while not last:
            jobs = [self._queue.get()]
            while len(jobs) < BATCH_MAX:
                try:
                    jobs.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            last = None in jobs
            self._carry_out([job for job in jobs if job is not None])
        if self._hot is not None:
            self._hot.close()

    def _carry_out(self, jobs: list[_Job]) -> None:
        looks = [job for job in jobs if callable(job.work)]
        orders = [job for job in jobs if not callable(job.work)]
        done: list[tuple[_Job, Any]] = []
        if orders:
            results = self._settle([job.work for job in orders])  # type: ignore[misc]  # no looks
            done += zip(orders, results, strict=True)
        for job in looks:
            done.append((job, self._look(job.work)))  # type: ignore[arg-type]  # only looks here
        for loop in {job.loop for job, _ in done}:
            mine = [(job.future, result) for job, result in done if job.loop is loop]
            try:
                loop.call_soon_threadsafe(_deliver, mine)
            except RuntimeError:
                _log.warning("an event loop ended before its orders were answered")

    def _connected(self) -> HotConnection:
        if self._hot is None:
            self._hot = open_hot(self._database)
        return self._hot

    def _disconnect(self) -> None:
        hot, self._hot = self._hot, None
        if hot is not None:
            hot.close()

    def _settle(self, orders: list[Order]) -> list[Result | Exception]:
        """Settle a batch, again on a fresh connection while the outcome is unknown."""
        for attempt in range(TRIES_MAX):
            try:
                return list(settle(orders, self._connected(), self._sql))
            except Broken:
                self._disconnect()
            except Clash:
                if len(orders) > 1:  # decide each alone, so that one cannot spoil the others
                    return [result for order in orders for result in self._settle([order])]
            except Exception as error:  # noqa: BLE001  # the writer must outlive any one batch
                _log.error("a batch failed: %s", type(error).__name__)
                self._disconnect()
                if len(orders) > 1:
                    return [result for order in orders for result in self._settle([order])]
                return [StoreUnavailable(UNKNOWN)]
            time.sleep(RETRY_SECONDS * attempt)
        return [StoreUnavailable(UNKNOWN) for _ in orders]

    def _look(self, look: Look) -> Any:
        for _ in range(2):
            try:
                return look(self._connected(), self._sql)
            except Broken:
                self._disconnect()
            except Exception as error:  # noqa: BLE001  # handed to the one who looked
                return error
        return StoreUnavailable("The ledger cannot be reached; try again.")


UNKNOWN = "The ledger cannot be reached; send the same request with the same Idempotency-Key again."


def _deliver(results: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in results:
        if future.cancelled():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
