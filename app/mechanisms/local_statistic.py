"""What a bound on local sensitivity is proposed for: a number, and how far tables are from unsafe.

For a bound B a statistic tells its distance d: one person changes d by at most 1, and if one person
can change the number by more than B, d = 0 before and after (`rank_distance.py`, and below). Both
are whole numbers on a public grid.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from app.errors import Invalid
from app.mechanisms.rank_distance import rank_distance, reach_of
from app.mechanisms.release import Data
from app.queries.mean_shape import MeanShape
from app.queries.order_shape import OrderShape
from app.queries.order_window import Span, Window
from app.queries.statistics import Exact, Tally

AT = "/mechanism/bound"
FINE_BITS = 20  # of a mean's bound in steps, so that rounding to them is no matter
HALVINGS = 30  # of a mean's width: a table of 2^30 rows has no smaller sensitivity


class LocalStatistic(Protocol):
    @property
    def tally(self) -> Tally:
        """The rows that count."""
        ...

    @property
    def quick(self) -> bool: ...

    @property
    def grid_exponent(self) -> int: ...

    @property
    def limits(self) -> Span:
        """Between which the number is, in steps of its grid."""
        ...

    def read(self, data: Data, cap: int) -> Any:
        """What number and distances up to the cap are made of."""
        ...

    def value(self, found: Any) -> int: ...

    def distance(self, found: Any, bound: int, cap: int) -> int:
        """In persons, and at most the cap; the cap itself where nothing moves further than B."""
        ...


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """The value at a rank, or how far two of them are apart.

    Of two ranks under moving n: if the distance of their values changes by more than B, one of them
    moves by more than B / 2, rounded down for one and up for the other; so the lesser of their d is
    0, and it is 1-Lipschitz as both are. Under fixed n a row moves no two values in opposite ways,
    so one of them moves by more than B itself (mechanism sheet, M17).
    """

    shape: OrderShape

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def quick(self) -> bool:
        return False

    @property
    def grid_exponent(self) -> int:
        return self.shape.grid_exponent

    @property
    def limits(self) -> Span:
        return (0, self.shape.width) if self.shape.statistic == "distance" else self.shape.bounds

    def read(self, data: Data, cap: int) -> tuple[Window, ...]:
        return self.shape.windows(data.steps, data.exact, reach_of(self.shape, cap))

    def value(self, found: tuple[Window, ...]) -> int:
        ends = [
            window[rule(window.count)] for window, rule in zip(found, self.shape.ranks, strict=True)
        ]
        return ends[-1] - ends[0] if self.shape.statistic == "distance" else ends[0]

    def distance(self, found: tuple[Window, ...], bound: int, cap: int) -> int:
        if bound >= self.shape.width:
            return cap
        each = [bound] * len(self.shape.ranks)
        if len(each) == 2 and not self.shape.fixed:
            each = [bound // 2, bound - bound // 2]
        return min(
            rank_distance(self.shape, window, rule, share, cap)
            for window, rule, share in zip(found, self.shape.ranks, each, strict=True)
        )


@dataclass(frozen=True, slots=True)
class MeanStatistic:
    """The mean, rounded down to a grid of its own, which is `finer` bits finer than the column's.

    A person moves it by at most W m / n (`queries/mean_shape.py`), so by more than B only if
    n < W m / B, before and after. With s the least n that is safe, n >= s as before, n changes by m
    at most with a person, so that max(0, n - s + 1) is the distance in rows, m-Lipschitz, and its
    m-th part rounded up that in persons. Rounded down, numbers that are at most a whole number B
    apart are still at most B apart.
    """

    shape: MeanShape
    finer: int

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def quick(self) -> bool:
        return True

    @property
    def grid_exponent(self) -> int:
        return self.shape.grid_exponent + self.finer

    @property
    def limits(self) -> Span:
        low, high = self.shape.bounds
        return low << self.finer, high << self.finer

    def read(self, data: Data, cap: int) -> Exact:
        return data.exact(self.tally)

    def value(self, found: Exact) -> int:
        (total,), (count,) = found
        return sum(self.limits) // 2 if count == 0 else (total << self.finer) // count

    def distance(self, found: Exact, bound: int, cap: int) -> int:
        low, high = self.limits
        if bound >= high - low:
            return cap
        safe = -(-(high - low) * self.shape.rows // bound)
        beyond = max(0, found[1][0] - safe + 1)
        return min(cap, -(-beyond // self.shape.rows))


def proposed(
    shape: OrderShape | MeanShape, bound: float | None
) -> tuple[LocalStatistic, tuple[int, ...]]:
    """The statistic, and the one bound in steps of its grid; or, where none is proposed, public
    candidates for it, the last of which nothing exceeds."""
    if isinstance(shape, OrderShape):
        return RankStatistic(shape), _of_ranks(shape, bound)
    return _of_mean(shape, bound)


def _of_ranks(shape: OrderShape, bound: float | None) -> tuple[int, ...]:
    width = max(1, shape.width)  # of bounds that fall on one step: then nothing moves
    if bound is None:
        return (*(1 << power for power in range((width - 1).bit_length())), width)
    steps = math.floor(Fraction(bound) * Fraction(2) ** shape.grid_exponent)
    if steps < 1:
        step = float(1 / Fraction(2) ** shape.grid_exponent)
        raise Invalid.field(AT, f"at least {step:g}, one step of the column's grid")
    return (min(steps, width),)


def _of_mean(shape: MeanShape, bound: float | None) -> tuple[MeanStatistic, tuple[int, ...]]:
    width = max(1, shape.width)
    if bound is None:
        finer = max(0, HALVINGS + FINE_BITS // 2 - width.bit_length() + 1)
        width <<= finer
        return MeanStatistic(shape, finer), tuple(width >> j for j in range(HALVINGS, -1, -1))
    steps = Fraction(bound) * Fraction(2) ** shape.grid_exponent
    finer = 0
    while steps * (1 << finer) < 1 << (FINE_BITS - 1):
        finer += 1
    least = min(math.floor(steps * (1 << finer)), width << finer)
    return MeanStatistic(shape, finer), (least,)
