"""The least discrete Gaussian noise that is (epsilon, delta)-private for one answer.

Balle and Wang (2018) have the exact profile of continuous noise; whole-number noise has another,
delta = sum over z of max(0, P(z) - e^epsilon P(z + D)) (Canonne, Kamath and Steinke 2020, Theorem
7), which is larger. Its terms are positive exactly above t = epsilon s^2 / D - D / 2, where they
rise to one peak and fall. With the density of the same parameter in place of P (whose normaliser is
never smaller), the sum is at most the integral, which is the continuous profile, plus the peak. A
term is at most the density at z, which is at most that at t or at 0, and by 1 - e^-x <= x at most
the density at z = t + u times u D / s^2. For t >= 0 the density falls at least as exp(-u^2 / 2 s^2)
from there, and u times this is at most s e^(-1/2); for t < 0, u = z + |t|, and it is at most that
plus |t|. So a parameter with continuous delta + peak <= delta is enough; where that wastes more
than a thousandth of delta, the sum itself is added up, unless it has too many terms.

Terms further than REACH parameters above the first are left out of the sum: from there on they
fall at least as exp(-u^2 / 2 s^2), u being the distance, and all of them together are below 1e-37
of what is summed; the guard is far more.
"""

import math
from decimal import Decimal
from typing import Any

import numpy as np

from app.accounting.curves.gaussian import delta_at

_WASTE = 1e-3
_SUM_GUARD = 1 + 1e-9  # of sums of floats, all terms positive but for one difference
_TERMS_MAX = 8_000
REACH = 14
SUMMED_MAX = 50.0  # parameters up to here have their terms added up where that is wanted
Terms = np.ndarray[Any, np.dtype[np.float64]]


def least_scale(epsilon: Decimal, delta: Decimal, *, steps: int) -> float:
    """A parameter, near the least, that is private for answers moving by up to so many steps."""
    wanted = float(delta) * (1 - 1e-12)
    e = float(epsilon)
    scale = steps / mu_near(e, wanted)
    peak = _peak(e, scale, steps)
    if peak <= _WASTE * wanted or REACH * scale > _TERMS_MAX:
        scale = steps / mu_near(e, max(wanted - 1.01 * peak, wanted / 2) * (1 - _WASTE / 100))
        while _continuous(epsilon, scale, steps) + _peak(e, scale, steps) > wanted:
            scale *= 1.0005
        return scale
    return _least_summed(e, wanted, scale, steps)


def _least_summed(epsilon: float, delta: float, scale: float, steps: int) -> float:
    """From a parameter near it: by a line through the logarithms of two sums, and a little more
    until it is enough."""

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
    """Near the mu of which continuous noise has this profile: a guess, by halving; what comes of it
    is checked. With x = epsilon/mu - mu/2 and y = x + mu, delta is Phi(-x) - e^epsilon Phi(-y), and
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
    """No term is larger."""
    kink = epsilon * scale / steps - steps / scale / 2  # over s
    density = math.exp(-(max(kink, 0.0) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))
    rises = (math.exp(-0.5) + max(-kink, 0.0)) * steps / scale
    return density * min(1.0, rises) * (1 + 1e-9)


def _summed(epsilon: float, scale: float, steps: int) -> float:
    """The exact delta, but for the guard; its normaliser is taken from below."""
    first = math.floor(epsilon * scale * scale / steps - steps / 2) - 1
    last = int(max(first, 0) + REACH * scale) + 2
    z = np.arange(first, last, dtype=np.float64)
    there = (z / scale) ** 2 / 2
    moved = ((z + steps) / scale) ** 2 / 2
    # P(z) - e^epsilon P(z + D) = P(z) (1 - exp(epsilon + there - moved))
    gained = -np.expm1(np.minimum(epsilon + there - moved, 0.0))
    return float(np.sum(np.exp(-there) * gained)) / normaliser(scale)


def normaliser(scale: float) -> float:
    """sum over z of exp(-z^2 / (2 s^2)), from below: by its first terms, or as it is never less
    than s sqrt(2 pi) (Poisson summation)."""
    if scale > SUMMED_MAX:
        return scale * math.sqrt(2 * math.pi)
    return 2.0 * float(np.sum(upper_weights(scale))) - 1.0


def upper_weights(scale: float) -> Terms:
    """exp(-z^2 / (2 s^2)) from z = 0 on, as far as floats tell them from nothing."""
    z = np.arange(int(40 * scale) + 3, dtype=np.float64)
    weights: Terms = np.exp(-((z / scale) ** 2) / 2)
    return weights
