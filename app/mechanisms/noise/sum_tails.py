"""Tails of weighted sums of independent draws: widths that hold with a given confidence.

Equal weights: the code computes the distribution of the sum modulo N from its characteristic
function at N points. Chernoff's bound covers the probability outside a window of half a turn.

Unequal weights: let S = sum of a_i Z_i. An independent, small and symmetric G makes it continuous.
For any d, P(S > w) P(G > -d) <= P(S + G > w - d).

- Laplace: G = sum of a_i U_i, U_i uniform on [-1/2, 1/2]. Each Z_i + U_i is symmetric and unimodal,
  and so is their sum (Wintner 1938). For such an X and every r, P(|X| >= w) <= (r / (r+1))^r E|X|^r
  / w^r (Gauss for r = 2; Winkler 1866). Even moments come from cumulants, which add up. By
  Hoeffding P(G <= -d) <= exp(-2 d^2 / sum of a_i^2).
- Gaussian: G_i normal of deviation 3/2. The density of Z_i + G_i is that of a normal of variance
  s^2 + 9/4 times a ratio. The ratio is the sum over z of a Gaussian of parameter t = 3s / (2
  sqrt(s^2 + 9/4)) at a shifted grid, over the same sum at the unshifted one. It is within 4 exp(-2
  pi^2 t^2) of 1 (Poisson summation; Micciancio and Regev 2007): below 1e-14 where s >= 3.
  Otherwise, and where it is smaller, Chernoff's bound for a subgaussian sum is used (Canonne,
  Kamath and Steinke 2020).

Matrices: let W = sum of Z_k B_k with fixed symmetric B_k of size d, and let E be the expectation.
For every t > 0, P(|W| > w) <= 2 d exp(-t w) exp(|sum of ln E exp(t Z_k B_k)|) (Tropp 2012, Theorem
3.6). A discrete Gaussian has E exp(t Z) <= exp(t^2 s^2 / 2). A discrete Laplace has at most that of
the continuous one, 1 / (1 - t^2 s^2), since (cosh x - 1) / x^2 increases. With -ln(1 - x^2) at most
x^2 / (1 - x) and the best t this is Bernstein's bound. A vector is treated as a matrix with one
more row and column, and zeros elsewhere.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from app.caches import owned_cache
from app.queries.weighted_noise import ORDERS, WeightedNoiseSum

POINTS_MAX = 1 << 18
ALPHA_MIN = 1e-8  # below, the rounding of the transform would be visible
SCALE_MIN = 0.02  # below, a draw other than 0 has probability below 1e-21
GUARD = 1.0 + 1e-9
_NORMAL = NormalDist()
_UNIFORM = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)  # cumulants of U, of the orders in ORDERS
# Sum over k of k^n p^k = p * polynomial(p) / (1 - p)^(n + 1), for n = 1, 3, 5, 7, 9 (Euler).
_EULERIAN = (
    (1,),
    (1, 4, 1),
    (1, 26, 66, 26, 1),
    (1, 120, 1191, 2416, 1191, 120, 1),
    (1, 502, 14608, 88234, 156190, 88234, 14608, 502, 1),
)
Transform = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


# Laplace


@owned_cache(maxsize=4096)
def laplace_width(scale: float, sum_of: WeightedNoiseSum, alpha: float) -> float:
    """A w with P(|sum of a_i Z_i| > w) <= alpha, for more than one discrete Laplace draw."""
    scale = max(scale, SCALE_MIN)  # the width grows with the scale
    if sum_of.weight is not None and alpha >= ALPHA_MIN:
        return sum_of.weight * _laplace_sum(scale, _longer(sum_of.count), alpha)
    by_moments = _root(_moments(scale, sum_of, smooth=False), alpha, unimodal=False)
    # G is below -d with probability e^-4.5.
    spare, seen = 1.5 * math.sqrt(sum_of.squares), 1.0 - math.exp(-4.5)
    smooth = _root(_moments(scale, sum_of, smooth=True), alpha * seen, unimodal=True) + spare
    return min(by_moments, smooth) * GUARD


@owned_cache(maxsize=4096)
def _laplace_sum(scale: float, count: int, alpha: float) -> float:
    """Width of a sum of equally weighted draws, by Z = h Z' + R for large windows.

    A discrete Laplace draw is the difference of two geometric ones. A geometric draw is h times
    a geometric draw of scale / h plus a remainder from 0 to h - 1."""
    rate = 1.0 / scale
    window = _laplace_chernoff(rate, count, alpha * 1e-3)
    if 2.0 * window + 2.0 > POINTS_MAX:
        h = math.ceil((2.0 * window + 2.0) / (POINTS_MAX / 2))
        return h * _laplace_sum(scale / h, count, alpha) + count * (h - 1.0)

    def transform(angles: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rest, p = math.expm1(-rate) ** 2, math.exp(-rate)
        return np.asarray((rest / (rest + 4.0 * p * np.sin(angles / 2.0) ** 2)) ** count)

    return _from_transform(transform, window, alpha)


def _laplace_chernoff(rate: float, count: int, alpha: float) -> float:
    """Some w with P(|sum| > w) <= alpha, by Chernoff's bound at a few values of t.

    (ln(2 / alpha) + count ln M(t)) / t is one for each t with M(t) = (1 - p)^2 / ((1 - p e^t)(1
    - p e^-t)) finite, p = e^-rate."""
    least = math.inf
    for part in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        t = rate * part
        log = 2 * _log_rest(rate) - _log_rest(rate - t) - _log_rest(rate + t)
        least = min(least, (math.log(2.0 / alpha) + count * log) / t)
    return least


def _log_rest(rate: float) -> float:
    """ln(1 - e^-rate)"""
    return math.log(-math.expm1(-rate))


def _moments(scale: float, sum_of: WeightedNoiseSum, *, smooth: bool) -> list[float]:
    """Deviation of S, then E S^r over (its variance)^(r/2) for each order r.

    They come from the cumulants of the independent parts."""
    p, rest = math.exp(-1.0 / scale), -math.expm1(-1.0 / scale)
    cumulants: dict[int, float] = {}
    for index, order in enumerate(ORDERS):
        polynomial = sum(c * p**i for i, c in enumerate(_EULERIAN[index]))
        one = 2.0 * p * polynomial / rest**order
        cumulants[order] = sum_of.powers[index] * (one + (_UNIFORM[index] if smooth else 0.0))
    deviation = math.sqrt(cumulants[2])
    even = {order: value / deviation**order for order, value in cumulants.items()}
    moments = {0: 1.0}
    for order in ORDERS:
        moments[order] = sum(
            math.comb(order - 1, k - 1) * even[k] * moments[order - k] for k in ORDERS if k <= order
        )
    return [deviation, *(moments[order] for order in ORDERS)]


def _root(moments: list[float], alpha: float, *, unimodal: bool) -> float:
    deviation, *ratios = moments
    roots = [
        math.pow(moment / alpha, 1.0 / r) * (r / (r + 1.0) if unimodal else 1.0)
        for r, moment in zip(ORDERS, ratios, strict=True)
    ]
    return deviation * min(roots)


# Gaussian


@owned_cache(maxsize=4096)
def gaussian_width(scale: float, sum_of: WeightedNoiseSum, alpha: float) -> float:
    """A w with P(|sum of a_i Z_i| > w) <= alpha, for more than one discrete Gaussian draw."""
    if sum_of.weight is not None and alpha >= ALPHA_MIN and scale < 10.0:
        return sum_of.weight * _gaussian_sum(scale, _longer(sum_of.count), alpha)
    deviation = scale * math.sqrt(sum_of.squares)
    by_chernoff = deviation * math.sqrt(2.0 * math.log(2.0 / alpha))
    if scale < 3.0 or alpha < ALPHA_MIN:
        return by_chernoff * GUARD
    if sum_of.weight is not None:
        # From s = 10 the sum's probabilities are a normal's density within 1e-80. The density
        # falls, so its sum above w is at most its integral.
        return -_NORMAL.inv_cdf(alpha * (1.0 - 1e-9) / 2.0) * deviation * GUARD
    # standard deviation of G; G is rarely below -2.5 times this
    spread = 1.5 * math.sqrt(sum_of.squares)
    seen = _NORMAL.cdf(2.5) * (1.0 - 1e-9)
    smooth = -_NORMAL.inv_cdf(alpha * seen / 2.0) * math.hypot(deviation, spread) + 2.5 * spread
    return min(by_chernoff, smooth) * GUARD


@owned_cache(maxsize=4096)
def _gaussian_sum(scale: float, count: int, alpha: float) -> float:
    window = scale * math.sqrt(2.0 * count * math.log(2.0 / (alpha * 1e-3)))
    reach = math.ceil(40.0 * scale)
    z = np.arange(1, reach + 1)
    chances = np.exp(-((z / scale) ** 2) / 2.0)
    total = 1.0 + 2.0 * float(np.sum(chances))

    def transform(angles: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        result = np.ones_like(angles)
        for z_value, chance in enumerate(chances, start=1):
            result = result + 2.0 * chance * np.cos(z_value * angles)
        return (result / total) ** count

    return _from_transform(transform, window, alpha)


# Matrices


def gaussian_norm(scale: float, root: float, size: int, alpha: float) -> float:
    """A w with P(|E| > w) <= alpha, where |sum of B_k^2| is at most root^2."""
    return scale * root * math.sqrt(2.0 * math.log(2.0 * size / alpha)) * GUARD


def laplace_norm(scale: float, root: float, largest: float, size: int, alpha: float) -> float:
    """The same for Laplace noise, where also no |B_k| is above `largest`."""
    log = math.log(2.0 * size / alpha)
    return scale * (2.0 * root * math.sqrt(log) + largest * log) * GUARD


# The law of a sum


def _longer(count: int) -> int:
    """Round a length up to one of few, so that the sums of many answers share their widths.

    Another symmetric draw never makes a symmetric unimodal sum more peaked (Anderson 1955)."""
    step = max(1, 1 << max(0, count.bit_length() - 6))
    return -(-count // step) * step


def _from_transform(transform: Transform, window: float, alpha: float) -> float:
    """The least w of the sum modulo N, for N over twice the window.

    Modulo N each probability is at least that of the sum. The sum is outside the window with
    probability at most alpha / 1000."""
    points = 1 << max(4, math.ceil(math.log2(2.0 * window + 2.0)))
    angles = 2.0 * math.pi / points * np.arange(points // 2 + 1)
    chances = np.maximum(np.fft.irfft(transform(angles), points), 0.0)
    half = chances[: points // 2]
    above = 2.0 * (np.cumsum(half[::-1])[::-1])  # P(|S| >= w) for each w
    allowed = alpha * (1.0 - 1e-3) - 1e-15 * points  # each probability is off by less than 1e-15
    beyond = np.nonzero(above <= allowed)[0]
    return float(beyond[0] - 1) if len(beyond) else window
