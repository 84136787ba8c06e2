"""Slots for queries: when each begins, when its reply may leave, and on which thread it runs.

Three rules hide private durations from the analyst (decision 0012):

1. A query starts when its slot begins on the public clock (`slot_clock.py`), not before.
2. Its reply leaves when the slot ends, rounded up to the time grid.
3. Work that is not done by then leaves on a ladder whose rungs double. That is rare, and counted,
   because the rung depends on how long the work took.

Simple counts, other short queries, long ones and runs of many steps have separate lanes, so that a
count never waits behind long work. With the time grid off there are no slots: a free thread takes
the next work, and only the turns among analysts remain.
"""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from app.actions.scheduling.fair_threads import FairThreads
from app.actions.scheduling.slot_clock import SlotClock, Ticket
from app.ports.telemetry import UNOBSERVED, Observer

QUICK_SECONDS = 0.01
SHORT_SECONDS = 0.25
# Parallel quick slots per processor. On two processors 1,300 simple counts begin in a second, and
# 4,500 are answered without slots: slots are mostly margin.
QUICK_LANES = 4
STORE_SECONDS = 0.01  # to store the answer at the end of the slot
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lanes:
    """Number of parallel slots of each kind, and of spare threads."""

    quick: int
    short: int
    long: int
    stepped: int
    spare_threads: int = 4  # for work that has overrun its slot


class Turn:
    """One query's turn without public times: it runs as soon as a thread is free."""

    def __init__(self, threads: FairThreads, analyst: str) -> None:
        self._threads = threads
        self._analyst = analyst
        self.overran = False
        self._work: asyncio.Future[Any] | None = None
        self._arrived = asyncio.get_running_loop().time()
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.begun.set_result(None)

    def start(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        future = self._threads.submit(self._analyst, work)
        future.add_done_callback(_look_at_error)
        self._work = future
        return future

    def withdraw(self) -> bool:
        """Withdraw the work; False if it has begun."""
        return self._work is None or self._threads.withdraw(self._analyst, self._work)

    def seconds_since_arrival(self) -> float:
        return asyncio.get_running_loop().time() - self._arrived

    def abandon(self) -> None:
        """Give up the turn if no work was started in it."""

    @property
    def public_times(self) -> None:
        return None

    def first_seconds(self, grid_seconds: float) -> float:
        return 0.0

    def progress(self, steps: int) -> int:
        return 0


class Slot:
    """One query's slot on the public clock. Everything about it is public except overruns."""

    def __init__(self, line: "Line", ticket: Ticket) -> None:
        self._line = line
        self._ticket = ticket
        self._started = False
        self.overran = False  # True if the work was not done at the end of the slot
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run the work on a thread of the line."""
        self._started = True
        future = self._line.threads.submit(self._ticket.analyst, work)
        future.add_done_callback(_look_at_error)
        return future

    def withdraw(self) -> bool:
        """Always False: whether a thread has taken the work is private."""
        return False

    def seconds_since_arrival(self) -> float:
        return asyncio.get_running_loop().time() - self._ticket.arrived

    def abandon(self) -> None:
        """Give up the slot if no work was started in it."""
        if not self._started:
            self._line.withdraw(self._ticket)

    @property
    def public_times(self) -> tuple[float, float] | None:
        """Begin and end of the slot if work was started in it."""
        begins = self._ticket.begins
        return None if begins is None or not self._started else (begins, self._ticket.ends)

    def first_seconds(self, grid_seconds: float) -> float:
        """Earliest time of the reply, in seconds after arrival: a time-grid point."""
        if not grid_seconds:
            return 0.0
        taken = self._ticket.ends - self._ticket.arrived + STORE_SECONDS
        return math.ceil(taken / grid_seconds - 1e-9) * grid_seconds

    def progress(self, steps: int) -> int:
        """Number of these steps to show: the public share of the slot, not the run's own step."""
        begins = self._ticket.begins
        if begins is None:
            return 0
        share = (asyncio.get_running_loop().time() - begins) / self._ticket.seconds
        return int(min(max(share, 0.0), 1.0) * steps)


def _look_at_error(future: "asyncio.Future[Any]") -> None:
    """Retrieve the error; otherwise the event loop would log it, and its text may hold a value."""
    if not future.cancelled():
        future.exception()


class Line:
    """Queries of one kind: threads, a clock, and a timer for the next slot."""

    def __init__(self, name: str, lanes: int, threads: int) -> None:
        self.name = name
        # Overruns of one analyst never take the last thread from the others.
        self.threads = FairThreads(name, threads, threads - 1 if threads > 2 else threads)
        self._clock = SlotClock(lanes)
        self._slots: dict[int, Slot] = {}
        self._timer: asyncio.TimerHandle | None = None

    def arrive(self, analyst: str, seconds: float) -> Slot:
        now = asyncio.get_running_loop().time()
        self._advance(now)
        ticket = self._clock.arrive(now, analyst, seconds)
        slot = self._slots[id(ticket)] = Slot(self, ticket)
        self._advance(now)
        return slot

    @property
    def waiting(self) -> int:
        """Number of queries whose slot has not begun."""
        return self._clock.waiting

    def withdraw(self, ticket: Ticket) -> None:
        """Withdraw a waiting slot; one that has begun takes its full time."""
        self._advance(asyncio.get_running_loop().time())
        if self._clock.withdraw(ticket):
            del self._slots[id(ticket)]

    def _advance(self, now: float) -> None:
        for ticket in self._clock.advance(now):
            slot = self._slots.pop(id(ticket))
            if not slot.begun.done():
                slot.begun.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self._clock.next_event(now)
        if at is not None:
            self._timer = asyncio.get_running_loop().call_at(at, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._advance(asyncio.get_running_loop().time())


class Slots:
    """Hands out slots. Used from one event loop."""

    def __init__(
        self,
        lanes: Lanes,
        *,
        public: bool,
        grid_seconds: float = 0.0,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self._public = public
        self._grid_ms = round(grid_seconds * 1000)
        self._observer = observer
        spare = lanes.spare_threads
        self._quick = Line("quick", lanes.quick, lanes.quick + spare)
        self._short = Line("short", lanes.short, lanes.short + spare)
        self._long = Line("long", lanes.long, lanes.long + spare)
        self._stepped = Line("learner", lanes.stepped, lanes.stepped + spare)
        self._lines = (self._quick, self._short, self._long, self._stepped)

    def arrive(self, analyst: str, seconds: float, *, stepped: bool = False) -> Slot | Turn:
        """A slot of this public duration, in seconds; it begins when `begun` is done."""
        if stepped:
            line = self._stepped
        elif seconds <= QUICK_SECONDS:
            line = self._quick
        else:
            line = self._short if seconds <= SHORT_SECONDS else self._long
        if not self._public:
            return Turn(line.threads, analyst)
        self._observer.count("slots", line.name)
        if self._grid_ms:
            milliseconds = math.ceil(seconds * 1000 / self._grid_ms) * self._grid_ms
            self._observer.count("slot_ms", line.name, milliseconds)
        return line.arrive(analyst, seconds)

    @property
    def waiting(self) -> int:
        """Number of queries that wait for their slot, or without slots for a thread."""
        if self._public:
            return sum(line.waiting for line in self._lines)
        return sum(line.threads.all_waiting() for line in self._lines)

    def report(self, slot: Slot | Turn, kind: str) -> None:
        """Count and trace a query when its reply may be shown; all times here are public."""
        if slot.overran:
            self._observer.count("overruns", kind)
        times = slot.public_times
        if times is not None:
            begins, ends = times
            shown = asyncio.get_running_loop().time()
            ends = shown if slot.overran else min(ends, shown)
            work, record = ("private work", begins, ends), ("record", ends, shown)
            self._observer.past_spans(work, record)

    @property
    def pools(self) -> list[ThreadPoolExecutor]:
        return [line.threads.pool for line in self._lines]


def lanes_for(processors: int, workers: int, *, public: bool) -> Lanes:
    """Lanes of one worker: a slot for each of its processors, and QUICK_LANES quick ones for each.

    Without public times the number of threads is the limit, and the operating system shares the
    processors.
    """
    own = max(1, processors // workers)
    return Lanes(QUICK_LANES * own, own, own, own) if public else Lanes(8, 8, 4, 2, spare_threads=0)
