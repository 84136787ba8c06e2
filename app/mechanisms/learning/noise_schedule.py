"""Noise scale and price of the steps of a descent.

A row adds at most NORM to a step's sum (`clipping.py`), so a person moves it by at most moves *
NORM. T steps with discrete Gaussian noise of parameter t cost T (moves NORM)^2 / (2 t^2) zCDP. Each
step has its share of this, given the results of all steps before (Canonne, Kamath and Steinke 2020,
Theorem 4 and Proposition 5). zCDP adds up under adaptive composition (Bun and Steinke 2016).

On Poisson samples the steps cost a Renyi curve (`accounting/curves/sampled.py`). Bisection on
public numbers finds the least noise whose curve converts to within (epsilon, delta).

A private number of rows is released once, with discrete Gaussian noise, for a hundredth of the
loss. It only sets the size of a step.

Rounding: parameters round up, and the price is computed from the rounded parameter.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.accounting.curves.conversion import epsilon_of_rho, rho_limit
from app.accounting.loss import Loss
from app.accounting.losses import NO_PROMISE, zcdp_loss
from app.accounting.precise import decimal, units_down, units_up
from app.accounting.sampled_steps import SampledSteps
from app.accounting.units import ATTO, PICO, cost_units, limit_units
from app.errors import Invalid
from app.mechanisms.learning.clipping import NORM
from app.mechanisms.noise.gaussian import SCALE_MAX, root_up
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget

COUNT_SHARE = Fraction(1, 100)
MULTIPLIER_MIN = 0.01
COUNT_SCALE_MIN = 0.5  # less noise on the count has no use
TOO_LARGE = "too large: there would be almost no noise"
TOO_SMALL = "too small: the noise would not fit 64 bits"


@dataclass(frozen=True, slots=True)
class Moves:
    """Largest change that one person causes in the numbers that receive noise."""

    steps: int
    gradient: int  # gradients of one row each that a person changes in every step
    count: int | None  # change of the number of rows; None where it is not released
    replaced: bool


@dataclass(frozen=True, slots=True)
class NoiseSchedule:
    scale: float  # noise on each coordinate of a step's sum, in steps of the grid
    count_scale: float | None  # noise on the number of rows, in rows
    loss: Loss


def full_batch(moves: Moves, target: PrivacyTarget) -> NoiseSchedule:
    promise = None
    if target.epsilon is not None:
        if target.delta is None:
            raise CannotServe(_NEEDS_DELTA)
        promise = cost_units(target.epsilon, PICO), cost_units(target.delta, ATTO)
        rho = _rho_within(promise)
    elif target.rho is not None:
        rho = Fraction(limit_units(target.rho, PICO), PICO)
    else:
        raise CannotServe(_NO_WIDTH)
    count_scale, rho_of_count = _counting(moves, rho)
    moved = (moves.gradient * NORM) ** 2
    scale = _fitting(root_up(moves.steps * moved / (2 * (rho - rho_of_count))))
    spent = moves.steps * moved / (2 * Fraction(scale) ** 2) + _rho(moves.count, count_scale)
    if promise is None and target.delta is not None:
        epsilon = units_up(epsilon_of_rho(decimal(spent), target.delta))
        promise = epsilon, cost_units(target.delta, ATTO)
    return NoiseSchedule(scale, count_scale, zcdp_loss(spent, promise or NO_PROMISE))


def sampled(moves: Moves, rate: Fraction, target: PrivacyTarget) -> NoiseSchedule:
    if target.rho is not None:
        raise CannotServe("steps on samples have no rho: request epsilon and delta")
    if target.epsilon is None:
        raise CannotServe(_NO_WIDTH)
    if target.delta is None:
        raise CannotServe(_NEEDS_DELTA)
    promise = cost_units(target.epsilon, PICO), cost_units(target.delta, ATTO)
    count_scale, _ = _counting(moves, _rho_within(promise))
    beside = decimal(_rho(moves.count, count_scale))
    epsilon, delta = Decimal(promise[0]) / PICO, Decimal(promise[1]) / ATTO
    order_index = 12

    def steps(scale: float) -> SampledSteps:
        multiplier = decimal(Fraction(scale) / NORM)
        return SampledSteps(moves.steps, decimal(rate), multiplier, moves.replaced, beside)

    def fits(scale: float) -> bool:
        nonlocal order_index
        spent, order_index = steps(scale).epsilon_from(delta, order_index)
        return spent <= epsilon

    low, high = math.log(NORM * MULTIPLIER_MIN), math.log(SCALE_MAX)
    if fits(math.exp(low)):
        raise Invalid.field("/privacy", TOO_LARGE)
    if not fits(SCALE_MAX):
        raise Invalid.field("/privacy", TOO_SMALL)
    while high - low > 1e-7:
        middle = (low + high) / 2.0
        low, high = (low, middle) if fits(math.exp(middle)) else (middle, high)
    scale = math.exp(high)
    if steps(scale).epsilon(delta) > epsilon:
        raise ArithmeticError("the noise costs more than the requested epsilon")
    return NoiseSchedule(scale, count_scale, steps(scale).loss(promise))


_NEEDS_DELTA = "noisy gradient descent needs a delta with an epsilon, or a rho"
_NO_WIDTH = "gradient descent has no error formula: request epsilon and delta, or rho"


def _rho_within(promise: tuple[int, int]) -> Fraction:
    limit = rho_limit(Decimal(promise[0]) / PICO, Decimal(promise[1]) / ATTO)
    return Fraction(max(0, units_down(limit)), PICO)


def _counting(moves: Moves, rho: Fraction) -> tuple[float | None, Fraction]:
    """Noise parameter for the number of rows, and the part of rho reserved for it."""
    if rho <= 0:
        raise CannotServe("the loss is below one ledger unit")
    if moves.count is None:
        return None, Fraction(0)
    kept = rho * COUNT_SHARE
    return _not_beyond(max(COUNT_SCALE_MIN, root_up(moves.count**2 / (2 * kept)))), kept


def _rho(moved: int | None, scale: float | None) -> Fraction:
    if moved is None or scale is None:
        return Fraction(0)
    return moved**2 / (2 * Fraction(scale) ** 2)


def _fitting(scale: float) -> float:
    if scale < NORM * MULTIPLIER_MIN:
        raise Invalid.field("/privacy", TOO_LARGE)
    return _not_beyond(scale)


def _not_beyond(scale: float) -> float:
    if scale > SCALE_MAX:
        raise Invalid.field("/privacy", TOO_SMALL)
    return scale
