"""Slots for questions: when each begins, when its reply may leave, and on which thread it runs.

Three rules keep private time out of what an analyst can see (decision 0040):

1. A question starts when its slot begins on the public clock (`slot_clock.py`), not before.
2. Its reply leaves when the slot ends, rounded up to the time grid.
3. Work that is not done by then leaves on a ladder whose rungs double. That is rare, counted and
   logged, because the rung depends on how long the work took.

Plain counts, other short questions, long ones and runs of many steps have lanes of their own, so
that a count never waits behind somebody's minutes of work. With the time grid off there are no
slots: a lane is free again when its work is done, and only the turns among analysts remain.
"""

import asyncio
import logging
import math
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from app.actions.slot_clock import SlotClock, Ticket

QUICK_SECONDS = 0.01
SHORT_SECONDS = 0.25
STORE_SECONDS = 0.01  # to store the answer at the end of the slot
T = TypeVar("T")
_log = logging.getLogger("bursar.slots")


@dataclass(frozen=True, slots=True)
class Lanes:
    """How many slots of each kind run side by side, and on how many threads."""

    quick: int
    short: int
    long: int
    stepped: int
    spare_threads: int = 4  # for work that has overrun its slot


class Slot:
    """One question's turn. Everything about it is public but `overran`."""

    def __init__(self, line: "Line", ticket: Ticket) -> None:
        self._line = line
        self._ticket = ticket
        self._started = False
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run on a thread of the line. Without public times the lane is free when it ends."""
        self._started = True
        future = self._line.run(self._ticket.analyst, work)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future: "asyncio.Future[Any]") -> None:
        if not future.cancelled():
            future.exception()  # looked at, or the loop would log it, and its text may hold a value
        self._line.done(self._ticket)

    def seconds_since_arrival(self) -> float:
        return asyncio.get_running_loop().time() - self._ticket.arrived

    def abandon(self) -> None:
        """Give the turn up, if no work was started in it."""
        if not self._started and not self._line.withdraw(self._ticket):
            self._line.done(self._ticket)

    def first_seconds(self, grid_seconds: float) -> float:
        """How long after its arrival the reply may leave at the earliest: a point of the grid."""
        if not grid_seconds:
            return 0.0
        taken = self._ticket.ends - self._ticket.arrived + STORE_SECONDS
        return math.ceil(taken / grid_seconds - 1e-9) * grid_seconds

    def progress(self, steps: int) -> int:
        """How many steps a run of so many shows: the public share of its slot, never its own."""
        begins = self._ticket.begins
        if begins is None or not math.isfinite(self._ticket.seconds):
            return 0
        share = (asyncio.get_running_loop().time() - begins) / self._ticket.seconds
        return int(min(max(share, 0.0), 1.0) * steps)


class Line:
    """The questions of one kind: a clock, its threads, and a timer for the next slot."""

    def __init__(
        self, name: str, lanes: int, threads: int, *, lanes_each: int | None = None
    ) -> None:
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        # Overruns of one analyst never take the last thread from the others.
        self._threads_each = threads - 1 if threads > 2 else threads
        self._running: Counter[str] = Counter()
        self._queued: dict[str, deque[tuple[Callable[[], Any], asyncio.Future[Any]]]] = {}
        self._clock = SlotClock(lanes, lanes_each)
        self._slots: dict[int, Slot] = {}
        self._timer: asyncio.TimerHandle | None = None

    def arrive(self, analyst: str, seconds: float) -> Slot:
        now = asyncio.get_running_loop().time()
        self._advance(now)
        ticket = self._clock.arrive(now, analyst, seconds)
        slot = self._slots[id(ticket)] = Slot(self, ticket)
        self._advance(now)
        return slot

    def run(self, analyst: str, work: Callable[[], T]) -> "asyncio.Future[T]":
        """On a thread, as soon as the analyst may hold one more."""
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queued.setdefault(analyst, deque()).append((work, result))
        self._run_queued(analyst)
        return result

    def _run_queued(self, analyst: str) -> None:
        queue = self._queued.get(analyst)
        while queue and self._running[analyst] < self._threads_each:
            work, result = queue.popleft()
            self._running[analyst] += 1
            future = asyncio.wrap_future(self.threads.submit(work))
            future.add_done_callback(partial(self._ran, analyst, result))
        if not queue:
            self._queued.pop(analyst, None)

    def _ran(
        self, analyst: str, result: "asyncio.Future[Any]", future: "asyncio.Future[Any]"
    ) -> None:
        self._running[analyst] -= 1
        if not self._running[analyst]:
            del self._running[analyst]
        error = None if future.cancelled() else future.exception()
        if result.done():
            pass  # nobody waits for it any more
        elif future.cancelled():
            result.cancel()
        elif error is not None:
            result.set_exception(error)
        else:
            result.set_result(future.result())
        self._run_queued(analyst)

    def waiting(self, analyst: str) -> int:
        return self._clock.waiting(analyst)

    def withdraw(self, ticket: Ticket) -> bool:
        self._advance(asyncio.get_running_loop().time())
        withdrawn = self._clock.withdraw(ticket)
        if withdrawn:
            del self._slots[id(ticket)]
        return withdrawn

    def done(self, ticket: Ticket) -> None:
        if ticket.begins is not None and math.isinf(ticket.seconds):
            now = asyncio.get_running_loop().time()
            self._clock.release(ticket, now)
            self._advance(now)

    def _advance(self, now: float) -> None:
        for ticket in self._clock.advance(now):
            slot = self._slots.pop(id(ticket))
            if not slot.begun.done():
                slot.begun.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self._clock.next_event(now)
        if at is not None and math.isfinite(at):
            self._timer = asyncio.get_running_loop().call_at(at, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._advance(asyncio.get_running_loop().time())


class Slots:
    """Hands out slots. Used from one event loop."""

    def __init__(self, lanes: Lanes, *, public: bool) -> None:
        self._public = public
        spare = lanes.spare_threads
        self._quick = Line("quick", lanes.quick, lanes.quick + spare)
        self._short = Line("short", lanes.short, lanes.short + spare)
        self._long = Line("long", lanes.long, lanes.long + spare)
        self._stepped = Line("learner", lanes.stepped, lanes.stepped + spare)
        self.overruns = 0

    def arrive(self, analyst: str, seconds: float, *, stepped: bool = False) -> Slot:
        """A slot of this public duration; it begins when `begun` is done."""
        if stepped:
            line = self._stepped
        elif seconds <= QUICK_SECONDS:
            line = self._quick
        else:
            line = self._short if seconds <= SHORT_SECONDS else self._long
        return line.arrive(analyst, seconds if self._public else math.inf)

    def overran(self, kind: str) -> None:
        """Shown to the operator; the kind of question is public, how long it took is not."""
        self.overruns += 1
        _log.warning("a %s overran its slot (%d since the start)", kind, self.overruns)

    @property
    def pools(self) -> list[ThreadPoolExecutor]:
        return [line.threads for line in (self._quick, self._short, self._long, self._stepped)]


def lanes_for(processors: int, workers: int, *, public: bool) -> Lanes:
    """As many slots side by side as this worker has processors, and twice as many quick ones, whose
    slots are mostly margin. Without public times the threads themselves are the limit, as the
    operating system shares the processors."""
    own = max(1, processors // workers)
    return Lanes(2 * own, own, own, own) if public else Lanes(8, 8, 4, 2, spare_threads=0)
