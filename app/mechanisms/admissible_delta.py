"""Laplace and Gaussian noise for smooth sensitivity: lighter tails, for a delta.

Laplace, scale S / a. Neighbours are Z and theta + e^lambda Z. If the second is wider the log-ratio
is at most lambda + a e^-lambda, at 0, which is convex in lambda: a <= epsilon and
beta + a e^-beta <= epsilon are enough. If it is narrower by e^-m the log-ratio passes epsilon on
both sides beyond (epsilon + m +- a)/(e^m - 1), and what the first law has more there is
(1 - e^-m) exp(-(epsilon + m)/(e^m - 1)) cosh(a/(e^m - 1)): it grows with m, so delta is this at
m = beta. Exact: no smaller delta would do.

Gaussian, standard deviation S / a: a shift, then a stretch. By a shift of at most a the law is
(epsilon_1, delta_1)-close to itself by Balle and Wang 2018. A stretch by e^lambda: adding the same
normal number to both sides and rescaling makes any smaller stretch of the largest one, so only
|lambda| = beta matters; there the log-ratio is at most beta if the second law is wider, and if it
is narrower it passes epsilon_2 only beyond t = sqrt(2 (epsilon_2 + beta)/(e^(2 beta) - 1), which
has probability delta_2 = 2 Phi(-t). Together (epsilon_1 + epsilon_2, delta_1 + e^epsilon_1 delta_2)
with epsilon_2 >= beta (and not the sum of the deltas, as is often written).
Rounding: everything is computed to 40 digits and more, deltas up and a down.
"""

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from app.accounting.gaussian import mu_within, normal_cdf
from app.accounting.losses import generic_loss
from app.accounting.rounding import ATTO, PICO
from app.mechanisms.admissible import (
    FINE,
    Admissible,
    Budget,
    Drawn,
    betas,
    even_spread,
    fine,
    floor,
    least,
    must_bear,
)
from app.mechanisms.asked import CannotServe, SmoothWish
from app.mechanisms.directed import both_ways
from app.mechanisms.gaussian_calibration import mu_near
from app.mechanisms.lazy_real import Ends, LazyReal, exponential, half_normal
from app.mechanisms.release import Noise

LAPLACE = "laplace"
GAUSSIAN = "gaussian"
_STRETCH_SHARE = 0.1  # of delta, which the stretch of Gaussian noise may take
_ABOVE = 1 + Decimal("1e-20")
_NORMAL = NormalDist()


@lru_cache(maxsize=512)
def laplace(budget: Budget, wish: SmoothWish) -> Admissible:
    units, epsilon, delta = _promise(budget)
    must_bear(wish.beta, float(epsilon))

    def found() -> Iterator[tuple[float, float, dict[str, float]]]:
        for beta in betas(wish.beta, float(epsilon)):
            try:
                s = laplace_divisor(epsilon, delta, Fraction(beta))
            except ArithmeticError:
                continue
            yield beta, laplace_quantile(0.95) / float(s), {}

    beta, _ = least(found(), budget.moves)
    s = laplace_divisor(epsilon, delta, beta)
    return Admissible(
        name=LAPLACE,
        parameters={},
        beta=beta,
        divisor=s,
        loss=generic_loss(*units),
        theorem="Nissim, Raskhodnikova and Smith 2007 (smooth sensitivity), Laplace noise",
        draw=draw_laplace,
        quantile=laplace_quantile,
        even=laplace_quantile(0.95) / float(s) * even_spread(float(beta), budget.moves),
    )


def laplace_divisor(epsilon: Fraction, delta: Fraction, beta: Fraction) -> Fraction:
    """The largest a, rounded down."""
    with localcontext(FINE):
        e, b = fine(epsilon), fine(beta)
        grows = b.exp() - 1
        bound = fine(delta) / (1 - (-b).exp()) * ((e + b) / grows).exp()
        if e <= b or bound <= 1:
            raise ArithmeticError("a beta that is not borne")
        narrower = grows * (bound + (bound * bound - 1).sqrt()).ln()
        return floor(min(e, (e - b) * b.exp(), narrower))


def laplace_quantile(confidence: float) -> float:
    return -math.log1p(-confidence)


def draw_laplace(noise: Noise) -> Drawn:
    return _plain(noise, exponential(noise))


@lru_cache(maxsize=512)
def gaussian(budget: Budget, wish: SmoothWish) -> Admissible:
    units, epsilon, delta = _promise(budget)
    must_bear(wish.beta, float(epsilon))

    def found() -> Iterator[tuple[float, float, dict[str, float]]]:
        for beta in betas(wish.beta, float(epsilon)):
            stretch = _stretch_near(float(epsilon), float(delta), beta)
            if stretch < float(epsilon):
                kept = float(delta) * (1.0 - _STRETCH_SHARE)
                s = mu_near(float(epsilon) - stretch, kept)
                yield beta, gaussian_quantile(0.95) / s, {"stretch": stretch}

    beta, chosen = least(found(), budget.moves)
    s = gaussian_divisor(epsilon, delta, beta, Fraction(chosen["stretch"]))
    return Admissible(
        name=GAUSSIAN,
        parameters={},
        beta=beta,
        divisor=s,
        loss=generic_loss(*units),
        theorem="Nissim, Raskhodnikova and Smith 2007 (smooth sensitivity); Balle and Wang 2018",
        draw=draw_gaussian,
        quantile=gaussian_quantile,
        even=gaussian_quantile(0.95) / float(s) * even_spread(float(beta), budget.moves),
    )


def gaussian_divisor(
    epsilon: Fraction, delta: Fraction, beta: Fraction, stretch: Fraction
) -> Fraction:
    """An a that is private with so much of epsilon for the stretch."""
    if not beta <= stretch < epsilon:
        raise ArithmeticError("a beta that is not borne")
    with localcontext(FINE):
        shift = fine(epsilon - stretch)
        beyond = (2 * fine(stretch + beta) / ((2 * fine(beta)).exp() - 1)).sqrt()
        kept = fine(delta) - 2 * shift.exp() * normal_cdf(-beyond) * _ABOVE
        if kept <= 0:
            raise ArithmeticError("a beta that is not borne")
        return floor(mu_within(shift, kept))


def _stretch_near(epsilon: float, delta: float, beta: float) -> float:
    """About the least part of epsilon with which the stretch takes its share of delta."""

    def fits(stretch: float) -> bool:
        beyond = math.sqrt(2 * (stretch + beta) / math.expm1(2 * beta))
        taken = math.exp(min(700.0, epsilon - stretch)) * math.erfc(beyond / math.sqrt(2))
        return taken <= _STRETCH_SHARE * delta * (1 - 1e-9)

    low, high = beta, epsilon
    if not fits(high):
        return math.inf
    if fits(low):
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def gaussian_quantile(confidence: float) -> float:
    return _NORMAL.inv_cdf((1.0 + confidence) / 2.0)


def draw_gaussian(noise: Noise) -> Drawn:
    return _plain(noise, half_normal(noise))


def _plain(noise: Noise, number: LazyReal) -> Drawn:
    def size(digits: int) -> Ends:
        down, up = both_ways(digits)
        return number.low(down), number.high(up)

    return Drawn(noise.below(2) == 1, size, (number,))


def _promise(budget: Budget) -> tuple[tuple[int, int], Fraction, Fraction]:
    if budget.promise is None:
        raise CannotServe("this noise needs an epsilon and a delta")
    epsilon, delta = budget.promise
    return budget.promise, Fraction(epsilon, PICO), Fraction(delta, ATTO)
