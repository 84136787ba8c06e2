"""Noise for smooth sensitivity that is zCDP: log-normal mixtures and the arsinh-normal law.

The mixtures are Laplace and uniform numbers times a log-normal one; all are from Bun and Steinke
2019. Each is c^2/2-zCDP for c = (cost of a stretch by e^t) + (cost of a shift by s). Both are zCDP
by themselves. Laws that are a^2/2 and b^2/2 apart from a third are (a + b)^2/2 apart from each
other (Bun and Steinke 2016, the inequality behind group privacy). A shift costs s times the largest
slope of the log-density, which is pure.

Laplace-log-normal, X e^(sigma Y): stretched, Y moves by t/sigma, which costs t/sigma. The slope is
a mean of e^(-sigma Y) that is largest at 0: E e^(-2 sigma Y) / E e^(-sigma Y) = e^(3 sigma^2/2).

Uniform-log-normal, U e^(sigma Y), U between -1 and 1: a stretch costs t/sigma again. The slope is
e^(3 sigma^2/2) phi(u) / (sigma Q(u - sigma)) for some u, Q the upper normal tail. Its logarithm
rises as long as phi/Q of u - sigma is above u, which holds up to one point.

Arsinh-normal, sinh(sigma Y)/sigma, density h:

- Slope: (|y| + sigma tanh(sigma y)) / cosh(sigma y). It is at most 2/(3 sigma) + sigma/2, as x /
  cosh x <= 2/3 and tanh x / cosh x <= 1/2.
- Stretch: let h_t be the density of e^t Z, k(z) = z h'(z)/h(z) and F = integral of h^a h_t^(1-a).
  The derivative of h_t by t is -(z h_t)'. So F' = -a (a-1) integral of h^a h_t^(1-a) (k(z) - k(e^-t
  z)).
- Let y = arsinh(sigma z)/sigma and T = tanh(sigma y). Then k = -(y T/sigma + T^2). So z k'(z) =
  -[(T^2 + sigma y T (1 - T^2))/sigma^2 + 2 T^2 (1 - T^2)]. Its size is at most C = 1.08/sigma^2 +
  1/2.
- Hence |ln F|' <= a (a-1) t C, and the Renyi divergence of order a is at most a C t^2/2. The
  stretch costs t sqrt(C), for t of either sign.

Rounding: 80 digits; s is rounded down, and rho is the charged number of units.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from app.accounting.curves.gaussian import normal_cdf
from app.accounting.losses import NO_PROMISE, zcdp_loss
from app.caches import owned_cache
from app.errors import Invalid
from app.mechanisms.privacy_target import CannotServe, SmoothSensitivityParameters
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.directed_decimal import both_ways
from app.mechanisms.sampling.partial_sample import Ends, PartialSample, exponential, half_normal
from app.mechanisms.smooth_sensitivity.approximate_noise import gaussian_quantile
from app.mechanisms.smooth_sensitivity.calibrated_noise import (
    FINE,
    POINTER,
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

SIGMAS = tuple(0.1 * 2.0 ** (j / 6.0) for j in range(31))  # up to 3.2
SIGMA_MIN, SIGMA_MAX = 0.05, 5.0
LAPLACE_LOG_NORMAL = "laplace_log_normal"
UNIFORM_LOG_NORMAL = "uniform_log_normal"
ARSINH_NORMAL = "arsinh_normal"
_ROOT_TWO_PI = Decimal("2.506628274631000502415765284811045253006")  # rounded down
_NEAR = Decimal("1e-6")


@owned_cache(maxsize=256)
def laplace_slope(sigma: Fraction) -> Decimal:
    with localcontext(FINE):
        return (fine(sigma) ** 2 * 3 / 2).exp()


@owned_cache(maxsize=256)
def uniform_slope(sigma: Fraction) -> Decimal:
    """The largest slope, rounded up, at a point enclosed by two others."""
    from scipy.special import erfcx

    def rises(u: float) -> bool:
        v = (u - float(sigma)) / math.sqrt(2)
        return math.sqrt(2 / math.pi) / float(erfcx(v)) > u

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    with localcontext(FINE):
        s = fine(sigma)
        below, above = max(Decimal(0), Decimal(low) - _NEAR), Decimal(high) + _NEAR

        def surely_rises(u: Decimal) -> bool:
            return (-((u - s) ** 2) / 2).exp() > u * _ROOT_TWO_PI * normal_cdf(s - u)

        if surely_rises(above) or (below > 0 and not surely_rises(below)):
            raise ArithmeticError("the largest slope was not found")
        peak = (-below * below / 2).exp() / normal_cdf(s - above)
        return (s * s * 3 / 2).exp() / (s * _ROOT_TWO_PI) * peak * (1 + Decimal("1e-30"))


def arsinh_slope(sigma: Fraction) -> Decimal:
    with localcontext(FINE):
        return fine(2 / (3 * sigma) + sigma / 2)


def log_normal_stretch(sigma: Fraction) -> Decimal:
    """Cost of a stretch, per unit of t."""
    return fine(1 / sigma)


@owned_cache(maxsize=256)
def arsinh_stretch(sigma: Fraction) -> Decimal:
    with localcontext(FINE):
        return fine(Fraction(27, 25) / sigma**2 + Fraction(1, 2)).sqrt()


def divisor(
    rho: Fraction,
    beta: Fraction,
    sigma: Fraction,
    stretch: Callable[[Fraction], Decimal],
    slope: Callable[[Fraction], Decimal],
) -> Fraction:
    """The largest private s, rounded down."""
    with localcontext(FINE):
        left = fine(2 * rho).sqrt() - fine(beta) * stretch(sigma)
        if left <= 0:
            raise ArithmeticError("the beta is too large for this loss")
        return floor(left / slope(sigma))


def _prepared(
    name: str,
    stretch: Callable[[Fraction], Decimal],
    slope: Callable[[Fraction], Decimal],
    draw: Callable[[Fraction, RandomSource], Drawn],
    quantile: Callable[[float, float], float],
    budget: NoiseBudget,
    parameters: SmoothSensitivityParameters,
) -> CalibratedNoise:
    if parameters.sigma is not None and not SIGMA_MIN <= parameters.sigma <= SIGMA_MAX:
        raise Invalid.field(f"{POINTER}/sigma", f"must be from {SIGMA_MIN:g} to {SIGMA_MAX:g}")
    rho = budget.rho
    if rho is None:
        raise CannotServe("this noise needs a rho, or an epsilon and a delta")
    c = math.sqrt(2 * rho)
    widest = Fraction(SIGMAS[-1] if parameters.sigma is None else parameters.sigma)
    check_beta(parameters.beta, c / float(stretch(widest)))

    choices = SIGMAS if parameters.sigma is None else (parameters.sigma,)
    costs, noise = _looked_at(stretch, slope, quantile, choices)
    looked_at = betas(parameters.beta, (c / costs)[:, 0])
    with np.errstate(all="ignore"):
        width = noise / (c - looked_at * costs)
    width[looked_at * costs >= c * (1 - 1e-12)] = np.inf
    beta, row = least(looked_at, width, budget.moves)
    sigma = Fraction(choices[row])
    s = divisor(rho, beta, sigma, stretch, slope)
    size = partial(quantile, float(sigma))
    return CalibratedNoise(
        name=name,
        parameters={"sigma": float(sigma)},
        beta=beta,
        divisor=s,
        loss=zcdp_loss(rho, budget.promise or NO_PROMISE),
        theorem="Bun and Steinke 2019 (smooth sensitivity, concentrated)",
        draw=partial(draw, sigma),
        quantile=size,
        even=size(0.95) / float(s) * even_spread(float(beta), budget.moves),
    )


@owned_cache(maxsize=64)
def _looked_at(
    stretch: Callable[[Fraction], Decimal],
    slope: Callable[[Fraction], Decimal],
    quantile: Callable[[float, float], float],
    sigmas: tuple[float, ...],
) -> tuple[Numbers, Numbers]:
    """For each sigma the cost of a stretch, and the noise if a shift costs 1: one column each."""
    costs = [[float(stretch(Fraction(sigma)))] for sigma in sigmas]
    noise = [[quantile(sigma, 0.95) * float(slope(Fraction(sigma)))] for sigma in sigmas]
    return np.array(costs), np.array(noise)


def draw_laplace_log_normal(sigma: Fraction, noise: RandomSource) -> Drawn:
    return _log_normal(sigma, exponential(noise), noise)


def draw_uniform_log_normal(sigma: Fraction, noise: RandomSource) -> Drawn:
    return _log_normal(sigma, PartialSample(noise), noise)


def _log_normal(sigma: Fraction, factor: PartialSample, noise: RandomSource) -> Drawn:
    normal, downwards = half_normal(noise), noise.below(2) == 1

    def size(digits: int) -> Ends:
        down, up = both_ways(digits)
        low, high = (
            down.times(normal.low(down), down.of(sigma)),
            up.times(normal.high(up), up.of(sigma)),
        )
        ends = (down.falls(high), up.falls(low)) if downwards else (down.exp(low), up.exp(high))
        return down.times(factor.low(down), ends[0]), up.times(factor.high(up), ends[1])

    return Drawn(noise.below(2) == 1, size, (factor, normal))


def draw_arsinh_normal(sigma: Fraction, noise: RandomSource) -> Drawn:
    normal = half_normal(noise)

    def size(digits: int) -> Ends:
        down, up = both_ways(digits)
        low, high = (
            down.times(normal.low(down), down.of(sigma)),
            up.times(normal.high(up), up.of(sigma)),
        )
        twice = down.subtract(down.exp(low), up.falls(low))
        twice_high = up.subtract(up.exp(high), down.falls(high))
        return down.over(twice, up.of(2 * sigma)), up.over(twice_high, down.of(2 * sigma))

    return Drawn(noise.below(2) == 1, size, (normal,))


@owned_cache(maxsize=512)
def laplace_log_normal_quantile(sigma: float, confidence: float) -> float:
    """Quantile of |Z|: P(|Z| > w) = E exp(-w e^(-sigma Y)), by quadrature."""
    points, weights = _normal_points()
    falls = np.exp(-sigma * points)
    return _quantile(lambda w: float(weights @ np.exp(-w * falls)), confidence)


@owned_cache(maxsize=512)
def uniform_log_normal_quantile(sigma: float, confidence: float) -> float:
    """Quantile of |Z|: P(|Z| > w) = Q(y) - w e^(sigma^2/2) Q(y + sigma), y = ln w / sigma."""

    def above(w: float) -> float:
        y = math.log(w) / sigma
        tail = math.erfc((y + sigma) / math.sqrt(2)) / 2
        return math.erfc(y / math.sqrt(2)) / 2 - w * math.exp(sigma * sigma / 2) * tail

    return _quantile(above, confidence)


def arsinh_normal_quantile(sigma: float, confidence: float) -> float:
    return math.sinh(sigma * gaussian_quantile(confidence)) / sigma


def _quantile(above: Callable[[float], float], confidence: float) -> float:
    low, high = -60.0, 60.0  # range of ln w
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(math.exp(middle)) > 1 - confidence else (low, middle)
    return math.exp(high)


@lru_cache(maxsize=1)
def _normal_points() -> tuple[Any, Any]:
    points, weights = np.polynomial.hermite_e.hermegauss(200)
    return points, weights / weights.sum()


laplace_log_normal = owned_cache(maxsize=512)(
    partial(
        _prepared,
        LAPLACE_LOG_NORMAL,
        log_normal_stretch,
        laplace_slope,
        draw_laplace_log_normal,
        laplace_log_normal_quantile,
    )
)
uniform_log_normal = owned_cache(maxsize=512)(
    partial(
        _prepared,
        UNIFORM_LOG_NORMAL,
        log_normal_stretch,
        uniform_slope,
        draw_uniform_log_normal,
        uniform_log_normal_quantile,
    )
)
arsinh_normal = owned_cache(maxsize=512)(
    partial(
        _prepared,
        ARSINH_NORMAL,
        arsinh_stretch,
        arsinh_slope,
        draw_arsinh_normal,
        arsinh_normal_quantile,
    )
)
