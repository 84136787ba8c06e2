"""The law of the noise in exact or high-precision arithmetic, and tests of draws against it.

Nothing here draws. The chi-square law of the statistic is an approximation. At these expected
counts its error is small compared with the false-alarm rates of the tests.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise

DRAWS = 30_000
FALSE_ALARM = 1e-6
EXPECTED_MIN = 40.0
QUANTILES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.005]


def at_least(scale: float, z: int) -> float:
    """P(Z >= z) for z >= 1."""
    return math.exp(-z / scale) / (1.0 + math.exp(-1.0 / scale))


def edges(scale: float) -> list[int]:
    """Starts of the bins on the positive side: near the quantiles of |Z|, with enough draws in
    each.
    """
    starts: list[int] = []
    room = 0.5
    for quantile in QUANTILES:
        z = max(1, math.ceil(-scale * math.log(quantile)))
        beyond = at_least(scale, z)
        if (not starts or z > starts[-1]) and min(room - beyond, beyond) * DRAWS >= EXPECTED_MIN:
            starts.append(z)
            room = beyond
    return starts


def chi_square(draws: list[int], scale: float) -> float:
    """P value of the draws under the law of this scale.

    Bins are symmetric around zero, so degrees of freedom are even. Then the tail of chi-square has
    a closed form.
    """
    starts = edges(scale)
    assert starts, "a scale too small to test"
    tails = [at_least(scale, z) for z in starts]
    side = [a - b for a, b in pairwise([*tails, 0.0])]
    expected = [*reversed(side), 1.0 - 2.0 * tails[0], *side]
    counts = [0] * len(expected)
    middle = len(starts)
    for draw in draws:
        reach = sum(abs(draw) >= z for z in starts)
        counts[middle + (reach if draw > 0 else -reach)] += 1
    size = len(draws)
    statistic = sum(
        (have - size * want) ** 2 / (size * want)
        for have, want in zip(counts, expected, strict=True)
    )
    return chi_square_tail(statistic, len(expected) - 1)


def chi_square_tail(statistic: float, degrees: int) -> float:
    assert degrees % 2 == 0
    half = statistic / 2.0
    if half <= 0.0:
        return 1.0
    logs = [i * math.log(half) - math.lgamma(i + 1) - half for i in range(degrees // 2)]
    return min(1.0, math.fsum(map(math.exp, logs)))


# Intervals


def tail_exact(scale: float, w: int) -> Decimal:
    """P(|Z| > w) to fifty digits."""
    with localcontext() as context:
        context.prec = 50
        rate = Decimal(-1) / Decimal(scale)
        return 2 * (rate * (w + 1)).exp() / (1 + rate.exp())


def inside_summed(scale: float, w: int) -> Decimal:
    """P(|Z| <= w), summed value by value."""
    with localcontext() as context:
        context.prec = 50
        p = (Decimal(-1) / Decimal(scale)).exp()
        total = power = Decimal(1)
        for _ in range(w):
            power *= p
            total += 2 * power
        return total * (1 - p) / (1 + p)


# Clopper and Pearson


def binomial_tail(size: int, chance: float, at_least: int) -> float:
    """P(X >= at_least) for X binomial."""
    if at_least <= 0:
        return 1.0
    if chance <= 0.0:
        return 0.0
    if chance >= 1.0:
        return 1.0
    log, other = math.log(chance), math.log1p(-chance)
    terms = (
        math.lgamma(size + 1)
        - math.lgamma(k + 1)
        - math.lgamma(size - k + 1)
        + k * log
        + (size - k) * other
        for k in range(at_least, size + 1)
    )
    return min(1.0, math.fsum(map(math.exp, terms)))


def lower_chance(size: int, hits: int, error: float) -> float:
    """A lower bound on the true probability, wrong with at most this error probability."""
    return _bisect(lambda chance: binomial_tail(size, chance, hits) > error)


def upper_chance(size: int, hits: int, error: float) -> float:
    return 1.0 - lower_chance(size, size - hits, error)


def _bisect(beyond: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        if beyond(middle):
            high = middle
        else:
            low = middle
    return low
