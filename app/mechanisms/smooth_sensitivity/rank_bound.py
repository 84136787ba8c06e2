"""Smooth sensitivity of values at ranks: S(x), from a window of the values around each rank.

S(x) is the largest, over all tables y, of exp(-beta d(x, y)) LS(y): at least the local sensitivity,
and beta-smooth (Nissim, Raskhodnikova and Smith 2007). A gap from the value of rank a to that of
rank b, ranks 0 and n + 1 being the bounds, is opened by taking away or moving what is between, and
S is the largest gap times exp(-beta cost).

Fixed n, mean of the ranks p + 1 to p + w (Bun and Steinke 2019; w = 1 is one rank): a <= p + 1,
b >= p + w and b - a >= w; a gap costs b - a - w rows and moves the mean by gap / w.

Moving n, rank r(n). A row more or less can move the value across a gap that has L rows below it and
R above only if (L, R) is one of these, with s(m) = m - r(m):

    (r(m), s(m) + 1) of m + 1 rows, for every m; and of m rows
    (r(m), s(m)) if r(m + 1) = r(m) + 1, or (r(m) - 1, s(m) + 1) if r(m + 1) = r(m) >= 1.

From x the rows between a and b go, and some come on either side until (L, R) is such a pair: rows
that go from a side are no cheaper than a wider gap. That is b - a - 1 + (L - a) + (R - (n + 1 - b))
moves, and for the least m either L = a or R = n + 1 - b. So with B = n + 1 - R it is enough to look
at gaps from L to any b >= B, of cost n - m + 2 (b - B), and from any a <= L to B, of cost
n - m + 2 (L - a).

Far gaps: what costs more than `reach` moves is at most width exp(-beta (reach + 1)), and this is
taken in its place. With A(k) the largest LS within k moves, A(k) of x is at most A(k + 1) of a
neighbour; so the larger of the near part and this constant is still at least LS and beta-smooth,
and no rank further than reach + 1 matters (`queries/shapes/ranks/shape.py`).

Persons of several rows, under moving n: neighbours are at most M moves apart. With S made for
beta / M, S(x) <= exp(beta) S(y) for them, and the statistic changes by at most the sum of LS along
the way, sum over i < M of exp(beta i / M) S(x): S times this sum is a smooth bound.

Rounding: weights exp(-beta k) are whole numbers of 10^-digits, rounded up, and all else is exact;
so what is computed lies between S and S (1 + SLACK), and is smooth for beta if S is for
beta - SLACK, which is what it is made for.
Time: of K = reach, O(K log K) by an envelope of lines, whatever n is. All of the window is always
read; how many values there are in it, and how many lines are kept, depends on the rows. The slot of
the answer hides that: it is longer by as much as K is large (`rank_work`).
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from app.mechanisms.work import Work
from app.queries.ranks.iqr import QUARTILES
from app.queries.shapes.ranks.rank import RankRule
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.window import Window

SLACK = Fraction(1, 10**30)
FAR = 28  # exp(-28) of the bounds' width: what is below is noise of no matter
REACH_MAX = 1 << 12
WINDOW_SCANS = 6  # a window is found in at most about so many scans
BETA_MIN = 1e-9
BETA_MAX = 50
_KEPT = 45  # digits that the smallest weight still has


def reach_of(shape: RankShape, beta: Fraction) -> int:
    """How many moves away tables still matter: a public number."""
    return min(REACH_MAX, math.ceil(FAR / _rate(shape, beta)))


def rank_work(shape: RankShape, reach: int, bounds: int = 1) -> Work:
    """Windows of `reach` ranks around each rank, found in a few scans and compared with so many
    proposed bounds."""
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
    # rows, and other ranks, may: their bounds add up. One end is one bound.
    together = max(bounds) if shape.moves == 1 and shape.ranks == QUARTILES else sum(bounds)
    return Fraction(together) * _along_the_way(rate, shape.moves)


def _fixed(
    shape: RankShape, windows: tuple[Window, ...], weights: "Weights", reach: int
) -> Fraction:
    places = [rule(window.count) for rule, window in zip(shape.ranks, windows, strict=True)]
    if shape.statistic == "mean_between":
        (low, high), (first, last) = windows, places
        return fixed_bound(low, high, first, last, weights, reach)
    # A row that moves up moves no value down: of two ends apart the larger change counts.
    return max(
        fixed_bound(window, window, place, place, weights, reach)
        for window, place in zip(windows, places, strict=True)
    )


def fixed_bound(
    low: Window, high: Window, first: int, last: int, weights: "Weights", reach: int
) -> Fraction:
    """Of the mean of the ranks `first` to `last`, of a fixed number of rows."""
    n, kept = low.count, last - first + 1
    far = weights.falls(reach + 1) * (low.bounds[1] - low.bounds[0])
    if n == 0:
        return Fraction(far, weights.one * kept)
    ends = range(min(n + 1, last + reach + 1), last - 1, -1)
    lines = Envelope()
    for b in ends:
        lines.add(weights.falls(b - last), high[b])
    # The gap from `first` to `last` itself is no row more than the mean: it is left out.
    nearest = max(weights.falls(b - last - 1) * (high[b] - low[first]) for b in ends[:-1])
    found = max(far, nearest) * weights.one
    for a in range(max(0, first - reach - 1), first):
        found = max(found, weights.falls(first - 1 - a) * lines.best(low[a]))
    return Fraction(found, weights.one**2 * kept)


def moving_bound(window: Window, rule: RankRule, weights: "Weights", reach: int) -> Fraction:
    """Of the value at a rank, where rows come and go."""
    n = window.count
    lowest = max(0, rule(n) - reach - 1)
    highest = min(n + 1, rule(n) + reach + 1)
    corners = gap_corners(rule, n, reach)
    found = weights.falls(reach + 1) * (window.bounds[1] - window.bounds[0]) * weights.one
    # In both passes the cost is n - m + 2 (b - B) = 2 (b - lowest) + shift: the weight of a line
    # is that of the first part, and `top` keeps the second from being negative.
    top = 2 * (highest - lowest) + reach + 4
    best = 0
    upward, b = Envelope(), highest
    for m, below, end in sorted(corners, key=lambda corner: -corner[2]):
        while b >= max(end, lowest):
            upward.add(weights.falls(2 * (b - lowest)), window[b])
            b -= 1
        if lowest <= below <= min(n, highest) and upward:
            shift = n - m - 2 * (end - lowest)
            best = max(best, weights.falls(top + shift) * upward.best(window[below]))
    downward, a = Envelope(), lowest
    for m, below, end in sorted(corners, key=lambda corner: corner[1]):
        while a <= min(below, highest):
            downward.add(weights.falls(2 * (highest - a)), -window[a])
            a += 1
        if max(1, lowest) <= end <= highest and downward:
            shift = n - m - 2 * (highest - below)
            best = max(best, weights.falls(top + shift) * downward.best(-window[end]))
    near = Fraction(best, weights.one**2) * weights.growth(top)
    return max(near, Fraction(found, weights.one**2))


def gap_corners(rule: RankRule, n: int, reach: int) -> list[tuple[int, int, int]]:
    """Each as m, how many of m rows are below the gap, and B = n + 1 - how many are above."""
    found = []
    rank = rule(max(0, n - reach - 1))
    for m in range(max(0, n - reach - 1), n + reach + 1):
        following = rule(m + 1)
        found.append((m + 1, rank, n - m + rank))
        if following > rank:
            found.append((m, rank, n + 1 - m + rank))
        elif rank >= 1:
            found.append((m, rank - 1, n - m + rank))
        rank = following
    return found


@dataclass(frozen=True, slots=True)
class Weights:
    """exp(-rate k), in whole numbers of one / 10^digits, rounded up."""

    rate: Fraction
    one: int
    listed: list[int]

    @classmethod
    def of(cls, rate: Fraction, count: int) -> "Weights":
        digits = _KEPT + math.ceil(rate * count / 2) + 10  # ln 10 is above 2
        with localcontext(_context(digits + 20)):
            falls = _exp(-rate)
            scaled, listed = Decimal(10) ** digits, []
            for _ in range(count + 1):
                # `count` roundings with 20 digits more are far below 1: one more is above.
                listed.append(int(scaled) + 1)
                scaled *= falls
        return cls(rate, 10**digits, listed)

    def falls(self, k: int) -> int:
        return self.listed[k]

    def growth(self, k: int) -> Fraction:
        """exp(rate k), rounded up."""
        with localcontext(_context(80)):
            return Fraction(_exp(self.rate * k)) * (1 + Fraction(1, 10**70))


class Envelope:
    """Lines weight * (value - x), of which the highest at x is asked for: exact whole numbers.

    Lines come in with increasing weights, so each is the highest for small x or nowhere; those that
    are highest nowhere are left out. A query halves what is left.
    """

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

        def at(i: int) -> int:
            weight, level = lines[i]
            return level - weight * x

        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle) >= at(middle + 1) else (middle + 1, high)
        return at(low)


def _rate(shape: RankShape, beta: Fraction) -> Fraction:
    """For one move."""
    if not 0 < beta <= BETA_MAX:
        raise ValueError("beta is positive and not too large")
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
