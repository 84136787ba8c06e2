"""Linear fit to noisy moments, with standard errors and intervals.

This costs no privacy loss, because its inputs are released.

M is the matrix of moments of z = (1, terms, outcome). A fit has features f = L z and outcome l.z, A
= L M L^T + ridge and b = L M l; the exact coefficients are x = A^-1 b. The release is M + E. If the
least eigenvalue of the noisy A is below the noise's deviation times the root of its size, the
difference is added to the ridge: a public rule, after AdaSSP (Wang 2018).

Intervals cover the noise and hold for every table. Let G be the inverse of the noisy A, v = G b
with the noisy b, u(x) = l - L^T x, and d = v - x; then A d = L E u(x) - L E L^T d exactly. All
norms are with respect to A. Let y = |A^-1/2 L E L^T A^-1/2|. The noisy A is at most (1 + y) A, so
A^-1 is at most (1 + y) G. The bound for sums of matrices (`sum_tails.py`) is linear in the
quantities that contain the unknown A. So y <= (1 + y) r with a number r known from G, except with
half a tenth of the remaining probability. Where r < 1 this gives y <= r / (1 - r). In the same way,
from u(v) and G and with the same probability, A^-1/2 L E u(x) is at most sqrt(1+y) r' + y |d|.
Hence |d| = |A^1/2 d| <= sqrt(1+y) r' / (1 - 2y) if y < 1/2. For a coefficient c.x, with h = A^-1 c
and g = G c:

- c.d = h^T L E u(x) - h^T L E L^T d, and the second part is at most sqrt((1+y) c.Gc) y |d|;
- the first is a sum of draws whose weights are fixed though unknown. They are near those of g and
  u(v): h - g is at most y sqrt(c.Gc / (1-y)) long, and u(x) - u(v) is L^T d. The largest possible
  difference is added to every norm of the weights, from which the width of the sum is computed.

So each interval holds with the requested confidence, and is near the first-order one where the
noise is small against A. Where y may be 1/2 or more, intervals are null. Whenever A is singular (no
rows, a constant or a collinear column), r >= 1 except with the probability above; then the answer
states no errors at all.

The residual sum of squares is u(x)^T M u(x). It differs from the same expression in v and the noisy
moments by u(x)^T E u(x), a sum of draws, and by at most (1+y) |d|^2. A ridge R adds at most 2 |d|
sqrt(v.Rv).

Standard errors are of first order, by the delta method: the root of s^2 c.Gc plus the variance of
the noise's sum at g and u(v). The first part (sampling) assumes independent rows with errors of
equal variance.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.mechanisms.noise.additive import NoiseDistribution
from app.mechanisms.noise.moment_noise import MomentNoise
from app.queries.estimates import Estimate
from app.queries.shapes.features import BucketTerm, Indicator
from app.queries.shapes.moments import Moments
from app.queries.weighted_noise import ORDERS, Numbers, WeightedNoiseSum

NORM_SHARE = 0.1  # share of the remaining probability for the bounds on y and d


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Linear model: features L z, outcome l.z; coefficients in the columns' own units are C x +
    offset."""

    labels: tuple[str, ...]
    features: Numbers  # L
    outcome: Numbers  # l
    units: Numbers  # C
    offset: Numbers
    ridge: Numbers  # penalty of each coefficient
    outcome_width: float  # half of the outcome's width, in its own units


def model_of(moments: Moments, *, intercept: bool, ridge: float) -> LinearModel:
    """Model of the moments, with or without an intercept.

    With an intercept the coordinates themselves are fitted. Without one the columns are divided
    by half of their width, so that the fit goes through the origin of their own units."""
    *features, outcome_bucket = (coordinate.term for coordinate in moments.coordinates)
    assert isinstance(outcome_bucket, BucketTerm)
    size = len(features)
    fitted = np.eye(size, size + 1)
    units = np.eye(size) * outcome_bucket.half_width
    outcome, offset = np.eye(size + 1)[-1], np.zeros(size)
    offset[0] = outcome_bucket.middle
    for i, coordinate in enumerate(moments.coordinates[1:-1], start=1):
        term = coordinate.term
        if isinstance(term, BucketTerm):
            units[i, i] /= term.half_width
            shift, scale = term.middle / term.half_width, 1.0
        else:
            assert isinstance(term, Indicator)
            units[i, i] *= 2.0 if coordinate.alone else 1.0
            shift, scale = (1.0, 0.5) if coordinate.alone else (0.0, 1.0)
        if intercept:
            units[0, i] = -outcome_bucket.half_width * shift
        else:
            fitted[i, 0] = shift * scale
            fitted[i, i] = scale
            units[i, i] *= scale
    penalty = np.full(size, ridge)
    penalty[0] = 0.0
    labels = tuple(term.label() for term in features)
    if intercept:
        return LinearModel(
            labels, fitted, outcome, units, offset, penalty, outcome_bucket.half_width
        )
    outcome[0] = outcome_bucket.middle / outcome_bucket.half_width
    return LinearModel(
        labels[1:],
        fitted[1:],
        outcome,
        units[1:, 1:],
        np.zeros(size - 1),
        penalty[1:],
        outcome_bucket.half_width,
    )


class Fit:
    """A model fitted to released moments, with bounds on its error."""

    def __init__(
        self,
        model: LinearModel,
        noise: MomentNoise,
        noisy: list[int],
        law: NoiseDistribution,
        scale: float,
        alpha: float,
    ) -> None:
        self.model, self._noise, self._law, self._scale = model, noise, law, scale
        self._rows = noisy[0]
        self.alpha = alpha * (1.0 - NORM_SHARE)  # remaining probability of each interval
        moments, left = noise.matrix(noisy), model.features
        gram = left @ moments @ left.T + np.diag(model.ridge)
        values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
        least = law.deviation(scale) * noise.worth * math.sqrt(len(moments))
        self.added = max(0.0, least - float(values[0]))
        values = values + self.added
        self.inverse = (vectors / values) @ vectors.T  # G
        self.coefficients = self.inverse @ (left @ moments @ model.outcome)  # v
        self.rest = model.outcome - left.T @ self.coefficients  # u
        self.residual = float(self.rest @ moments @ self.rest)
        self._stretches((vectors / np.sqrt(values)) @ vectors.T @ left, alpha * NORM_SHARE / 2.0)

    def _stretches(self, root: Numbers, alpha: float) -> None:
        """Compute the bounds on y and d, the second-order terms; `root` is G^1/2 L."""
        p, noise = root.T @ root, self._noise

        def norm(root_: float, largest: float) -> float:
            size = len(root) + 1
            return self._law.norm(self._scale, root=root_, largest=largest, size=size, alpha=alpha)

        spread = noise.spread(p)
        self._root = _norm_root(root @ spread @ root.T)
        self._rest_root = _norm_root(root @ noise.spread(np.outer(self.rest, self.rest)) @ root.T)
        r = norm(self._root, noise.largest(p))
        at_rest = math.sqrt(max(float(self.rest @ spread @ self.rest), 0.0))
        r_rest = norm(at_rest, noise.largest_at(p, self.rest))
        self.solvable = self.added == 0.0 and r < 1.0  # A is not singular
        self.known = self.solvable and r < 1.0 / 3.0 - 1e-9  # y < 1/2
        self._y = r / (1.0 - r) if self.known else math.inf
        self._d = math.sqrt(1.0 + self._y) * r_rest / (1.0 - 2.0 * self._y)

    def rows_between(self, alpha: float) -> Estimate:
        """Number of rows as an integer; n is measured in steps of a fraction."""
        half, row = self._law.width(self._scale, alpha), self._noise.row
        value = max((2 * self._rows + row) // (2 * row), 0)
        low, high = -((half - self._rows) // row), (self._rows + half) // row
        return Estimate(value, min(max(low, 0), value), max(high, value))

    def residual_variance(self) -> float | None:
        """s^2 of the outcome over half of its width; None where the noise exceeds it."""
        degrees = self._rows / self._noise.row - len(self.coefficients)
        return self.residual / degrees if degrees >= 1.0 and self.residual > 0.0 else None

    def deviation(self, direction: Numbers) -> float:
        """Standard deviation of the noise in c.v, to first order."""
        weights = self._weights(direction)
        return self._law.deviation(self._scale) * float(np.linalg.norm(weights))

    def half_width(self, direction: Numbers) -> float:
        """Bound on |c.x - c.v|."""
        y, d = self._y, self._d
        length = math.sqrt(float(direction @ self.inverse @ direction))
        moved = (1.0 + y) * self._root * d
        weights_at_rest = math.sqrt(1.0 + y) * self._rest_root + moved
        unsure = length * (y * weights_at_rest + moved) / math.sqrt(1.0 - y)
        first = self._width(self._weights(direction), unsure, self.alpha)
        return first + math.sqrt(1.0 + y) * length * y * d

    def residual_half_width(self, alpha: float) -> float:
        """Bound on the error of the noisy residual sum of squares."""
        y, d = self._y, self._d
        weights = self._noise.weights(self.rest, self.rest)
        unsure = d * (2.0 * math.sqrt(1.0 + y) * self._rest_root + (1.0 + y) * self._root * d)
        penalty = math.sqrt(float(self.coefficients @ (self.model.ridge * self.coefficients)))
        return self._width(weights, unsure, alpha) + (1.0 + y) * d * d + 2.0 * d * penalty

    def _weights(self, direction: Numbers) -> Numbers:
        row = self.inverse @ direction
        return self._noise.weights(self.model.features.T @ row, self.rest)

    def _width(self, weights: Numbers, unsure: float, alpha: float) -> float:
        """Width of a sum of draws whose weights differ from these by at most `unsure` in L2.

        The same bound then holds in every higher norm."""
        size = float(np.linalg.norm(weights)) + unsure
        if size == 0.0:
            return 0.0
        shares = np.abs(weights) / size
        norms = [float(np.sum(shares**r)) ** (1.0 / r) + unsure / size for r in ORDERS]
        powers = tuple(norm**r for norm, r in zip(norms, ORDERS, strict=True))
        sum_of = WeightedNoiseSum(len(shares), None, powers)
        return size * self._law.sum_width(self._scale, sum_of, alpha)


def _norm_root(matrix: Numbers) -> float:
    return math.sqrt(max(float(np.linalg.eigvalsh((matrix + matrix.T) / 2.0)[-1]), 0.0))


def fit_estimates(fit: Fit, confidence: float) -> dict[str, Any]:
    """The answer's value. Null stands for errors that the noise leaves unknown."""
    model = fit.model
    values = model.units @ fit.coefficients + model.offset
    variance = fit.residual_variance()
    items = []
    for label, value, direction in zip(model.labels, values, model.units, strict=True):
        interval, error = None, None
        if fit.known:
            half = fit.half_width(direction)
            shown = Estimate(float(value), float(value - half), float(value + half))
            interval = shown.interval(confidence)
        if fit.solvable and variance is not None:
            sampling = variance * float(direction @ fit.inverse @ direction)
            error = math.sqrt(sampling + fit.deviation(direction) ** 2)
        items.append(
            {"term": label, "value": float(value), "standard_error": error, "interval": interval}
        )
    rows = fit.rows_between(1.0 - confidence)
    return {
        "coefficients": items,
        "residual_standard_deviation": _residual_estimate(fit, variance, confidence),
        "rows": {"value": rows.value, "interval": rows.interval(confidence)},
        "ridge": float(np.max(model.ridge)) + fit.added,
    }


def _residual_estimate(fit: Fit, variance: float | None, confidence: float) -> dict[str, Any]:
    """Residual standard deviation with its interval.

    The interval combines two others, and each of them has half of the remaining probability."""
    half_width = fit.model.outcome_width
    value = None if variance is None else half_width * math.sqrt(variance)
    rows = fit.rows_between(fit.alpha / 2.0)
    terms = len(fit.coefficients)
    if not fit.known or rows.low <= terms:
        return {"value": value, "interval": None}
    half = fit.residual_half_width(fit.alpha / 2.0)
    ends = (fit.residual - half, rows.high), (fit.residual + half, rows.low)
    low, high = (half_width * math.sqrt(max(rss, 0.0) / (n - terms)) for rss, n in ends)
    shown = Estimate(high if value is None else value, low, high)
    return {"value": value, "interval": shown.interval(confidence)}
