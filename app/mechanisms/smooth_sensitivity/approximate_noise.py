"""Laplace and Gaussian noise for smooth sensitivity: lighter tails, for a delta.

Laplace, scale S / a. Neighbours are Z and theta + e^lambda Z. If the second is wider the log-ratio
is at most lambda + a e^-lambda, at 0, which is convex in lambda: a <= epsilon and beta + a e^-beta
<= epsilon are enough. If it is narrower by e^-m the log-ratio passes epsilon on both sides beyond
(epsilon + m +- a)/(e^m - 1). There the first law exceeds the second by (1 - e^-m) exp(-(epsilon +
m)/(e^m - 1)) cosh(a/(e^m - 1)). This grows with m, so delta is its value at m = beta. The value is
exact: no smaller delta is enough.

Gaussian, standard deviation S / a: a shift, then a stretch. Under a shift of at most a the law is
(epsilon_1, delta_1)-close to itself by Balle and Wang 2018. For a stretch by e^lambda only |lambda|
= beta matters: adding the same normal number to both sides and rescaling turns the largest stretch
into any smaller one. There the log-ratio is at most beta if the second law is wider. If it is
narrower, the log-ratio passes epsilon_2 only beyond t = sqrt(2 (epsilon_2 + beta)/(e^(2 beta) -
1)), which has probability delta_2 = 2 Phi(-t). Together this is (epsilon_1 + epsilon_2, delta_1 +
e^epsilon_1 delta_2) with epsilon_2 >= beta (and not the sum of the deltas, as is often written).

Rounding: everything is computed to 40 digits and more, deltas up and a down.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from app.accounting.curves.gaussian import mu_within, normal_cdf
from app.accounting.losses import generic_loss
from app.accounting.units import ATTO, PICO
from app.caches import owned_cache
from app.mechanisms.privacy_target import CannotServe, SmoothSensitivityParameters
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.directed_decimal import both_ways
from app.mechanisms.sampling.partial_sample import Ends, PartialSample, exponential, half_normal
from app.mechanisms.smooth_sensitivity.calibrated_noise import (
    FINE,
    CalibratedNoise,
    Drawn,
    NoiseBudget,
    Numbers,
    betas,
    check_beta,
    even_spread,
    fine,
    floor,
    least,
)

LAPLACE = "laplace"
GAUSSIAN = "gaussian"
_STRETCH_SHARE = 0.1  # share of delta for the stretch of Gaussian noise
_ABOVE = 1 + Decimal("1e-20")
_NORMAL = NormalDist()
_STEPS = 10
_ROOT_TWO, _ROOT_TWO_PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)


@owned_cache(maxsize=512)
def laplace(budget: NoiseBudget, parameters: SmoothSensitivityParameters) -> CalibratedNoise:
    units, epsilon, delta = _promise(budget)
    check_beta(parameters.beta, float(epsilon))

    looked_at = betas(parameters.beta, np.array([float(epsilon)]))
    with np.errstate(all="ignore"):
        width = laplace_quantile(0.95) / _laplace_near(float(epsilon), float(delta), looked_at)
    beta, _ = least(looked_at, width, budget.moves)
    s = laplace_divisor(epsilon, delta, beta)
    return CalibratedNoise(
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
    """The largest private a, rounded down."""
    with localcontext(FINE):
        e, b = fine(epsilon), fine(beta)
        grows = b.exp() - 1
        bound = fine(delta) / (1 - (-b).exp()) * ((e + b) / grows).exp()
        if e <= b or bound <= 1:
            raise ArithmeticError("the beta is too large for this loss")
        narrower = grows * (bound + (bound * bound - 1).sqrt()).ln()
        return floor(min(e, (e - b) * b.exp(), narrower))


def _laplace_near(epsilon: float, delta: float, beta: Numbers) -> Numbers:
    """`laplace_divisor` for many betas, in floats; NaN where a beta is too large."""
    grows = np.expm1(beta)
    log_bound = np.log(delta / -np.expm1(-beta)) + (epsilon + beta) / grows
    narrower = grows * (log_bound + np.log1p(np.sqrt(-np.expm1(-2.0 * log_bound))))
    divisor = np.minimum(np.minimum(epsilon, (epsilon - beta) * np.exp(beta)), narrower)
    return np.where((log_bound > 0.0) & (beta < epsilon), divisor, np.nan)


def laplace_quantile(confidence: float) -> float:
    return -math.log1p(-confidence)


def draw_laplace(noise: RandomSource) -> Drawn:
    return _plain(noise, exponential(noise))


@owned_cache(maxsize=512)
def gaussian(budget: NoiseBudget, parameters: SmoothSensitivityParameters) -> CalibratedNoise:
    units, epsilon, delta = _promise(budget)
    beta, stretch, _ = _gaussian_near(budget, parameters)
    s = gaussian_divisor(epsilon, delta, beta, stretch)
    return CalibratedNoise(
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


def gaussian_even(budget: NoiseBudget, parameters: SmoothSensitivityParameters) -> float:
    """Approximate `even` of `gaussian`, whose exact value is the slowest to compute."""
    beta, _, s = _gaussian_near(budget, parameters)
    return gaussian_quantile(0.95) / s * even_spread(float(beta), budget.moves)


@owned_cache(maxsize=512)
def _gaussian_near(
    budget: NoiseBudget, parameters: SmoothSensitivityParameters
) -> tuple[Fraction, Fraction, float]:
    """The beta, the part of epsilon for the stretch, and the approximate divisor."""
    _, exact_epsilon, exact_delta = _promise(budget)
    epsilon, delta = float(exact_epsilon), float(exact_delta)
    check_beta(parameters.beta, epsilon)
    looked_at = betas(parameters.beta, np.array([epsilon]))
    with np.errstate(all="ignore"):
        stretches = _stretches_near(epsilon, delta, looked_at)
        mus = _mus_near(epsilon - stretches, delta * (1.0 - _STRETCH_SHARE))
        beta, _ = least(looked_at, gaussian_quantile(0.95) / mus, budget.moves)
    index = int(np.argmax(looked_at == float(beta)))
    return beta, Fraction(float(stretches.flat[index])), float(mus.flat[index])


def gaussian_divisor(
    epsilon: Fraction, delta: Fraction, beta: Fraction, stretch: Fraction
) -> Fraction:
    """An a that is private with `stretch` of epsilon for the stretch."""
    if not beta <= stretch < epsilon:
        raise ArithmeticError("the beta is too large for this loss")
    with localcontext(FINE):
        shift = fine(epsilon - stretch)
        beyond = (2 * fine(stretch + beta) / ((2 * fine(beta)).exp() - 1)).sqrt()
        kept = fine(delta) - 2 * shift.exp() * normal_cdf(-beyond) * _ABOVE
        if kept <= 0:
            raise ArithmeticError("the beta is too large for this loss")
        return floor(mu_within(shift, kept))


def _stretches_near(epsilon: float, delta: float, beta: Numbers) -> Numbers:
    """Approximate least part of epsilon at which the stretch costs its share of delta.

    NaN where not even all of epsilon is enough. The logarithm of the cost, epsilon - x + ln(erfc
    z) with z^2 = (x + beta) / (e^(2 beta) - 1), falls and is convex in x. So Newton steps from x
    = beta never overshoot. Callers check the result."""
    from scipy.special import erfcx

    grows = np.expm1(2.0 * beta)
    log_share = math.log(_STRETCH_SHARE * delta) - 1e-9
    x = beta
    for _ in range(_STEPS):
        z = np.sqrt((x + beta) / grows)
        scaled = erfcx(z)
        excess = epsilon - x + np.log(scaled) - z * z - log_share
        falls = 1.0 + _TWO_OVER_ROOT_PI / scaled / (2.0 * z * grows)
        x = np.maximum(beta, x + excess / falls)
    return np.where(x < epsilon, x, np.nan)


def _mus_near(epsilon: Numbers, delta: float) -> Numbers:
    """Approximate mu whose continuous noise has this profile, for many epsilons.

    Newton steps on logarithms, from a mu that surely fits (`accounting/curves/gaussian.py`,
    `mu_within`)."""
    from scipy.special import erfc, erfcx

    root = math.sqrt(-2.0 * math.log(delta))
    mu = np.maximum(2.0 * epsilon / (np.sqrt(root * root + 2.0 * epsilon) + root), 2.0 * delta)
    for _ in range(_STEPS):
        x = epsilon / mu - mu / 2.0
        density = np.exp(-x * x / 2.0)
        profile = 0.5 * erfc(x / _ROOT_TWO) - 0.5 * density * erfcx((x + mu) / _ROOT_TWO)
        slope = mu * density / (profile * _ROOT_TWO_PI)
        mu = mu * np.exp(np.clip(np.log(delta / profile) / slope, -1.0, 1.0))
    return mu


def gaussian_quantile(confidence: float) -> float:
    return _NORMAL.inv_cdf((1.0 + confidence) / 2.0)


def draw_gaussian(noise: RandomSource) -> Drawn:
    return _plain(noise, half_normal(noise))


def _plain(noise: RandomSource, number: PartialSample) -> Drawn:
    def size(digits: int) -> Ends:
        down, up = both_ways(digits)
        return number.low(down), number.high(up)

    return Drawn(noise.below(2) == 1, size, (number,))


def _promise(budget: NoiseBudget) -> tuple[tuple[int, int], Fraction, Fraction]:
    if budget.promise is None:
        raise CannotServe("this noise needs both epsilon and delta")
    epsilon, delta = budget.promise
    return budget.promise, Fraction(epsilon, PICO), Fraction(delta, ATTO)
