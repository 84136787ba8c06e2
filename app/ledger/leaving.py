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
        """The first rung at or after so many seconds; there is no ladder without a slot."""
        rung = self.first_seconds or seconds
        while rung < seconds:
            rung *= 2
        return rung

    def overran(self, seconds: float) -> bool:
        """Has work of so many seconds missed the end of its slot?"""
        return 0.0 < self.first_seconds < seconds


AT_ONCE = Leaving()
