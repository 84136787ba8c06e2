"""Losses of known mechanisms, in every currency.

Equal inputs give equal units on every machine, so recent results are cached.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial

from app.accounting.curves.curve_units import (
    bounded_range_curve,
    bounded_range_rho,
    discrete_laplace_curve,
    laplace_curve,
    laplace_rho,
    pure_curve,
    pure_rho,
    randomized_response_curve,
)
from app.accounting.curves.orders import QUARTERS
from app.accounting.loss import Loss, RenyiCurve
from app.accounting.precise import INFINITE, decimal
from app.accounting.rules.gdp import pure_mu_squared
from app.accounting.units import ATTO, PICO
from app.caches import owned_cache

KEPT = 4096


@owned_cache(maxsize=KEPT)
def pure_loss(epsilon: int) -> Loss:
    """Any mechanism that is `epsilon` units private: priced as randomised response, the worst
    case."""
    return _of_pure(epsilon, partial(pure_curve, epsilon), pure_rho(epsilon))


@owned_cache(maxsize=KEPT)
def discrete_laplace_loss(epsilon: int, steps: tuple[Fraction, ...]) -> Loss:
    """Discrete Laplace noise on one or more answers that share `epsilon`.

    An answer may move by `steps` of its grid if all of the change is in it; its noise has scale
    steps / epsilon. The largest of their curves, that of the fewest steps, bounds them together
    (`renyi_curves.discrete_laplace`)."""
    if min(steps) <= 1:
        return pure_loss(epsilon)
    curve = partial(discrete_laplace_curve, epsilon, min(steps))
    # rho of randomised response, which bounds every pure mechanism; no tighter one is proven.
    return _of_pure(epsilon, curve, pure_rho(epsilon))


@owned_cache(maxsize=KEPT)
def laplace_loss(epsilon: int) -> Loss:
    """Continuous Laplace noise, for external releases."""
    return _of_pure(epsilon, partial(laplace_curve, epsilon), laplace_rho(epsilon))


@owned_cache(maxsize=KEPT)
def bounded_range_loss(epsilon: int, rounds: int = 1) -> Loss:
    """Exponential mechanism, or several rounds without replacement that share `epsilon`.

    In each the log-ratio has range at most epsilon / rounds (Dong, Durfee and Rogers 2020), and
    the curves add up."""
    return _of_rounds(epsilon, rounds, bounded_range_curve, bounded_range_rho)


@owned_cache(maxsize=KEPT)
def repeated_loss(epsilon: int, rounds: int) -> Loss:
    """Adaptive pure mechanisms that share `epsilon` evenly."""
    return _of_rounds(epsilon, rounds, pure_curve, pure_rho)


def _of_rounds(
    epsilon: int,
    rounds: int,
    curve: Callable[[int, int], RenyiCurve],
    rho: Callable[[int, int], int],
) -> Loss:
    """Loss of all rounds: epsilon-private together, and the sums over the rounds hold too."""
    loss = _of_pure(epsilon, partial(curve, epsilon, rounds), rho(epsilon, rounds))
    if rounds == 1:
        return loss
    epsilon_per_round = decimal(Fraction(epsilon, PICO * rounds))
    return loss.replace(
        mu_squared=lambda: min(loss.mu_squared, rounds * pure_mu_squared(epsilon_per_round))
    )


@owned_cache(maxsize=KEPT)
def randomized_response_loss(epsilon: int, categories: int) -> Loss:
    """Report of one of several categories, the true one with odds of at most exp(epsilon)."""
    curve = partial(randomized_response_curve, epsilon, categories)
    return _of_pure(epsilon, curve, pure_rho(epsilon))


def _of_pure(epsilon: int, curve: Callable[[], RenyiCurve], rho: int) -> Loss:
    mu_squared = partial(pure_mu_squared, Decimal(epsilon) / PICO)
    return Loss(epsilon, 0, epsilon, 0, rho, mu_squared, curve)


def generic_loss(epsilon: int, delta: int) -> Loss:
    """Any (epsilon, delta)-private mechanism: pure, except with probability delta.

    Kairouz, Oh and Viswanath 2015, Theorem 3.1."""
    return pure_loss(epsilon).replace(delta=delta, failure=delta)


NO_PROMISE = (INFINITE, ATTO)


def zcdp_loss(rho: Fraction, promise: tuple[int, int] = NO_PROMISE) -> Loss:
    """Any rho-zCDP mechanism; `promise` is the (epsilon, delta) for basic composition, if any."""

    def curve() -> RenyiCurve:
        top, below = rho.numerator * PICO, 4 * rho.denominator
        return tuple(min(INFINITE, -(-top * quarters // below)) for quarters in QUARTERS)

    return Loss(*promise, rho=_ceiling(rho), curve=curve)


def gaussian_loss(multiplier: Fraction, promise: tuple[int, int] = NO_PROMISE) -> Loss:
    """Gaussian noise of `multiplier` times the L2 sensitivity: mu = 1 / multiplier, rho = mu^2 /
    2."""
    mu_squared = 1 / (multiplier * multiplier)
    concentrated = zcdp_loss(mu_squared / 2, promise)
    return concentrated.replace(mu_squared=_ceiling(mu_squared))


def _ceiling(value: Fraction) -> int:
    return min(INFINITE, math.ceil(value * PICO))
