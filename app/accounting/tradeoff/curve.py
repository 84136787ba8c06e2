"""Trade-off curve of a spend: the miss rate for each rate of false alarms.

The curve never claims more privacy than there is: an exact curve where the only release is known,
otherwise the highest of the bounds from the totals. Each value is lowered by `GUARD`, far above the
float error of its computation (this is a report, not a price).

Assumes: the totals bound the loss for all possible answers. For an analyst who chose prices by
answers they may not (Rogers, Roth, Ullman and Vadhan 2016, on odometers). Then the curve is that of
the same losses fixed in advance, and the curve of the account's limit is the guarantee.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from app.accounting.tradeoff import bounds, exact
from app.accounting.tradeoff.exact import TradeoffCurve

GUARD = 1e-11
ALPHAS: tuple[float, ...] = tuple(i / 100 for i in range(101))


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """The least miss rate β for each false-alarm rate α."""

    alphas: list[float]
    betas: list[float]
    exact: bool
    theorem: str


@dataclass(frozen=True, slots=True)
class RandomizedResponseTradeoff:
    """One answer, or several of two categories and the same epsilon; delta is a leak in each."""

    epsilon: Fraction
    categories: int = 2
    repeats: int = 1
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class LeakyInputTradeoff:
    """Shows its input with probability delta, and otherwise nothing."""

    delta: Fraction


@dataclass(frozen=True, slots=True)
class LaplaceTradeoff:
    """Continuous noise, or discrete noise on one answer that moves by `steps` steps."""

    epsilon: Fraction
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class GaussianTradeoff:
    """Continuous noise; mu_squared is (L2 sensitivity / standard deviation)^2."""

    mu_squared: Fraction


Single = RandomizedResponseTradeoff | LeakyInputTradeoff | LaplaceTradeoff | GaussianTradeoff


def tradeoff_of(
    *,
    pure: Fraction | None = None,
    failure: Fraction = Fraction(0),
    rho: Fraction | None = None,
    mu_squared: Fraction | None = None,
    renyi: Iterable[tuple[Fraction, Fraction | float]] | None = None,
    single: Single | None = None,
    alphas: Sequence[float] = ALPHAS,
) -> Tradeoff:
    """The curve of an account's totals, None where one has no bound; exact for a `single` release.

    pure: sum of epsilons. failure: sum of additive deltas. rho, mu_squared, renyi as (order,
    divergence): sums. Each of them must cover the whole spend, except for the failure."""
    if single is not None:
        curve, theorem = _single(single)
        return shown(curve, alphas, exact=True, theorem=theorem)
    parts: list[TradeoffCurve] = []
    theorems: list[str] = []
    lost = _fraction(failure, "failure", most=1)
    if pure is not None:
        # Basic composition makes the whole (epsilon, delta)-private, which is enough here.
        parts.append(exact.limited(_fraction(pure, "pure"), lost))
        theorems.append("(epsilon, delta) as leaky randomised response (Kairouz-Oh-Viswanath 2015)")
    if mu_squared is not None:
        mu = math.sqrt(_fraction(mu_squared, "mu_squared"))
        parts.append(bounds.failing(exact.gaussian(mu), lost))
        theorems.append("Gaussian differential privacy (Dong-Roth-Su 2022)")
    if rho is not None:
        parts.append(bounds.failing(bounds.from_rho(_fraction(rho, "rho")), lost))
        theorems.append("zCDP by data processing at each order (van Erven-Harremoes 2014)")
    if renyi is not None:
        limits = [(float(order), float(value)) for order, value in renyi]
        parts.append(bounds.failing(bounds.from_renyi(limits), lost))
        theorems.append("Renyi divergences by data processing (van Erven-Harremoes 2014)")
    theorem = "; ".join(theorems) or "nothing is known of the losses"
    return shown(bounds.highest(parts), alphas, exact=False, theorem=theorem)


def lowest(curves: Sequence[Tradeoff]) -> Tradeoff:
    """The least miss rate at each point: it holds for every person, with any of the curves."""
    if len(curves) == 1:
        return curves[0]
    betas = [min(values) for values in zip(*(curve.betas for curve in curves), strict=True)]
    theorems = dict.fromkeys(part for curve in curves for part in curve.theorem.split("; "))
    return Tradeoff(curves[0].alphas, betas, exact=False, theorem="; ".join(theorems))


def _single(release: Single) -> tuple[TradeoffCurve, str]:
    match release:
        case RandomizedResponseTradeoff():
            delta = _fraction(release.delta, "delta", most=1)
            if release.categories < 2 or (release.categories > 2 and release.repeats > 1):
                raise ValueError("several answers need two categories each, one needs at least two")
            if release.repeats == 1:
                epsilon = _fraction(release.epsilon, "epsilon")
                curve = exact.randomized_response(epsilon, release.categories)
            else:
                curve = exact.repeated_randomized_response(release.epsilon, release.repeats)
            # All leaks act as one: 1 - (1 - delta)^repeats.
            leaks = -math.expm1(release.repeats * math.log1p(-delta)) if delta < 1.0 else 1.0
            name = "leaky randomised response" if delta else "randomised response"
            return exact.leaking(curve, leaks), f"{name} (Kairouz-Oh-Viswanath 2015)"
        case LeakyInputTradeoff():
            delta = _fraction(release.delta, "delta", most=1)
            return exact.limited(0.0, delta), "leaky input (Kairouz-Oh-Viswanath 2015)"
        case LaplaceTradeoff():
            epsilon = _fraction(release.epsilon, "epsilon")
            if release.steps is None:
                return exact.laplace(epsilon), "Laplace noise (Dong-Roth-Su 2022)"
            if release.steps < 1:
                raise ValueError("steps must be at least one")
            theorem = "whole-number Laplace noise (Neyman-Pearson lemma)"
            return exact.discrete_laplace(epsilon, release.steps), theorem
        case GaussianTradeoff():
            mu = math.sqrt(_fraction(release.mu_squared, "mu_squared"))
            return exact.gaussian(mu), "Gaussian noise (Dong-Roth-Su 2022)"


def shown(curve: TradeoffCurve, alphas: Sequence[float], *, exact: bool, theorem: str) -> Tradeoff:
    """The curve at increasing alphas: lowered, within [0, 1 - α], and never rising."""
    points = [float(alpha) for alpha in alphas]
    if any(not 0.0 <= alpha <= 1.0 for alpha in points):
        raise ValueError("alphas must be between 0 and 1")
    if any(not left < right for left, right in pairwise(points)):
        raise ValueError("alphas must increase")
    betas: list[float] = []
    ceiling = 1.0
    for alpha in points:
        value = curve(alpha)
        # Written so that NaN becomes zero, the safe side.
        lowered = min(value, 1.0 - alpha) - GUARD if value >= GUARD else 0.0
        ceiling = max(0.0, min(ceiling, lowered))
        betas.append(ceiling)
    return Tradeoff(points, betas, exact, theorem)


def _fraction(value: Fraction, name: str, most: int | None = None) -> float:
    if value < 0 or (most is not None and value > most):
        raise ValueError(
            f"{name} must not be negative" + ("" if most is None else f" and at most {most}")
        )
    return float(value)
