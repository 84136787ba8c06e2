"""Expected error of quotients such as means, for an assumed number of rows.

A quotient is of the form X / Y with noise on both. Let the table have X = r Y. With noise a and b
the error is (X + a) / (Y + b) - r = (a - r b) / (Y + b). It exceeds w only if a - (r + w) b > w Y,
or if a - (r - w) b < -w Y, also where Y + b <= 0. Noise is symmetric, and a larger weight never
makes a tail lighter. So each of the two has at most half of the probability that |a - (|r| + w) b|
exceeds w Y. Hence the error is at most w with the confidence of W, where W(weights) is the width of
a weighted sum of the noises and w Y = W(1, |r| + w).

The only guess is the number of rows: |r| is taken at its bound. So the estimate is too wide for
values far from their bounds, by a factor of at most sqrt(2) for a mean. `spread` is the largest
possible error, as every figure is clamped to its bounds.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

STEPS = 60


class NoiseWidths(Protocol):
    """Widths of weighted sums of a release's noise."""

    def __call__(self, weights: Sequence[tuple[int, float]], alpha: float) -> float:
        """About the w with P(|sum of weight * noise| > w) = alpha.

        Each weight names its measure by index, and applies to the noise in the measure's own unit,
        not in steps. A measure named twice has two independent draws."""
        ...


# Maps noise, the assumed number of rows and alpha to the half width.
RowEstimate = Callable[[NoiseWidths, int, float], float]


def quotient_error(width: Callable[[float], float], *, below: float, spread: float) -> float:
    """The least w with W(w) <= w * below, at most `spread`.

    W grows with every weight and scales with them, so W(w) / w falls as w grows. Bisection finds
    it."""
    if spread <= 0.0 or width(spread) > spread * below:
        return spread
    low, high = 0.0, spread
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if width(middle) <= middle * below else (middle, high)
    return high


def mean_estimate(total: int, count: int, *, reach: float, spread: float) -> RowEstimate:
    """Error of a centred sum over its count: |r| <= reach, and Y is the number of rows."""

    def estimate(noise: NoiseWidths, rows: int, alpha: float) -> float:
        def width(w: float) -> float:
            return noise([(total, 1.0), (count, reach + w)], alpha)

        return quotient_error(width, below=rows, spread=spread)

    return estimate


def share_estimate(counted: int) -> RowEstimate:
    """Error of A / (A + B), two draws of one measure: a - r (a + b) with r between 0 and 1.

    The weights of the two draws are at most 1 - r + w and r + w, and worst at r = 0 or 1."""

    def estimate(noise: NoiseWidths, rows: int, alpha: float) -> float:
        def width(w: float) -> float:
            return noise([(counted, 1.0 + w), (counted, w)], alpha)

        return quotient_error(width, below=rows, spread=1.0)

    return estimate


def ratio_estimate(*, least_below: float, largest: float, spread: float) -> RowEstimate:
    """Error of a sum over a sum: Y is at least `least_below` for each row, and |r| <= largest."""

    def estimate(noise: NoiseWidths, rows: int, alpha: float) -> float:
        def width(w: float) -> float:
            return noise([(0, 1.0), (1, largest + w)], alpha)

        return quotient_error(width, below=rows * least_below, spread=spread)

    return estimate


def reciprocal_estimate(noise: NoiseWidths, rows: int, alpha: float) -> float:
    """Error of 1 / max(n, 1): the reciprocal is farthest from 1 / n if the count is too low."""
    fewest = max(rows - noise([(0, 1.0)], alpha), 1.0)
    return max(1.0 / fewest - 1.0 / rows, 0.0)


def variance_estimate(*, reach: float, middle: float, spread: float) -> RowEstimate:
    """Error of Q / N + k - (T / N)^2, with measures N, T and Q; k is `middle`.

    Let m = T / N, s = Q / N, and let the mean be off by e. With noise n, t and q the error is
    (q - 2 m t + (2 m^2 - s) n) / (N + n) - e^2. As m^2 <= s + k <= reach^2, the last weight is at
    most reach^2 + k, where all values are at one bound; so is the second. N + n is at least N less
    the width of n, and |e| is the error of a mean. Both at their worst together are rare, so the
    estimate is conservative."""
    of_mean = mean_estimate(1, 0, reach=reach, spread=2.0 * reach)

    def estimate(noise: NoiseWidths, rows: int, alpha: float) -> float:
        fewest = rows - noise([(0, 1.0)], alpha)
        if fewest <= 0.0:
            return spread
        weights = [(2, 1.0), (1, 2.0 * reach), (0, reach**2 + middle)]
        linear = noise(weights, alpha) / fewest
        return min(linear + of_mean(noise, rows, alpha) ** 2, spread)

    return estimate
