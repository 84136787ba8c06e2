"""A public clock for waiting queries: when each slot begins, from public facts alone.

A slot is a public duration that a query's plan fixes before any row is read. The clock processes
the waiting slots as if each lane took exactly that long for each slot. It reads arrivals, durations
and analysts, and nothing else. The real duration of the work moves no slot, neither the query's own
nor a later one. So a burst of queries reveals no more than a single query.

Analysts take turns: a lane that becomes free goes to the analyst who has waited longest for a turn,
no matter how many queries another analyst has waiting.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Ticket:
    """One query's position in the queue, and its slot once that has begun."""

    analyst: str
    seconds: float  # public duration of the slot
    arrived: float
    begins: float | None = None
    lane: int = -1

    @property
    def ends(self) -> float:
        assert self.begins is not None, "the slot has not begun"
        return self.begins + self.seconds


class SlotClock:
    """Pure bookkeeping on the caller's clock, which never goes back."""

    def __init__(self, lanes: int) -> None:
        self._free_at = [float("-inf")] * lanes
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()

    def arrive(self, now: float, analyst: str, seconds: float) -> Ticket:
        """Queue a query. Call `advance(now)` first, so that earlier events come first."""
        ticket = Ticket(analyst, seconds, now)
        self._waiting.setdefault(analyst, deque()).append(ticket)
        return ticket

    def advance(self, now: float) -> list[Ticket]:
        """Slots that have begun by now, in the order in which they began."""
        begun = []
        while (ticket := self._begin_next(now)) is not None:
            begun.append(ticket)
        return begun

    def withdraw(self, ticket: Ticket) -> bool:
        """Withdraw a waiting query; False if its slot has begun, which then takes its full time."""
        queue = self._waiting.get(ticket.analyst)
        if ticket.begins is not None or queue is None:
            return False
        queue.remove(ticket)
        if not queue:
            del self._waiting[ticket.analyst]
        return True

    @property
    def waiting(self) -> int:
        """Number of queries whose slot has not begun."""
        return sum(map(len, self._waiting.values()))

    def next_event(self, now: float) -> float | None:
        """Time at which the next lane is free for a waiting query; None if none waits."""
        if not self._waiting:
            return None
        return min((at for at in self._free_at if at > now), default=None)

    def _begin_next(self, now: float) -> Ticket | None:
        """Give the lane that is free first to the analyst whose turn it is."""
        if not self._waiting:
            return None
        lane = min(range(len(self._free_at)), key=self._free_at.__getitem__)
        if self._free_at[lane] > now:
            return None
        analyst, queue = next(iter(self._waiting.items()))
        ticket = queue.popleft()
        if queue:
            self._waiting.move_to_end(analyst)
        else:
            del self._waiting[analyst]
        # A late call must not move the slot: it begins when the lane became free.
        ticket.begins, ticket.lane = max(self._free_at[lane], ticket.arrived), lane
        self._free_at[lane] = ticket.ends
        return ticket
