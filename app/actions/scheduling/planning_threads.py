"""Threads for planning, and for free requests that compute: shared in turns among analysts.

They work on public facts and on the ledger, and may take seconds.

Planning holds Python's interpreter lock, so more threads would not plan more. One analyst holds one
thread at a time, so nobody's simple query waits for more than one large plan of somebody else.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.actions.scheduling.fair_threads import FairThreads
from app.caches import owned_by
from app.errors import TooManyRunning

T = TypeVar("T")
THREADS = 2


class PlanningThreads:
    """Threads for one purpose. Used from one event loop."""

    def __init__(
        self,
        threads: int = THREADS,
        waiting_each: int = 100,
        purpose: str = "planning",
        called: str = "questions",
    ) -> None:
        self._threads = FairThreads(purpose, threads, threads_each=max(1, threads - 1))
        self._purpose = purpose
        self._called = called
        self._waiting_each = waiting_each

    async def run(self, analyst_id: str, work: Callable[[], T]) -> T:
        """Run work in turn; this analyst owns what it caches. Raises TooManyRunning."""
        if self._threads.waiting(analyst_id) >= self._waiting_each:
            raise TooManyRunning(
                f"{self._waiting_each} of your {self._called} are waiting for {self._purpose}: "
                "ask again when one of them is done. Nothing was charged."
            )

        def owned() -> T:
            with owned_by(analyst_id):
                return work()

        planned = self._threads.submit(analyst_id, owned)
        try:
            return await planned
        finally:
            if not planned.done() or planned.cancelled():
                self._threads.withdraw(analyst_id, planned)

    @property
    def waiting(self) -> int:
        return self._threads.all_waiting()

    @property
    def pool(self) -> ThreadPoolExecutor:
        return self._threads.pool
