"""What a bound on local sensitivity is proposed for: a number, and how far tables are from unsafe.

For a bound B a statistic tells its distance d: one person changes d by at most 1, and if one person
can change the number by more than B, d = 0 before and after (`rank_distance.py`, and below). Both
are whole numbers on a public grid.
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
        """Between which the number is, in steps of its grid."""
        ...

    def read(self, data: DataReader, cap: int) -> Any:
        """What number and distances up to the cap are made of."""
        ...

    def work(self, cap: int, bounds: int) -> Work:
        """What reading it and its distances for so many bounds takes."""
        ...

    def value(self, found: Any) -> int: ...

    def distance(self, found: Any, bound: int, cap: int) -> int:
        """In persons, and at most the cap; the cap itself where nothing moves further than B."""
        ...


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """The value at a rank, or how far two of them are apart.

    Of two ranks the lesser d is taken, which is 1-Lipschitz as both are. It is 0 where the distance
    of the two values changes by more than B, if one of the values then moves as far as its d is
    for. That is B itself where one row cannot move two values in opposite ways:

        fixed n: a row that is replaced by a larger one moves no value down (mechanism sheet, M17);
        moving n, one row a person, quartiles: a row v that comes moves a value down only if it is
        below it and its rank stays, and up only if it is above it and the rank grows. So the lower
        value moves up and the upper one down only if the lower rank alone grows; but that of a
        quarter of n rows grows where 4 divides n, and then that of three quarters does too. And
        the lower one down and the upper one up only if v is below the first and above the second.

    Elsewhere it is half of B for each, rounded down for one and up for the other.
    """

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

    def value(self, found: tuple[Window, ...]) -> int:
        ends = [
            window[rule(window.count)] for window, rule in zip(found, self.shape.ranks, strict=True)
        ]
        return ends[-1] - ends[0] if self.shape.statistic == "distance" else ends[0]

    def distance(self, found: tuple[Window, ...], bound: int, cap: int) -> int:
        if bound >= self.shape.width:
            return cap
        return min(
            rank_distance(self.shape, window, rule, share, cap)
            for window, rule, share in zip(
                found, self.shape.ranks, self._shares(bound), strict=True
            )
        )

    def _shares(self, bound: int) -> list[int]:
        shape = self.shape
        if shape.fixed or len(shape.ranks) == 1 or (shape.moves == 1 and shape.ranks == QUARTILES):
            return [bound] * len(shape.ranks)
        return [bound // 2, bound - bound // 2]
