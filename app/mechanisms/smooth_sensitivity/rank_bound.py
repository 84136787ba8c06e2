"""Smooth sensitivity of values at ranks: S(x), from a window of the values around each rank.

S(x) is the largest, over all tables y, of exp(-beta d(x, y)) LS(y): at least the local sensitivity,
and beta-smooth (Nissim, Raskhodnikova and Smith 2007). A gap runs from the value of rank a to that
of rank b, ranks 0 and n + 1 being the bounds. It is opened by removing or moving the rows between,
and S is the largest gap times exp(-beta cost).

Fixed n, mean of the ranks p + 1 to p + w (Bun and Steinke 2019; w = 1 is one rank): a <= p + 1, b
>= p + w and b - a >= w; a gap costs b - a - w rows and moves the mean by gap / w.

Moving n, rank r(n). One row more or less can move the value across a gap that has L rows below it
and R above only if (L, R) is one of these, with s(m) = m - r(m):

    (r(m), s(m) + 1) of m + 1 rows, for every m; and of m rows
    (r(m), s(m)) if r(m + 1) = r(m) + 1, or (r(m) - 1, s(m) + 1) if r(m + 1) = r(m) >= 1.

From x the rows between a and b are removed, and rows are added on either side until (L, R) is such
a pair. Removing rows from a side is no cheaper than a wider gap. The number of moves is

    (b - a - 1) + (L - a) + (R - (n + 1 - b)).

For the least m either L = a or R = n + 1 - b. Let B = n + 1 - R. So it is enough to examine these
gaps:

- from L to any b >= B, of cost n - m + 2 (b - B);
- from any a <= L to B, of cost n - m + 2 (L - a).

Far gaps: a gap that costs more than `reach` moves contributes at most width exp(-beta (reach + 1)),
and this constant replaces it. With A(k) the largest LS within k moves, A(k) of x is at most A(k +
1) of a neighbour. So the larger of the near part and this constant is still at least LS and
beta-smooth, and no rank further than reach + 1 matters (`queries/shapes/ranks/shape.py`).

Persons of several rows, with moving n: neighbours are at most M moves apart. With S computed for
beta / M, S(x) <= exp(beta) S(y) for them. The statistic changes by at most the sum of LS along the
path, sum over i < M of exp(beta i / M) S(x): S times this sum is a smooth bound.

Rounding: weights exp(-beta k) are integer multiples of 10^-digits, rounded up, and all else is
exact. So the result lies between S and S (1 + SLACK). It is smooth for beta if S is smooth for beta
- SLACK, and S is computed for that.

Time: a search in floats leaves few gaps, which are compared exactly (`largest_gaps.py`). Where it
leaves too many, an envelope of lines finds the largest in O(K log K) exact steps, for K = reach and
any n. The time depends on the rows. The answer's time slot hides that: it grows with K
(`rank_work`). Values that the search drops are below the constant of the far gaps, which is at
least exp(-128) of the width.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from operator import itemgetter

import numpy as np

from app.mechanisms.smooth_sensitivity.largest_gaps import Gaps, WholeArray, largest_gaps
from app.mechanisms.work import Work
from app.queries.ranks.iqr import QUARTILES
from app.queries.shapes.ranks.rank import RankRule, ranks_of
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.window import Window

SLACK = Fraction(1, 10**30)
FAR = 28  # exp(-28) of the bounds' width: smaller noise is negligible
REACH_MAX = 1 << 12
WINDOW_SCANS = 6  # about the largest number of scans to find a window
VALUE_MAX = 1 << 61
BETA_MIN = 1e-9
BETA_MAX = 50
_KEPT = 45  # digits that the smallest weight still has


def reach_of(shape: RankShape, beta: Fraction) -> int:
    """Public number of moves within which tables still matter."""
    return min(REACH_MAX, math.ceil(FAR / _rate(shape, beta)))


def rank_work(shape: RankShape, reach: int, bounds: int = 1) -> Work:
    """Work to find windows of `reach` ranks in a few scans, and to compare them with `bounds`
    bounds."""
    return Work(
        scans=WINDOW_SCANS + 2,
        leaves=shape.tally.leaves() + 2,
        ranks=reach * len(shape.ranks) * (8 + bounds) // 8,
    )


def smooth_bound(shape: RankShape, windows: tuple[Window, ...], beta: Fraction) -> Fraction:
    """At least S and at most S (1 + SLACK) of the shape's statistic, in steps; beta-smooth."""
    rate, reach = _rate(shape, beta), reach_of(shape, beta)
    weights = Weights.of(rate, 6 * reach + 20)
    if shape.fixed:
        return _fixed(shape, windows, weights, reach)
    bounds = [
        moving_bound(window, rule, weights, reach)
        for window, rule in zip(windows, shape.ranks, strict=True)
    ]
    # One row moves no two quartiles apart (`local_statistic.py`): the larger change counts. Several
    # rows, and other ranks, may do so: their bounds add up. A single rank has one bound.
    together = max(bounds) if shape.moves == 1 and shape.ranks == QUARTILES else sum(bounds)
    return Fraction(together) * _along_the_way(rate, shape.moves)


def _fixed(
    shape: RankShape, windows: tuple[Window, ...], weights: "Weights", reach: int
) -> Fraction:
    ranks = [rule(window.count) for rule, window in zip(shape.ranks, windows, strict=True)]
    if shape.statistic == "mean_between":
        (low, high), (first, last) = windows, ranks
        return fixed_bound(low, high, first, last, weights, reach)
    # A row that moves up moves no value down: for two ranks the larger change counts.
    return max(
        fixed_bound(window, window, rank, rank, weights, reach)
        for window, rank in zip(windows, ranks, strict=True)
    )


def fixed_bound(
    low: Window, high: Window, first: int, last: int, weights: "Weights", reach: int
) -> Fraction:
    """Smooth bound for the mean of the ranks `first` to `last`, for a fixed number of rows."""
    n, kept = low.count, last - first + 1
    far = weights.falls(reach + 1) * (low.bounds[1] - low.bounds[0])
    if n == 0:
        return Fraction(far, weights.one * kept)
    starts = np.arange(max(0, first - reach - 1), first)
    ends = np.arange(last, min(n + 1, last + reach + 1) + 1)
    below, above = _values(low, int(starts[0]), first), _values(high, last, int(ends[-1]))
    rate = float(weights.rate)
    wide = Gaps(first - 1 - starts, -below[:-1], np.zeros_like(starts), ends - last, above, rate)
    # The gap from `first` to `last` contains only the ranks of the mean: it is left out.
    zero = np.zeros(1, dtype=np.int64)
    nearest = Gaps(zero, -below[-1:], zero, ends[1:] - last - 1, above[1:], rate)
    largest = max(
        far * weights.one,
        _largest(nearest, weights, lambda _: weights.one),
        _largest(wide, weights, weights.falls),
    )
    return Fraction(largest, weights.one**2 * kept)


def moving_bound(window: Window, rule: RankRule, weights: "Weights", reach: int) -> Fraction:
    """Smooth bound for the value at a rank, where rows are added and removed."""
    n, rate = window.count, float(weights.rate)
    lowest = max(0, rule(n) - reach - 1)
    highest = min(n + 1, rule(n) + reach + 1)
    values = _values(window, lowest, highest)
    rows, below, end = gap_corners(rule, n, reach)
    # In both passes the cost is n - m + 2 (b - B) = 2 (b - lowest) + shift. The weight of an end
    # covers the first part, and `top` keeps the second from being negative.
    top = 2 * (highest - lowest) + reach + 4
    ends = 2 * np.arange(len(values))

    upward = (lowest <= below) & (below <= min(n, highest)) & (end <= highest)
    m, a, b = rows[upward], below[upward], end[upward]
    shift = n - m - 2 * (b - lowest)
    first = np.maximum(b, lowest) - lowest
    wider_above = Gaps(shift, -values[a - lowest], first, ends, values, rate)

    downward = (max(1, lowest) <= end) & (end <= highest) & (below >= lowest)
    m, a, b = rows[downward], below[downward], end[downward]
    shift = n - m - 2 * (highest - a)
    first = highest - np.minimum(a, highest)
    wider_below = Gaps(shift, values[b - lowest], first, ends, -values[::-1], rate)

    best = max(
        _largest(gaps, weights, lambda p: weights.falls(top + p))
        for gaps in (wider_above, wider_below)
    )
    near = Fraction(best, weights.one**2) * weights.growth(top)
    far = weights.falls(reach + 1) * (window.bounds[1] - window.bounds[0])
    return max(near, Fraction(far, weights.one))


def _values(window: Window, first: int, last: int) -> WholeArray:
    """Values of these ranks; Python's own numbers if they may be too large for 64 bits."""
    low, high = window.bounds
    inside = window.values[
        max(first, 1) - window.first : min(last, window.count) + 1 - window.first
    ]
    values = np.array(
        [low] * (first == 0) + list(inside) + [high] * (last == window.count + 1),
        dtype=np.int64 if low > -VALUE_MAX and high < VALUE_MAX else object,
    )
    assert len(values) == last - first + 1, "the window is too short"
    return values


def _largest(gaps: Gaps, weights: "Weights", falls_of: Callable[[int], int]) -> int:
    """The largest exact falls_of(p) falls(q) (u + v), or 0 if none is positive."""
    pairs = largest_gaps(gaps)
    if pairs is None:
        return _largest_by_envelope(gaps, weights, falls_of)
    # Pairs with the same sums have the same value, but for the rounding of its weights.
    different = {
        (p + q, u + v): (p, q)
        for i, j in pairs
        for p, q, u, v in [map(int, (gaps.p[i], gaps.q[j], gaps.u[i], gaps.v[j]))]
    }
    values = (falls_of(p) * weights.falls(q) * width for (_, width), (p, q) in different.items())
    return max(values, default=0)


def _largest_by_envelope(gaps: Gaps, weights: "Weights", falls_of: Callable[[int], int]) -> int:
    lines, end, best = Envelope(), len(gaps.q) - 1, 0
    ends = list(zip(gaps.q.tolist(), gaps.v.tolist(), strict=True))
    starts = zip(gaps.first.tolist(), gaps.p.tolist(), gaps.u.tolist(), strict=True)
    weights.list_all()
    for first, p, u in sorted(starts, key=itemgetter(0), reverse=True):
        while end >= first:
            q, v = ends[end]
            lines.add(weights.falls(q), v)
            end -= 1
        if lines:
            best = max(best, falls_of(p) * lines.best(-u))
    return best


def gap_corners(rule: RankRule, n: int, reach: int) -> tuple[WholeArray, WholeArray, WholeArray]:
    """Corners: m, number of the m rows below the gap, and B = n + 1 - number above."""
    counts = range(max(0, n - reach - 1), n + reach + 2)
    m, ranks = np.array(counts[:-1], dtype=np.int64), ranks_of(rule, counts)
    rank, rises = ranks[:-1], ranks[1:] > ranks[:-1]
    kept = rises | (rank >= 1)
    fewer = (m, rank - ~rises, n - m + rank + rises)
    more = (m + 1, rank, n - m + rank)
    rows, below, end = (np.concatenate([x, y[kept]]) for x, y in zip(more, fewer, strict=True))
    return rows, below, end


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights exp(-rate k) for k <= count, as integers over `one` = 10^digits, rounded up."""

    rate: Fraction
    count: int
    digits: int
    one: int
    _listed: list[int] = field(default_factory=list, compare=False)

    @classmethod
    def of(cls, rate: Fraction, count: int) -> "Weights":
        digits = _KEPT + math.ceil(rate * count / 2) + 10  # ln 10 is above 2
        return cls(rate, count, digits, 10**digits)

    def falls(self, k: int) -> int:
        if k < len(self._listed):
            return self._listed[k]
        # A rounding at 20 extra digits adds far less than 1, so adding one rounds up.
        with localcontext(_context(self.digits + 20)):
            return int(_exp(-self.rate * k).scaleb(self.digits)) + 1

    def list_all(self) -> None:
        """Compute all weights by multiplication: faster than one by one if most are needed."""
        with localcontext(_context(self.digits + 20)):
            falls = _exp(-self.rate)
            scaled = Decimal(10) ** self.digits
            for _ in range(0 if self._listed else self.count + 1):
                # `count` roundings at 20 extra digits also add far less than 1.
                self._listed.append(int(scaled) + 1)
                scaled *= falls

    def growth(self, k: int) -> Fraction:
        """exp(rate k), rounded up."""
        with localcontext(_context(80)):
            return Fraction(_exp(self.rate * k)) * (1 + Fraction(1, 10**70))


class Envelope:
    """Upper envelope of lines weight * (value - x), in exact integers.

    Lines arrive with increasing weights, so each is the highest for small x or nowhere. Lines
    that are highest nowhere are dropped. A lookup bisects the rest."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: list[tuple[int, int]] = []  # weight, and weight * value

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, weight: int, value: int) -> None:
        lines, level = self._lines, weight * value
        while len(lines) >= 2:
            (weight_1, level_1), (weight_2, level_2) = lines[-2:]
            if (level - level_2) * (weight_2 - weight_1) < (level_2 - level_1) * (
                weight - weight_2
            ):
                break
            lines.pop()
        lines.append((weight, level))

    def best(self, x: int) -> int:
        lines, low, high = self._lines, 0, len(self._lines) - 1
        while low < high:
            middle = (low + high) // 2
            weight, level = lines[middle]
            next_weight, next_level = lines[middle + 1]
            if level - weight * x >= next_level - next_weight * x:
                high = middle
            else:
                low = middle + 1
        weight, level = lines[low]
        return level - weight * x


def _rate(shape: RankShape, beta: Fraction) -> Fraction:
    """Decay rate for one move."""
    if not 0 < beta <= BETA_MAX:
        raise ValueError("beta must be positive and at most BETA_MAX")
    return (beta - SLACK) / (1 if shape.fixed else shape.moves)


def _along_the_way(rate: Fraction, moves: int) -> Fraction:
    """Sum over i < moves of exp(rate i), rounded up."""
    if moves == 1:
        return Fraction(1)
    with localcontext(_context(60)):
        total, term, grows = Decimal(0), Decimal(1), _exp(rate)
        for _ in range(moves):
            total += term
            term *= grows
    return Fraction(total) * (1 + Fraction(1, 10**40))


def _exp(power: Fraction) -> Decimal:
    return (Decimal(power.numerator) / Decimal(power.denominator)).exp()


def _context(digits: int) -> Context:
    return Context(prec=digits, Emax=10**9, Emin=-(10**9))
