"""Student-t and Cauchy-type noise for smooth sensitivity (pure DP, no delta).

Student-t of d degrees, density in proportion to (1 + z^2/d)^(-(d+1)/2). For Z against theta +
e^lambda Z the log-ratio is lambda + (d+1)/2 times that of two quadratic forms. Its largest value is
f = lambda + (d+1)/2 (Theta - lambda) with cosh Theta = cosh lambda + theta^2 e^-lambda / (2 d): the
forms' largest eigenvalue. The worst theta is s for lambda >= 0, and s e^lambda for lambda < 0. On
either side of 0:

- Theta is the distance in the hyperbolic plane from a point to one that moves along a geodesic.
- So Theta and f are convex in lambda, and f is largest at 0 or at the end, beta or -beta.
- Theta is equal at both ends, and f(-beta) - f(beta) = (d-1) beta. So -beta is the worse end.

Hence lambda = 0 and lambda = -beta decide: epsilon-private exactly if s <= 2 sqrt(d)
sinh(epsilon/(d+1)) and s <= sqrt(2 d e^beta (cosh phi - cosh beta)), with phi = (2 epsilon - (d-1)
beta)/(d+1). Any s > 0 needs beta < epsilon / d.

Cauchy-type of exponent g > 1, density in proportion to 1/(1 + |z|^g) (Nissim, Raskhodnikova and
Smith 2007). Its logarithm has slope at most (g-1)^((g-1)/g), at z^g = g - 1, and a stretch by
e^lambda changes it at a rate between -1 and g - 1: epsilon-private if s (g-1)^((g-1)/g) + beta
max(1, g - 1) <= epsilon. g = 2 is the Cauchy law.

Sampling: for two degrees sqrt(2) v / sqrt(1 - v^2) of a uniform v; for others a normal number over
the root of the mean of d squared normals. Cauchy-type noise is proposed uniformly up to 1 and as a
power law beyond, and accepted with probability 1/(1 + z^g) or 1/(1 + z^-g), which is at least a
half.
"""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np

from app.accounting.losses import pure_loss
from app.accounting.units import PICO
from app.caches import owned_cache
from app.errors import Invalid
from app.mechanisms.privacy_target import CannotServe, SmoothSensitivityParameters
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.directed_decimal import both_ways
from app.mechanisms.sampling.partial_sample import (
    SIZE_MAX,
    Ends,
    PartialSample,
    bernoulli,
    exponential,
    half_normal,
)
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

DEGREES = (1, 2, 3, 4, 6)
DEGREES_MAX = 50
EXPONENTS = (1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
EXPONENT_MIN, EXPONENT_MAX = 1.05, 100.0  # nearer to 1 the tail is too heavy to be useful
STUDENT = "student_t"
CAUCHY = "cauchy"
NEEDS_PURE = "this noise needs an epsilon or a rho"


@owned_cache(maxsize=512)
def student_t(budget: NoiseBudget, parameters: SmoothSensitivityParameters) -> CalibratedNoise:
    epsilon = _epsilon(budget)
    if parameters.degrees is not None:
        check_beta(parameters.beta, epsilon / parameters.degrees)
    elif parameters.beta is not None:
        check_beta(parameters.beta, epsilon)

    choices = DEGREES if parameters.degrees is None else (parameters.degrees,)
    limits = epsilon / np.array(choices, dtype=np.float64)
    looked_at = betas(parameters.beta, limits)
    sizes = np.array([[student_quantile(degrees, 0.95)] for degrees in choices])
    with np.errstate(all="ignore"):
        width = sizes / _student_near(epsilon, looked_at, choices)
    width[looked_at >= limits[:, None]] = np.inf
    beta, row = least(looked_at, width, budget.moves)
    degrees = choices[row]
    s = student_divisor(_exact(budget), beta, degrees)
    quantile = partial(student_quantile, degrees)
    return CalibratedNoise(
        name=STUDENT,
        parameters={"degrees": degrees},
        beta=beta,
        divisor=s,
        loss=pure_loss(_units(budget)),
        theorem="Nissim, Raskhodnikova and Smith 2007 (smooth sensitivity), Student-t noise",
        draw=partial(draw_student, degrees),
        quantile=quantile,
        even=quantile(0.95) / float(s) * even_spread(float(beta), budget.moves),
    )


def student_divisor(epsilon: Fraction, beta: Fraction, degrees: int) -> Fraction:
    """The largest private s, rounded down."""
    phi = (2 * epsilon - (degrees - 1) * beta) / (degrees + 1)
    if phi <= beta:
        raise ArithmeticError("the beta is too large for this loss")
    with localcontext(FINE):
        shift = 2 * Decimal(degrees).sqrt() * _sinh(fine(epsilon / (degrees + 1)))
        # cosh phi - cosh beta as a product, to avoid cancellation
        apart = 2 * _sinh(fine((phi + beta) / 2)) * _sinh(fine((phi - beta) / 2))
        room = 2 * degrees * fine(beta).exp() * apart
        return floor(min(shift, room.sqrt()))


def _student_near(epsilon: float, beta: Numbers, degrees: Sequence[int]) -> Numbers:
    """`student_divisor` for rows of betas, in floats; 0 where a beta is too large."""
    d = np.array(degrees, dtype=np.float64)[:, None]
    phi = (2 * epsilon - (d - 1) * beta) / (d + 1)
    apart = 2 * np.sinh((phi + beta) / 2) * np.sinh((phi - beta) / 2)
    shift = 2 * np.sqrt(d) * np.sinh(epsilon / (d + 1))
    divisor: Numbers = np.minimum(shift, np.sqrt(np.maximum(0.0, 2 * d * np.exp(beta) * apart)))
    return divisor


@owned_cache(maxsize=512)
def student_quantile(degrees: int, confidence: float) -> float:
    from scipy.special import stdtrit

    return float(-stdtrit(degrees, (1.0 - confidence) / 2.0))


def draw_student(degrees: int, noise: RandomSource) -> Drawn:
    negative = noise.below(2) == 1
    if degrees == 2:
        uniform = PartialSample(noise)

        def size(digits: int) -> Ends:
            down, up = both_ways(digits)
            low, high = uniform.low(down), uniform.high(up)
            one, two = Decimal(1), Decimal(2)
            # Below the root v is rounded in the other direction.
            room_low = down.subtract(one, up.times(high, high))
            room_high = up.subtract(one, down.times(low, low))
            smallest = down.over(down.times(low, down.root(two)), up.root(room_high))
            if room_low == 0:
                return smallest, Decimal(SIZE_MAX)
            return smallest, up.over(up.times(high, up.root(two)), down.root(room_low))

        return Drawn(negative, size, (uniform,))
    top, *below = (half_normal(noise) for _ in range(degrees + 1))

    def ratio(digits: int) -> Ends:
        down, up = both_ways(digits)
        low = high = Decimal(0)
        for normal in below:
            low = down.add(low, down.times(normal.low(down), normal.low(down)))
            high = up.add(high, up.times(normal.high(up), normal.high(up)))
        d = Decimal(degrees)
        smallest = down.over(down.times(top.low(down), down.root(d)), up.root(high))
        if low == 0:
            return smallest, Decimal(SIZE_MAX)
        return smallest, up.over(up.times(top.high(up), up.root(d)), down.root(low))

    return Drawn(negative, ratio, (top, *below))


@owned_cache(maxsize=512)
def cauchy(budget: NoiseBudget, parameters: SmoothSensitivityParameters) -> CalibratedNoise:
    if parameters.gamma is not None and not EXPONENT_MIN <= parameters.gamma <= EXPONENT_MAX:
        rule = f"must be greater than 1: from {EXPONENT_MIN:g} to {EXPONENT_MAX:g}"
        raise Invalid.field(f"{POINTER}/gamma", rule)
    epsilon = _epsilon(budget)
    check_beta(parameters.beta, epsilon / max(1.0, (parameters.gamma or 2.0) - 1.0))

    choices = EXPONENTS if parameters.gamma is None else (parameters.gamma,)
    exponents = np.array(choices)[:, None]
    costs = np.maximum(1.0, exponents - 1.0)
    looked_at = betas(parameters.beta, (epsilon / costs)[:, 0])
    sizes = np.array([[cauchy_quantile(exponent, 0.95)] for exponent in choices])
    slope = (exponents - 1.0) ** ((exponents - 1.0) / exponents)
    with np.errstate(all="ignore"):
        width = sizes * slope / (epsilon - looked_at * costs)
    width[looked_at >= epsilon / costs] = np.inf
    beta, row = least(looked_at, width, budget.moves)
    gamma = Fraction(choices[row])
    s = cauchy_divisor(_exact(budget), beta, gamma)
    quantile = partial(cauchy_quantile, float(gamma))
    return CalibratedNoise(
        name=CAUCHY,
        parameters={"gamma": float(gamma)},
        beta=beta,
        divisor=s,
        loss=pure_loss(_units(budget)),
        theorem="Nissim, Raskhodnikova and Smith 2007 (smooth sensitivity), Cauchy-type noise",
        draw=partial(draw_cauchy, gamma),
        quantile=quantile,
        even=quantile(0.95) / float(s) * even_spread(float(beta), budget.moves),
    )


def cauchy_divisor(epsilon: Fraction, beta: Fraction, gamma: Fraction) -> Fraction:
    left = epsilon - beta * max(Fraction(1), gamma - 1)
    if left <= 0:
        raise ArithmeticError("the beta is too large for this loss")
    with localcontext(FINE):
        return floor(fine(left) / _cauchy_slope(gamma))


@owned_cache(maxsize=64)
def _cauchy_slope(gamma: Fraction) -> Decimal:
    with localcontext(FINE):
        return (fine(gamma - 1).ln() * fine((gamma - 1) / gamma)).exp()


@owned_cache(maxsize=512)
def cauchy_quantile(gamma: float, confidence: float) -> float:
    """Quantile of |Z|: z^g / (1 + z^g) has a Beta(1/g, 1 - 1/g) law."""
    from scipy.special import betaincinv

    rest = float(betaincinv(1.0 - 1.0 / gamma, 1.0 / gamma, 1.0 - confidence))
    if rest <= 0.0:
        return math.inf
    return float(math.exp(min(700.0, math.log((1.0 - rest) / rest) / gamma)))


def draw_cauchy(gamma: Fraction, noise: RandomSource) -> Drawn:
    negative = noise.below(2) == 1
    while True:
        # The proposal has mass 1 up to 1 and mass 1 / (g - 1) beyond.
        inner = noise.below(gamma.numerator) < gamma.numerator - gamma.denominator
        number = PartialSample(noise) if inner else exponential(noise)

        def inside(digits: int, v: PartialSample = number) -> Ends:
            down, up = both_ways(digits)
            return v.low(down), v.high(up)

        def outside(digits: int, v: PartialSample = number) -> Ends:
            """u^(-1/(g-1)) of a uniform u; -ln u is exponential."""
            down, up = both_ways(digits)
            rate = 1 / (gamma - 1)
            return (
                down.exp(down.times(v.low(down), down.of(rate))),
                up.exp(up.times(v.high(up), up.of(rate))),
            )

        def chance(digits: int, v: PartialSample = number, inner: bool = inner) -> Ends:
            """1 / (1 + z^g), or 1 / (1 + z^-g): in both cases the power is at most 1."""
            down, up = both_ways(digits)
            one = Decimal(1)
            if inner:
                small = down.power(min(v.low(down), one), up.of(gamma))
                large = up.power(min(v.high(up), one), down.of(gamma))
            else:
                rate = gamma / (gamma - 1)
                small = down.falls(up.times(v.high(up), up.of(rate)))
                large = up.falls(down.times(v.low(down), down.of(rate)))
            return down.over(one, up.add(one, large)), up.over(one, down.add(one, small))

        if bernoulli(noise, chance, number):
            return Drawn(negative, inside if inner else outside, (number,))


def _units(budget: NoiseBudget) -> int:
    if budget.pure is None:
        raise CannotServe(NEEDS_PURE)
    return budget.pure


def _exact(budget: NoiseBudget) -> Fraction:
    return Fraction(_units(budget), PICO)


def _epsilon(budget: NoiseBudget) -> float:
    return float(_exact(budget))


def _sinh(x: Decimal) -> Decimal:
    return (x.exp() - (-x).exp()) / 2
