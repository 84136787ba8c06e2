"""When something that depends on rows may be seen: public times, counted from its charge."""

from typing import NamedTuple


class Leaving(NamedTuple):
    """On points of a grid, and not before `first_seconds` if there is a slot.

    What is not ready by `first_seconds` leaves on a ladder of twice, four times, ... as long: the
    rung depends on how long the work took, so rungs are few.
    """

    grid_seconds: float = 0.0  # 0 is no grid
    first_seconds: float = 0.0  # the end of the slot, on the grid; 0 is the next point of the grid

    def rung(self, seconds: float) -> float:
        """The first rung at or after so many seconds."""
        rung = self.first_seconds
        while rung < seconds:
            rung *= 2
        return rung


AT_ONCE = Leaving()
