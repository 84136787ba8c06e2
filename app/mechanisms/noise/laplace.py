"""Laplace mechanism on integers: discrete Laplace noise of scale sensitivity / epsilon.

Theorem: Dwork, McSherry, Nissim and Smith (2006), Proposition 1, in its discrete form (Ghosh,
Roughgarden and Sundararajan 2009): noise with p = exp(-epsilon / D) on integers whose L1 change
over neighbours is at most the integer D is epsilon-private, for vectors too.
Assumes: for neighbours that change measure i by d_i in L1, sum of share_i * d_i / D_i <= 1
(`queries/shapes/measures.py`). Then noise of scale D_i / (share_i * epsilon) on each costs epsilon
in total.
Rounding: epsilon is the charged integer; the scale rounds up to the next float, so the loss never
exceeds the charge.

Size: OpenDP's noise saturates at 64 bits. Scales stop at 2^55 steps, where saturation has
probability exp(-256). A query that needs more noise is refused.
"""

import math
from fractions import Fraction

from app.accounting.curves.curve_units import pure_rho
from app.accounting.losses import discrete_laplace_loss
from app.accounting.units import PICO, cost_units, limit_units
from app.errors import Invalid
from app.mechanisms.noise.additive import AdditiveRelease, NoisyMeasure, float_up, steps_within
from app.mechanisms.noise.release_for_shape import release_of
from app.mechanisms.noise.sum_tails import laplace_norm, laplace_width
from app.mechanisms.noise.workload_release import figure_width
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.release import RandomSource
from app.mechanisms.unit_search import EPSILON_UNITS_MAX, largest_satisfying
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import SumShape
from app.queries.weighted_noise import WeightedNoiseSum

KIND = "laplace"
THEOREM = "Dwork, McSherry, Nissim and Smith 2006, Proposition 1 (discrete Laplace mechanism)"
SCALE_MAX = 2.0**55
SCALE_MIN = 1e-3  # below, a draw other than 0 has probability exp(-1000): no noise at all


class DiscreteLaplaceNoise:
    """Discrete Laplace: P(Z = z) = (1 - p) / (1 + p) * p^|z|, p = exp(-1 / scale)."""

    kind = KIND

    def draw(self, noise: RandomSource, scale: float, size: int) -> list[int]:
        return noise.discrete_laplace(scale, size)

    def width(self, scale: float, alpha: float) -> int:
        return width(scale, alpha)

    def sum_width(self, scale: float, sum_of: WeightedNoiseSum, alpha: float) -> float:
        return laplace_width(scale, sum_of, alpha)

    def norm(self, scale: float, *, root: float, largest: float, size: int, alpha: float) -> float:
        return laplace_norm(scale, root, largest, size, alpha)

    def deviation(self, scale: float) -> float:
        """Standard deviation, from the variance 2 p / (1 - p)^2."""
        p = math.exp(-1.0 / scale)
        return math.sqrt(2.0 * p) / -math.expm1(-1.0 / scale)


LAW = DiscreteLaplaceNoise()


def width(scale: float, alpha: float) -> int:
    """The least w with P(|Z| > w) = 2 p^(w+1) / (1 + p) <= alpha, for p = exp(-1 / scale)."""
    tail = math.log(2.0 / (alpha * (1.0 + math.exp(-1.0 / scale))))
    return max(0, math.ceil(scale * tail * (1.0 + 1e-12)) - 1)


def prepare(shape: SumShape, target: PrivacyTarget) -> AdditiveRelease:
    """Prepare the release for the requested epsilon, rho or half width.

    It costs the requested epsilon, at most the requested rho, or the least epsilon whose half
    width is within the requested one."""
    if target.epsilon is not None:
        epsilon = cost_units(target.epsilon, PICO)
    elif target.rho is not None:
        epsilon = epsilon_within_rho(limit_units(target.rho, PICO))
    else:
        assert target.half_width is not None
        epsilon = _epsilon_for(shape, target.half_width, target.confidence)
    return release_of(
        law=LAW,
        shape=shape,
        parts=tuple(_part(measure, epsilon) for measure in shape.measures),
        loss=discrete_laplace_loss(
            epsilon, tuple(measure.sensitivity / measure.share for measure in shape.measures)
        ),
        theorem=THEOREM,
    )


def _part(measure: Measure, epsilon: int) -> NoisyMeasure:
    scale = _scale(measure, epsilon)
    if scale < SCALE_MIN:
        raise Invalid.field("/privacy/epsilon", "too large: there would be no noise at all")
    if scale > SCALE_MAX:
        raise Invalid.field("/privacy/epsilon", "too small: the noise would not fit 64 bits")
    return NoisyMeasure(measure, scale)


def _scale(measure: Measure, epsilon: int) -> float:
    return float_up(measure.sensitivity / (Fraction(epsilon, PICO) * measure.share))


def epsilon_within_rho(rho: int) -> int:
    """The largest epsilon, in units, whose rho, e tanh(e/2), is at most `rho` units."""

    def fits(epsilon: int) -> bool:
        return pure_rho(epsilon) <= rho

    if not fits(1):
        raise CannotServe("the rho is too small for any Laplace noise")
    return largest_satisfying(fits, 1, EPSILON_UNITS_MAX, pure_epsilon_near(rho / PICO) * PICO)


def pure_epsilon_near(rho: float) -> float:
    """Approximate e with e tanh(e/2) = rho, by Newton's method."""
    e = max(math.sqrt(2.0 * rho), rho)
    for _ in range(8):
        t = math.tanh(e / 2.0)
        e -= (e * t - rho) / (t + e * (1.0 - t * t) / 2.0)
    return e


def _epsilon_for(shape: SumShape, half_width: float, confidence: float) -> int:
    """The least epsilon whose interval is within the half width.

    The width never grows with epsilon, so bisection finds it."""
    if shape.no_half_width_reason is not None:
        raise Invalid.field("/privacy/half_width", shape.no_half_width_reason)
    measure = shape.measures[0]
    steps = steps_within(shape, half_width)

    def too_wide(epsilon: int) -> bool:
        return figure_width(LAW, shape, _scale(measure, epsilon), 1.0 - confidence) > steps

    if too_wide(EPSILON_UNITS_MAX):
        raise CannotServe("no noise reaches this half width")
    return largest_satisfying(too_wide, 0, EPSILON_UNITS_MAX) + 1 if too_wide(1) else 1
