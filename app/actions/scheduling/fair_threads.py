"""Threads that analysts share in turns, no matter how much work one of them submits.

The threads choose the next work themselves. Choosing on the event loop would cost one round of a
busy loop for each piece of work.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Task(NamedTuple):
    analyst: str
    work: Callable[[], Any]
    future: "asyncio.Future[Any]"


class FairThreads:
    """Work is submitted from one event loop, and its results are delivered there."""

    def __init__(self, name: str, threads: int, threads_each: int) -> None:
        """`threads_each`: number of threads that one analyst may hold at a time."""
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads = threads
        self._threads_each = threads_each
        self._lock = Lock()  # guards the next three attributes
        self._waiting: OrderedDict[str, deque[_Task]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._active_threads = 0
        self._results: deque[tuple[_Task, Any, BaseException | None]] = deque()
        self._is_delivering = False

    def submit(self, analyst: str, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run the work when it is the analyst's turn and a thread is free."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = _Task(analyst, work, future)
        with self._lock:
            self._waiting.setdefault(analyst, deque()).append(task)
            if self._active_threads == self._threads:
                return future
            self._active_threads += 1
        self.pool.submit(self._take_turns)
        return future

    def withdraw(self, analyst: str, future: "asyncio.Future[Any]") -> bool:
        """Withdraw waiting work; False if a thread has taken it."""
        with self._lock:
            queue = self._waiting.get(analyst, deque())
            task = next((task for task in queue if task.future is future), None)
            if task is None:
                return False
            queue.remove(task)
            if not queue:
                del self._waiting[analyst]
        future.cancel()
        return True

    def waiting(self, analyst: str) -> int:
        """Number of an analyst's tasks that wait for a thread."""
        return len(self._waiting.get(analyst, ()))

    def all_waiting(self) -> int:
        """Number of tasks that wait for a thread."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def _take_turns(self) -> None:
        """On a thread: run waiting tasks until none may run.

        An analyst who holds all allowed threads is served again by the first of them that ends.
        """
        with self._lock:
            task = self._choose()
        while task is not None:
            result, error = None, None
            try:
                result = task.work()
            except BaseException as raised:  # noqa: BLE001  # raised again where it is awaited
                error = raised
            self._deliver(task, result, error)
            with self._lock:
                self._running[task.analyst] -= 1
                if not self._running[task.analyst]:
                    del self._running[task.analyst]
                task = self._choose()

    def _choose(self) -> _Task | None:
        """The first task of the analyst who has waited longest for a turn; None ends the thread."""
        for analyst, queue in self._waiting.items():
            if self._running[analyst] >= self._threads_each:
                continue
            task = queue.popleft()
            self._running[analyst] += 1
            if queue:
                self._waiting.move_to_end(analyst)
            else:
                del self._waiting[analyst]
            return task
        self._active_threads -= 1
        return None

    def _deliver(self, task: _Task, result: Any, error: BaseException | None) -> None:
        """Wake the event loop once for all results that it has not fetched yet."""
        self._results.append((task, result, error))
        if self._is_delivering:
            return
        self._is_delivering = True
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            task.future.get_loop().call_soon_threadsafe(self._fetch)

    def _fetch(self) -> None:
        self._is_delivering = False  # first: a result that comes now wakes the loop again
        while self._results:
            task, result, error = self._results.popleft()
            if task.future.done():
                continue  # nobody waits for it
            if error is None:
                task.future.set_result(result)
            else:
                task.future.set_exception(error)
