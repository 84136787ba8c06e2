"""Means as statistics with a proposed bound: of all present values, and of middle ranks.

Both are rounded down to a grid that is `finer` bits finer than the column's. Numbers that are at
most an integer B apart are still at most B apart after rounding down.
"""

from dataclasses import dataclass
from operator import sub

from app.mechanisms.propose_test_release.rank_distance import smallest_satisfying
from app.mechanisms.release import DataReader
from app.mechanisms.smooth_sensitivity.rank_bound import rank_work
from app.mechanisms.work import Work
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.sum_between import sum_between
from app.queries.shapes.ranks.window import Span, Window
from app.queries.shapes.single_mean import MeanShape
from app.queries.tally import Exact, Tally


@dataclass(frozen=True, slots=True)
class MeanStatistic:
    """The mean of the present values.

    A person moves it by at most W m / n (`queries/shapes/single_mean.py`), so by more than B
    only if n < W m / B, before and after. Let s be the least safe n. A person changes n by at
    most m. So max(0, n - s + 1) is the distance in rows, m-Lipschitz, and its m-th part rounded
    up is the distance in persons."""

    shape: MeanShape
    finer: int

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def is_instant(self) -> bool:
        return True

    @property
    def grid_exponent(self) -> int:
        return self.shape.grid_exponent + self.finer

    @property
    def limits(self) -> Span:
        low, high = self.shape.bounds
        return low << self.finer, high << self.finer

    def work(self, cap: int, bounds: int) -> Work:
        return Work.of(self.tally)

    def read(self, data: DataReader, cap: int) -> Exact:
        return data.exact(self.tally)

    def value(self, data_read: Exact) -> int:
        (total,), (count,) = data_read
        return sum(self.limits) // 2 if count == 0 else (total << self.finer) // count

    def distance(self, data_read: Exact, bound: int, cap: int) -> int:
        low, high = self.limits
        if bound >= high - low:
            return cap
        safe = -(-(high - low) * self.shape.rows // bound)
        beyond = max(0, data_read[1][0] - safe + 1)
        return min(cap, -(-beyond // self.shape.rows))


@dataclass(frozen=True, slots=True)
class TrimmedMeanStatistic:
    """The mean of the ranks p + 1 to p + w, of a fixed number of rows with one row per person.

    A replaced row moves it by more than B only if a window with a <= p + 1, p + w <= b and b - a
    >= w is wider than B w. Each further row in the window is one more to replace (Bun and
    Steinke 2019, on smooth sensitivity of trimmed means). So d is the least b - a - w of such
    windows, exactly."""

    shape: RankShape
    finer: int

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def is_instant(self) -> bool:
        return False

    @property
    def grid_exponent(self) -> int:
        return self.shape.grid_exponent + self.finer

    @property
    def limits(self) -> Span:
        low, high = self.shape.bounds
        return low << self.finer, high << self.finer

    def work(self, cap: int, bounds: int) -> Work:
        return rank_work(self.shape, cap, bounds)

    def read(self, data: DataReader, cap: int) -> tuple[tuple[Window, ...], int]:
        windows = self.shape.windows(data.steps, data.exact, cap + 1)
        return windows, sum_between(self.shape, windows, data.exact)

    def value(self, data_read: tuple[tuple[Window, ...], int]) -> int:
        windows, total = data_read
        first, last = self._ends(windows)
        return (total << self.finer) // (last - first + 1)

    def distance(self, data_read: tuple[tuple[Window, ...], int], bound: int, cap: int) -> int:
        windows, _ = data_read
        below, above = windows
        first, last = self._ends(windows)
        most = bound * (last - first + 1)
        low = [self._at(below, rank) for rank in range(first - cap, first + 1)]
        high = [self._at(above, rank) for rank in range(last, last + cap + 2)]

        def wide(k: int) -> bool:
            """True if a window is wide: a from p - k to p + 1, and b = a + w + k from p + w on."""
            widest: int = max(map(sub, high[: k + 2], low[-k - 2 :]))
            return widest << self.finer > most

        return smallest_satisfying(wide, cap)

    def _ends(self, windows: tuple[Window, ...]) -> tuple[int, int]:
        first, last = (
            rule(window.count) for rule, window in zip(self.shape.ranks, windows, strict=True)
        )
        return first, last

    def _at(self, window: Window, rank: int) -> int:
        return window[min(max(rank, 0), window.count + 1)]
