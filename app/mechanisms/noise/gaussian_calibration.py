"""Calibration: least discrete Gaussian noise that is (epsilon, delta)-private for one answer.

Balle and Wang (2018) give the exact profile of continuous noise. Integer noise has another, larger
one: delta = sum over z of max(0, P(z) - e^epsilon P(z + D)) (Canonne, Kamath and Steinke 2020,
Theorem 7). Its terms are positive exactly above t = epsilon s^2 / D - D / 2, where they rise to one
peak and fall.

Replace P by the density of the same parameter, whose normaliser is never smaller. Then the sum is
at most the integral, which is the continuous profile, plus the peak. A term is at most the density
at z, which is at most that at t or at 0. By 1 - e^-x <= x it is also at most the density at z = t +
u times u D / s^2. For t >= 0 the density falls at least as exp(-u^2 / 2 s^2) from there, and u
times this is at most s e^(-1/2). For t < 0, u = z + |t|, and the bound grows by |t|.

So a parameter with continuous delta + peak <= delta is enough. Where that wastes more than a
thousandth of delta, the sum itself is computed, unless it has too many terms.

Terms further than REACH parameters above the first are left out of the sum. From there on they fall
at least as exp(-u^2 / 2 s^2), u being the distance. All of them together are below 1e-37 of the
computed sum; the guard is far more.
"""

import math
from decimal import Decimal
from typing import Any

import numpy as np

from app.accounting.curves.gaussian import delta_at

_WASTE = 1e-3
_SUM_GUARD = 1 + 1e-9  # covers float errors in sums whose terms are positive, up to one difference
_TERMS_MAX = 8_000
REACH = 14
SUMMED_MAX = 50.0  # largest parameter whose terms are summed one by one
SummedTerms = np.ndarray[Any, np.dtype[np.float64]]


def least_scale(epsilon: Decimal, delta: Decimal, *, steps: int) -> float:
    """A parameter, near the least, that is private for answers that move by at most `steps`."""
    delta_allowed = float(delta) * (1 - 1e-12)
    e = float(epsilon)
    scale = steps / mu_near(e, delta_allowed)
    peak = _peak(e, scale, steps)
    if peak <= _WASTE * delta_allowed or REACH * scale > _TERMS_MAX:
        scale = steps / mu_near(
            e, max(delta_allowed - 1.01 * peak, delta_allowed / 2) * (1 - _WASTE / 100)
        )
        while _continuous(epsilon, scale, steps) + _peak(e, scale, steps) > delta_allowed:
            scale *= 1.0005
        return scale
    return _least_summed(e, delta_allowed, scale, steps)


def _least_summed(epsilon: float, delta: float, scale: float, steps: int) -> float:
    """Nearly the least parameter by exact summation, starting from a parameter near it.

    A line through the logarithms of two sums gives the next parameter, which then grows until it
    is enough."""

    def excess(at: float) -> float:
        summed = _summed(epsilon, at, steps) * _SUM_GUARD
        return math.log(summed / delta) if summed > 0.0 else -1.0

    over = excess(scale)
    if over <= 0.0:
        return scale
    falls = max(over - excess(scale * 1.001), 1e-9)
    scale *= 1.0 + 0.001 * min(over / falls, 1000.0)
    while excess(scale) > 0.0:
        scale *= 1.0001
    return scale


def mu_near(epsilon: float, delta: float) -> float:
    """Approximate mu whose continuous noise has this profile, by bisection; callers check the
    result.

    With x = epsilon/mu - mu/2 and y = x + mu, delta is Phi(-x) - e^epsilon Phi(-y), and
    e^epsilon times the density at y is the density at x."""
    from scipy.special import erfcx

    def profile(mu: float) -> float:
        x = epsilon / mu - mu / 2
        second = 0.5 * math.exp(-x * x / 2) * float(erfcx((x + mu) / math.sqrt(2)))
        return 0.5 * math.erfc(x / math.sqrt(2)) - second

    low, high = 1e-14, 1e5
    for _ in range(70):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if profile(middle) <= delta else (low, middle)
    return low


def _continuous(epsilon: Decimal, scale: float, steps: int) -> float:
    return float(delta_at(epsilon, Decimal(steps) / Decimal(scale))) * (1 + 1e-12)


def _peak(epsilon: float, scale: float, steps: int) -> float:
    """Upper bound on every term of the sum."""
    kink = epsilon * scale / steps - steps / scale / 2  # in units of s
    density = math.exp(-(max(kink, 0.0) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))
    rises = (math.exp(-0.5) + max(-kink, 0.0)) * steps / scale
    return density * min(1.0, rises) * (1 + 1e-9)


def _summed(epsilon: float, scale: float, steps: int) -> float:
    """Exact delta, up to the guard; the normaliser is a lower bound."""
    first = math.floor(epsilon * scale * scale / steps - steps / 2) - 1
    last = int(max(first, 0) + REACH * scale) + 2
    z = np.arange(first, last, dtype=np.float64)
    there = (z / scale) ** 2 / 2
    moved = ((z + steps) / scale) ** 2 / 2
    # P(z) - e^epsilon P(z + D) = P(z) (1 - exp(epsilon + there - moved))
    gained = -np.expm1(np.minimum(epsilon + there - moved, 0.0))
    return float(np.sum(np.exp(-there) * gained)) / normaliser(scale)


def normaliser(scale: float) -> float:
    """Lower bound of the sum over z of exp(-z^2 / (2 s^2)).

    Small parameters: its first terms. Others: s sqrt(2 pi), which the sum is never below
    (Poisson summation)."""
    if scale > SUMMED_MAX:
        return scale * math.sqrt(2 * math.pi)
    return 2.0 * float(np.sum(upper_weights(scale))) - 1.0


def upper_weights(scale: float) -> SummedTerms:
    """exp(-z^2 / (2 s^2)) from z = 0 until floats underflow to zero."""
    z = np.arange(int(40 * scale) + 3, dtype=np.float64)
    weights: SummedTerms = np.exp(-((z / scale) ** 2) / 2)
    return weights
