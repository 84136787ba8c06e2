"""Statistic with a proposed bound on local sensitivity: its value, and its distance from unsafe
tables.

For a bound B a statistic has a distance d. One person changes d by at most 1. If one person can
change the value by more than B, d = 0 before and after (`rank_distance.py`, and below). Both are
integers on a public grid.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from app.mechanisms.propose_test_release.rank_distance import rank_distance, reach_of
from app.mechanisms.release import DataReader
from app.mechanisms.smooth_sensitivity.rank_bound import rank_work
from app.mechanisms.work import Work
from app.queries.ranks.iqr import QUARTILES
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.window import Span, Window
from app.queries.tally import Tally


class LocalStatistic(Protocol):
    @property
    def tally(self) -> Tally:
        """The rows that count."""
        ...

    @property
    def is_instant(self) -> bool: ...

    @property
    def grid_exponent(self) -> int: ...

    @property
    def limits(self) -> Span:
        """Least and largest possible value, in steps of the grid."""
        ...

    def read(self, data: DataReader, cap: int) -> Any:
        """Read the input of `value` and of distances up to the cap."""
        ...

    def work(self, cap: int, bounds: int) -> Work:
        """Work to read the data and to compute distances for `bounds` bounds."""
        ...

    def value(self, data_read: Any) -> int: ...

    def distance(self, data_read: Any, bound: int, cap: int) -> int:
        """Distance in persons, at most the cap; equal to the cap if no change exceeds B."""
        ...


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """The value at a rank, or the difference of two such values.

    For two ranks, d is the lesser of both distances, which is 1-Lipschitz as both are. It must
    be 0 where the difference of the two values changes by more than B. This holds if one of the
    values then moves by more than the share of B for which its d is computed. The share is B
    itself where one row cannot move two values in opposite directions:

        fixed n: a row that is replaced by a larger one moves no value down;

        moving n, one row per person, quartiles: an added row v moves a value down only if v is
        below it and its rank stays, and up only if v is above it and the rank grows. So the lower
        value moves up and the upper one down only if the lower rank alone grows. But the rank of
        a quarter of n rows grows where 4 divides n, and then that of three quarters grows too.
        The lower one moves down and the upper one up only if v is below the first and above the
        second.

    Otherwise the share is half of B for each, rounded down for one and up for the other."""

    shape: RankShape

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def is_instant(self) -> bool:
        return False

    @property
    def grid_exponent(self) -> int:
        return self.shape.grid_exponent

    @property
    def limits(self) -> Span:
        return (0, self.shape.width) if self.shape.statistic == "distance" else self.shape.bounds

    def read(self, data: DataReader, cap: int) -> tuple[Window, ...]:
        return self.shape.windows(data.steps, data.exact, reach_of(self.shape, cap))

    def work(self, cap: int, bounds: int) -> Work:
        return rank_work(self.shape, cap, bounds)

    def value(self, data_read: tuple[Window, ...]) -> int:
        ends = [
            window[rule(window.count)]
            for window, rule in zip(data_read, self.shape.ranks, strict=True)
        ]
        return ends[-1] - ends[0] if self.shape.statistic == "distance" else ends[0]

    def distance(self, data_read: tuple[Window, ...], bound: int, cap: int) -> int:
        if bound >= self.shape.width:
            return cap
        return min(
            rank_distance(self.shape, window, rule, share, cap)
            for window, rule, share in zip(
                data_read, self.shape.ranks, self._shares(bound), strict=True
            )
        )

    def _shares(self, bound: int) -> list[int]:
        shape = self.shape
        if shape.fixed or len(shape.ranks) == 1 or (shape.moves == 1 and shape.ranks == QUARTILES):
            return [bound] * len(shape.ranks)
        return [bound // 2, bound - bound // 2]
