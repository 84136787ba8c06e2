"""Gaussian mechanism on integers: discrete Gaussian noise, for accounts that spend delta.

Theorem: Canonne, Kamath and Steinke (2020), Theorem 4 and Proposition 5 (multivariate): discrete
Gaussian noise of parameter s on integers whose L2 change is at most D is D^2 / (2 s^2)-zCDP.
Assumes: for neighbours that change measure i by e_i in L2, sum of share_i * e_i^2 / D_i^2 <= 1
(`queries/shapes/measures.py`). Then s_i^2 = D_i^2 / (2 rho share_i) on each costs rho in total.
Calibration from (epsilon, delta): where a person moves only one answer, by the exact profile
(`gaussian_calibration.py`, after Balle and Wang 2018). Otherwise by the largest rho whose tight
conversion is within (epsilon, delta).
Rounding: the parameter rounds up to the next float; rho is computed from that float and rounds up
to a unit. Size: parameters stop at 2^55 steps; the limit of 64 bits is more than 250 of them away.
"""

import math
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from app.accounting.curves.conversion import epsilon_of_rho, rho_limit
from app.accounting.loss import Loss
from app.accounting.losses import NO_PROMISE, zcdp_loss
from app.accounting.precise import decimal, units_down, units_up
from app.accounting.units import ATTO, PICO, cost_units, limit_units
from app.errors import Invalid
from app.mechanisms.noise.additive import AdditiveRelease, NoisyMeasure, float_up, steps_within
from app.mechanisms.noise.gaussian_calibration import (
    SUMMED_MAX,
    least_scale,
    normaliser,
    upper_weights,
)
from app.mechanisms.noise.release_for_shape import release_of
from app.mechanisms.noise.sum_tails import gaussian_norm, gaussian_width
from app.mechanisms.noise.workload_release import figure_width
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.release import RandomSource
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import SumShape
from app.queries.weighted_noise import WeightedNoiseSum

KIND = "gaussian"
THEOREM = "Canonne, Kamath and Steinke 2020, Theorem 4 (discrete Gaussian mechanism)"
SCALE_MAX = 2.0**55
SCALE_MIN = 0.1  # below, a draw other than 0 has probability below 4e-22
_NORMAL = NormalDist()


class DiscreteGaussianNoise:
    """Discrete Gaussian: P(Z = z) in proportion to exp(-z^2 / (2 scale^2))."""

    kind = KIND

    def draw(self, noise: RandomSource, scale: float, size: int) -> list[int]:
        return noise.discrete_gaussian(scale, size)

    def width(self, scale: float, alpha: float) -> int:
        return width(scale, alpha)

    def sum_width(self, scale: float, sum_of: WeightedNoiseSum, alpha: float) -> float:
        return gaussian_width(scale, sum_of, alpha)

    def norm(self, scale: float, *, root: float, largest: float, size: int, alpha: float) -> float:
        return gaussian_norm(scale, root, size, alpha)

    def deviation(self, scale: float) -> float:
        """At most the parameter (Canonne, Kamath and Steinke 2020, Corollary 9), and for small
        ones much less."""
        if scale > SUMMED_MAX:
            return scale
        weights = upper_weights(scale)
        places = np.arange(len(weights), dtype=np.float64)
        return math.sqrt(2.0 * float(np.sum(places**2 * weights)) / normaliser(scale))


LAW = DiscreteGaussianNoise()


def width(scale: float, alpha: float) -> int:
    """The least w with P(|Z| > w) <= alpha, by summation for small parameters.

    For larger parameters, a w near it. exp(-z^2 / (2 s^2)) is convex beyond s, so its value at z
    is at most its mean from z - 1/2 to z + 1/2. The sum over all z is at least s sqrt(2 pi)
    (Poisson summation). So P(|Z| > w) is at most that of a normal beyond w + 1/2, if that is s
    or more. Below, P(Z >= w + 1) is at most the probability that a normal is above w (Canonne,
    Kamath and Steinke 2020, Proposition 25)."""
    reach = -_NORMAL.inv_cdf(alpha / 2.0) * scale * (1.0 + 1e-9)
    if scale > SUMMED_MAX:
        return math.ceil(reach - 0.5 if reach > scale else reach)
    tails = np.cumsum(upper_weights(scale)[::-1])[::-1]  # sum of the weights from each integer on
    allowed = alpha * (1.0 - 1e-9) * normaliser(scale) / 2.0
    return int(np.count_nonzero(tails[1:] > allowed))


def prepare(shape: SumShape, target: PrivacyTarget) -> AdditiveRelease:
    if target.epsilon is not None:
        if target.delta is None:
            raise CannotServe("Gaussian noise needs a delta with an epsilon, or a rho")
        parts, promise = _from_promise(shape, target.epsilon, target.delta)
    elif target.rho is not None:
        parts = _from_rho(shape, Fraction(limit_units(target.rho, PICO), PICO))
        promise = None
    else:
        assert target.half_width is not None
        parts, promise = _from_width(shape, target.half_width, target.confidence), None
    for part in parts:
        if part.scale < SCALE_MIN:
            raise Invalid.field("/privacy", "too large: there would be no noise at all")
        if part.scale > SCALE_MAX:
            raise Invalid.field("/privacy", "too small: the noise would not fit 64 bits")
    rho = sum((_rho(part) for part in parts), Fraction(0))
    if promise is None and target.delta is not None:
        epsilon = units_up(epsilon_of_rho(decimal(rho), target.delta))
        promise = epsilon, cost_units(target.delta, ATTO)
    loss: Loss = zcdp_loss(rho, promise or NO_PROMISE)
    return release_of(LAW, shape, parts, loss, THEOREM)


def _rho(part: NoisyMeasure) -> Fraction:
    """Share of rho that this part costs, from the rounded parameter that is sampled."""
    squared = Fraction(part.measure.sensitivity_squared)
    return squared / (2 * Fraction(part.scale) ** 2)


def _from_rho(shape: SumShape, rho: Fraction) -> tuple[NoisyMeasure, ...]:
    if rho <= 0:
        raise CannotServe("the rho is below one ledger unit")
    return tuple(
        NoisyMeasure(measure, root_up(measure.sensitivity_squared / (2 * rho * measure.share)))
        for measure in shape.measures
    )


def _from_promise(
    shape: SumShape, epsilon: Decimal, delta: Decimal
) -> tuple[tuple[NoisyMeasure, ...], tuple[int, int]]:
    promise = cost_units(epsilon, PICO), cost_units(delta, ATTO)
    exactly = Decimal(promise[0]) / PICO, Decimal(promise[1]) / ATTO
    only = shape.measures[0]
    if len(shape.measures) == 1 and only.single_cell:
        scale = least_scale(*exactly, steps=only.sensitivity)
        return (NoisyMeasure(only, scale),), promise
    rho = Fraction(units_down(rho_limit(*exactly)), PICO)
    return _from_rho(shape, rho), promise


def _from_width(shape: SumShape, half_width: float, confidence: float) -> tuple[NoisyMeasure, ...]:
    """The largest parameter whose interval is within the half width."""
    if shape.no_half_width_reason is not None:
        raise Invalid.field("/privacy/half_width", shape.no_half_width_reason)
    measure: Measure = shape.measures[0]
    steps = steps_within(shape, half_width)
    if shape.linear is None:
        steps = Fraction(math.floor(steps))
    reach = -_NORMAL.inv_cdf((1.0 - confidence) / 2.0)
    near = (float(steps) + 0.5) / max(reach, 1e-9)  # a confidence near 0 allows any noise
    scale = _largest_scale(shape, float(steps), 1.0 - confidence, near)
    if steps < 1 or figure_width(LAW, shape, scale, 1.0 - confidence) > steps:
        raise CannotServe("no noise reaches this half width")
    return (NoisyMeasure(measure, scale),)


def _largest_scale(shape: SumShape, steps: float, alpha: float, start: float) -> float:
    """Nearly the largest parameter whose intervals are all within `steps`, by bisection."""
    low, high = 0.0, 2.0 * start + 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        if figure_width(LAW, shape, middle, alpha) > steps:
            high = middle
        else:
            low = middle
    return low or SCALE_MIN


def root_up(value: Fraction) -> float:
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return float_up(Fraction(root))
