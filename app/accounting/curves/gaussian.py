"""Gaussian differential privacy: conversion between mu and its exact (epsilon, delta) trade-off.

Theorem: Balle and Wang 2018, and Dong, Roth and Su 2019: N(0, 1) against N(mu, 1) is (epsilon,
delta)-private exactly when delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).
Mechanisms of mu_i compose to sqrt(sum mu_i^2); Gaussian noise of standard deviation s on a change
of at most d has mu = d / s.
Rounding: `delta_at` lies above the true delta by a relative 1e-20 at most (more where the closed
form cancels). Every search ends on a value that `delta_at` accepted. So an epsilon is never too
small, a mu that is a limit never too large, and a mu that is a cost never too small. All arithmetic
is decimal: the same digits on every machine.
"""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext

from app.accounting.precise import CONTEXT

INFINITY = Decimal("Infinity")
# Differences below lose digits; the result keeps 40.
_WORK = Context(prec=64, Emax=CONTEXT.Emax, Emin=CONTEXT.Emin)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640629")
_ABOVE = 1 + Decimal("1e-20")
_TAIL_ABOVE = 1 + Decimal("1e-50")  # a tail alone loses no digits
_DELTA_LEAST = Decimal("1e-10000")  # smaller deltas are replaced by this, so that logarithms exist
_SERIES_BELOW = 5
_PURE_MU_FOR_EPSILON_BELOW = 40

# Maps a point to the value and the slope of the searched function.
NewtonStep = Callable[[Decimal], tuple[Decimal, Decimal]]


def normal_cdf(x: Decimal) -> Decimal:
    """Phi(x) to 40 digits."""
    with localcontext(_WORK):
        value = _upper_tail(-x)
    return CONTEXT.plus(value)


def normal_quantile(p: Decimal) -> Decimal:
    """The x with Phi(x) = p, within 1e-19 of it, for 0 < p < 1; from p = 1/2 on never below it."""
    if not 0 < p < 1:
        raise ValueError("p must be between 0 and 1")
    with localcontext(_WORK):
        tail = 1 - p
        value = _tail_quantile(tail) if tail < p else -_tail_quantile(p)
    return CONTEXT.plus(value)


def delta_at(epsilon: Decimal, mu: Decimal) -> Decimal:
    """A delta for which mu-GDP is (epsilon, delta)-private: the exact one, rounded up."""
    if epsilon < 0 or mu < 0:
        raise ValueError("epsilon and mu must not be negative")
    if mu == 0:
        return Decimal(0)
    if mu == INFINITY:
        return Decimal(1)
    with localcontext(_WORK):
        value = _delta(epsilon, mu)
    return min(Decimal(1), CONTEXT.plus(value))


def epsilon_at(delta: Decimal, mu: Decimal) -> Decimal:
    """The least epsilon at which mu-GDP is (epsilon, delta)-private, rounded up."""
    if not 0 < delta < 1 or mu < 0:
        raise ValueError("delta must be between 0 and 1, and mu must not be negative")
    if mu == INFINITY:
        return INFINITY
    if delta_at(Decimal(0), mu) <= delta:
        return Decimal(0)
    with localcontext(_WORK):

        def step(epsilon: Decimal) -> tuple[Decimal, Decimal]:
            delta_here = _delta(epsilon, mu)
            return (delta_here / delta).ln(), -_second_part(epsilon, mu) / delta_here

        # Phi(-x) <= exp(-x^2/2)/2 for x >= 0, so this one fits. ln(delta) is concave in epsilon, so
        # Newton steps approach from the side that fits.
        fits = mu * (-2 * delta.ln()).sqrt() + mu * mu / 2
        value = _last_that_fits(step, fits, Decimal(0))
        return _shortened(value, up=True)


def mu_within(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The largest mu that is (epsilon, delta)-private, rounded down: a limit."""
    if epsilon < 0 or not 0 < delta < 1:
        raise ValueError("epsilon must not be negative, and delta must be between 0 and 1")
    with localcontext(_WORK):

        def step(mu: Decimal) -> tuple[Decimal, Decimal]:
            delta_here = _delta(epsilon, mu)
            return (delta_here / delta).ln(), _density(epsilon / mu - mu / 2) / delta_here

        # Both fit: by the tail bound above, and as delta(epsilon) <= delta(0) <= mu/sqrt(2 pi).
        root = (-2 * delta.ln()).sqrt()
        fits = max(2 * epsilon / ((root * root + 2 * epsilon).sqrt() + root), 2 * delta)
        over = 2 * fits
        while _delta(epsilon, over) <= delta:
            fits, over = over, 2 * over
        value = _last_that_fits(step, fits, over)
        return _shortened(value, up=False)


def pure_mu(e: Decimal) -> Decimal:
    """The mu of any e-private mechanism, 2 Phi^-1(exp(e) / (1 + exp(e))), rounded up: a cost.

    The trade-off curve of the mechanism lies above two lines that meet at its kink. The Gaussian
    trade-off curve of this mu passes through the kink and is convex, so it lies below both
    lines. Above 40 no bound is given: infinity."""
    if e < 0:
        raise ValueError("epsilon must not be negative")
    if e == 0:
        return Decimal(0)
    if e > _PURE_MU_FOR_EPSILON_BELOW:
        return INFINITY
    with localcontext(_WORK):
        value = 2 * _tail_quantile(1 / (1 + e.exp()))
        return _shortened(value, up=True)


# The functions below are evaluated in _WORK, which the callers above have set.


def _delta(epsilon: Decimal, mu: Decimal) -> Decimal:
    first = _upper_tail(epsilon / mu - mu / 2)
    value = first - _second_part(epsilon, mu)
    if value < first * Decimal("1e-30"):  # almost no digit is left: drop the second part
        value = first
    return max(value * _ABOVE, _DELTA_LEAST)


def _second_part(epsilon: Decimal, mu: Decimal) -> Decimal:
    """e^epsilon (1 - Phi(y)), y = epsilon/mu + mu/2.

    e^epsilon times the density at y is the density at epsilon/mu - mu/2, so no factor overflows."""
    y = epsilon / mu + mu / 2
    return _density(epsilon / mu - mu / 2) * _tail_over_density(y)


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / (2 * _PI).sqrt()


def _upper_tail(x: Decimal) -> Decimal:
    """1 - Phi(x)"""
    if x < 0:
        return 1 - _upper_tail(-x)
    return _density(x) * _tail_over_density(x)


def _tail_over_density(x: Decimal) -> Decimal:
    """(1 - Phi(x)) over the density, for x >= 0: a positive series near 0, Laplace's continued
    fraction beyond."""
    if x < _SERIES_BELOW:
        total = term = x
        odd = 1
        while term > total * Decimal("1e-64"):
            odd += 2
            term *= x * x / odd
            total += term
        return Decimal("0.5") / _density(x) - total
    below = x
    for k in range(int(4500 / (x * x)) + 40, 0, -1):  # enough for 55 digits
        below = x + k / below
    return 1 / below


def _tail_quantile(tail: Decimal) -> Decimal:
    """The least x >= 0 with 1 - Phi(x) <= tail, for tail <= 1/2, rounded up."""
    if tail >= Decimal("0.5"):
        return Decimal(0)

    def step(x: Decimal) -> tuple[Decimal, Decimal]:
        tail_here = _upper_tail(x) * _TAIL_ABOVE
        return (tail_here / tail).ln(), -_density(x) / tail_here

    fits = (-2 * (2 * tail).ln()).sqrt()
    return _last_that_fits(step, fits, Decimal(0))


def _last_that_fits(step: NewtonStep, fits: Decimal, over: Decimal) -> Decimal:
    """A point that fits (its value is at most 0), near the root between `fits` and `over`.

    Newton steps, and bisection where they leave the bracket."""
    x = fits
    inward = 1 if fits > over else -1
    for _ in range(300):
        value, slope = step(x)
        if value <= 0:
            fits = x
        else:
            over = x
        following = x - value / slope if slope else fits
        # the next error is the square of this one
        if abs(following - x) <= abs(x) * Decimal("1e-13"):
            settled = following + inward * abs(following) * Decimal("1e-22")
            if step(settled)[0] <= 0:
                return settled
        if abs(fits - over) <= abs(fits) * Decimal("1e-30"):
            break
        if not min(fits, over) < following < max(fits, over):
            following = (fits + over) / 2
        x = following
    return fits


def _shortened(value: Decimal, *, up: bool) -> Decimal:
    """Round to 40 digits, in the safe direction."""
    short = CONTEXT.plus(value)
    if up:
        return short if short >= value else short.next_plus(CONTEXT)
    return short if short <= value else short.next_minus(CONTEXT)
