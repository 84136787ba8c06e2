"""When a result that depends on rows may be shown: public times, counted from its charge."""

from typing import NamedTuple


class Leaving(NamedTuple):
    """Public times at which a result may leave: time-grid points, not before `first_seconds`.

    A result that is not ready by `first_seconds` leaves after twice, four times, ... that time. The
    rung of this ladder depends on how long the work took, so there are few rungs.
    """

    grid_seconds: float = 0.0  # 0: no grid
    first_seconds: float = 0.0  # end of the slot, on the grid; 0: the next point of the grid

    def rung(self, seconds: float) -> float:
        """First rung at or after `seconds`; without a slot there is no ladder."""
        rung = self.first_seconds or seconds
        while rung < seconds:
            rung *= 2
        return rung

    def overran(self, seconds: float) -> bool:
        """True if work that took `seconds` missed the end of its slot."""
        return 0.0 < self.first_seconds < seconds


AT_ONCE = Leaving()
