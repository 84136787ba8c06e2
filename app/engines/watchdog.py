"""One thread of the process that interrupts overdue cursors, and those of stopped queries.

An interruption can come just before the statement starts and be lost. So an overdue cursor is
interrupted repeatedly until its query ends. A cursor is interrupted only while its query is being
watched, so that the next query on it is never hit by mistake.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Thread, local
from typing import Protocol

from app.ports.engines import Stop

AGAIN_SECONDS = 0.02


class Interruptible(Protocol):
    def interrupt(self) -> None: ...


class Watchdog:
    def __init__(self) -> None:
        self._changed = Condition()
        self._due: dict[int, tuple[float, Interruptible, Stop | None]] = {}
        self._stops = local()  # for each thread, what may stop its current query
        self._wakes_at = float("inf")
        self._next = 0
        self._thread: Thread | None = None

    @contextmanager
    def watch(self, cursor: Interruptible, timeout_seconds: float) -> Iterator[None]:
        """Interrupt the cursor if the block takes longer than `timeout_seconds`."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            if self._thread is None or not self._thread.is_alive():  # also after a fork
                self._thread = Thread(target=self._run, name="engine-watchdog", daemon=True)
                self._thread.start()
            self._next += 1
            number = self._next
            stop = getattr(self._stops, "current", None)
            self._due[number] = (deadline, cursor, stop)
            stopped = stop is not None and stop.ended
            if (
                stopped or deadline < self._wakes_at
            ):  # otherwise the thread wakes in time by itself; waking it is expensive
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._due[number]

    @contextmanager
    def stoppable(self, stop: Stop) -> Iterator[None]:
        """Also interrupt this thread's cursors when `stop` has ended."""
        self._stops.current = stop
        try:
            with stop.notifying(self._look_now):
                yield
        finally:
            self._stops.current = None

    def _look_now(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                self._wakes_at = self._interrupt_overdue(now)
                idle = self._wakes_at == float("inf")
                self._changed.wait(None if idle else self._wakes_at - now)

    def _interrupt_overdue(self, now: float) -> float:
        """Time of the next check. A method, so that no cursor is held while the thread sleeps."""
        wakes_at = float("inf")
        for deadline, cursor, stop in self._due.values():
            if deadline <= now or (stop is not None and stop.ended):
                cursor.interrupt()
                deadline = now + AGAIN_SECONDS
            wakes_at = min(wakes_at, deadline)
        return wakes_at


WATCHDOG = Watchdog()
