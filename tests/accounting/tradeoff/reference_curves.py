"""The best attack on explicit distributions, by the Neyman-Pearson lemma, and random releases."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import Any

import mpmath
from hypothesis import strategies as st

from app.accounting.tradeoff.curve import ALPHAS

Distribution = Sequence[Any]  # the probability of each outcome
Reference = Callable[[float], Any]
HARD = [1e-300, 1e-17, 1e-9, 1e-4, 1 - 1e-9]
ASKED = sorted({*ALPHAS[::5], *HARD})
ROUNDING = 1e-13  # of floats, far below GUARD


def neyman_pearson(first: Distribution, second: Distribution) -> Reference:
    """Take outcomes by falling ratio until the false alarms are spent, the last one in part."""
    pairs = sorted(
        ((p, q) for p, q in zip(first, second, strict=True) if p or q),
        key=lambda pair: pair[1] / pair[0] if pair[0] else mpmath.inf,
        reverse=True,
    )

    def beta(alpha: float) -> Any:
        left, missed = mpmath.mpf(alpha), mpmath.mpf(1)
        for p, q in pairs:
            if p <= left:
                left, missed = left - p, missed - q
            else:
                missed -= q * left / p
                break
        return max(missed, mpmath.mpf(0))

    return beta


def answers(epsilon: Fraction, categories: int = 2) -> tuple[Distribution, Distribution]:
    """Randomised response to the first truth and to the second."""
    odds = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    rest = categories - 2
    total = odds + categories - 1
    return (
        [odds / total, 1 / total, *[1 / total] * rest],
        [1 / total, odds / total, *[1 / total] * rest],
    )


def independent(pair: tuple[Distribution, Distribution], k: int) -> tuple[Any, Any]:
    def power(one: Distribution) -> list[Any]:
        return [mpmath.fprod(outcome) for outcome in product(one, repeat=k)]

    return power(pair[0]), power(pair[1])


def leaky(
    pair: tuple[Distribution, Distribution], delta: Fraction
) -> tuple[Distribution, Distribution]:
    """Two more outcomes, each possible under only one of the two."""
    d = mpmath.mpf(delta.numerator) / delta.denominator
    return [*((1 - d) * p for p in pair[0]), d, 0], [*((1 - d) * q for q in pair[1]), 0, d]


def whole_laplace(epsilon: Fraction, steps: int) -> tuple[Distribution, Distribution]:
    """Noise on 0 and on `steps`. Below 0 and above `steps` the ratio is constant, so each tail is
    one outcome and nothing is cut off."""
    s = mpmath.mpf(epsilon.numerator) / epsilon.denominator / steps
    p = mpmath.exp(-s)

    def at(centre: int) -> list[Any]:
        tails = [p ** abs(end - centre) / (1 + p) for end in (0, steps)]
        tails[0 if centre == 0 else 1] = 1 / (1 + p)
        between = [(1 - p) / (1 + p) * p ** abs(x - centre) for x in range(1, steps)]
        return [tails[0], *between, tails[1]]

    first, second = at(0), at(steps)
    assert abs(mpmath.fsum(first) - 1) < 1e-35
    return first, second


def laplace(epsilon: Fraction) -> Reference:
    """Say "the second" above a threshold t, which the level of false alarms sets."""
    e = mpmath.mpf(epsilon.numerator) / epsilon.denominator

    def below(x: Any) -> Any:
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

    def beta(alpha: float) -> Any:
        if alpha in (0.0, 1.0):
            return 1 - mpmath.mpf(alpha)
        a = mpmath.mpf(alpha)
        threshold = -mpmath.log(2 * a) if a < 0.5 else mpmath.log(2 * (1 - a))
        return below(threshold - e)

    return beta


def gaussian(mu_squared: Fraction) -> Reference:
    mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)

    def beta(alpha: float) -> Any:
        if alpha in (0.0, 1.0):
            return 1 - mpmath.mpf(alpha)
        a = mpmath.mpf(alpha)
        threshold = mpmath.mpf(-NormalDist().inv_cdf(alpha))
        for _ in range(3):  # Newton's steps: from 15 digits to 40
            threshold += (mpmath.ncdf(-threshold) - a) / mpmath.npdf(threshold)
        return mpmath.ncdf(threshold - mu)

    return beta


F = Fraction


def rate(value: Any) -> float:
    return float(mpmath.mpf(value))


epsilons = st.fractions(F(1, 1000), F(6), max_denominator=1000)
deltas = st.fractions(F(0), F(1, 2), max_denominator=10**6)
