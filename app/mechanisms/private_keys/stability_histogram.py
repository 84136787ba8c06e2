"""Stability-based histogram: noise on every key that some row has; only counts from T on released.

Theorem: `tail_threshold.py`.
Noise: discrete Laplace of scale D / epsilon for counts that move by D in L1, epsilon-private
(`laplace.py`); or discrete Gaussian of a rho, from their move in L2 (`gaussian.py`). The threshold
fails with probability f, at most the requested delta. With Laplace noise the release is (epsilon,
f)-private. With Gaussian noise, requested by epsilon and delta, half of delta is for the noise and
half for the threshold. The release is then (epsilon, delta/2 + f)-private. Accounts that follow
curves pay the curve of the noise, and f as a failure. The noise's own half of delta is in its curve
and is not paid again. f is computed for the integer T in use, so it is often less than requested,
and so is the charge.

Intervals: a key is released because its noise made it large, so the interval of the noise alone
would not hold for released keys. Choose w such that P(Z > w) <= (alpha / 2) P(Z > 0). A released
count v has the interval [v - w, v + w] if v - w >= T, and otherwise [1, v + w]. For every key,
given that it is released, this holds with probability 1 - alpha.

Proof: Z < -w has probability alpha / 2 at most, and release only makes it less likely. The lower
end is above a count c < T only if the noisy count is T + w or more. Given T or more, the
probability of this is P(Z >= T + w - c) / P(Z >= T - c). Tails of such noise fall ever faster (they
are log-concave), so this is at most P(Z >= 1 + w) / P(Z >= 1). For c >= T it is at most P(Z > w) /
P(Z >= 0). Given that Laplace noise exceeds a value, it exceeds it by w more with probability exp(-w
/ scale). Gaussian: term by term the ratio is at most exp(-(w^2 + 2 w) / (2 s^2)); or P(Z > w) <=
P(N > w / s), and P(Z >= 1) is (1 - P(Z = 0)) / 2 with P(Z = 0) <= 1 / (s sqrt(2 pi)).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from typing_extensions import override

from app.accounting.precise import INFINITE
from app.accounting.units import ATTO, PICO, cost_units
from app.errors import Invalid
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.noise import gaussian, laplace
from app.mechanisms.noise.additive import AdditiveRelease, NoiseDistribution, float_up
from app.mechanisms.noise.tail_threshold import failure_units, least_threshold
from app.mechanisms.noise.tails import GaussianTail, LaplaceTail, Tail
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget, UnsupportedShape
from app.mechanisms.private_keys.counts_above import sample_counts_above
from app.mechanisms.private_keys.keys_release import KEYS_MAX, KeysRelease
from app.mechanisms.release import RandomSource
from app.mechanisms.unit_search import EPSILON_UNITS_MAX, largest_satisfying
from app.queries.estimates import Estimate
from app.queries.shapes.private_keys import NoiseName, PrivateKeysShape
from app.queries.shapes.sums import SumShape
from app.queries.tally import KeyBatch

KIND = "stability_histogram"
THEOREM = (
    "Korolova, Kenthapadi, Mishra and Ntoulas 2009, Bun, Nissim and Stemmer 2016 "
    "(stability-based histogram)"
)
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class StabilityRelease(KeysRelease):
    scale: float
    threshold: int
    failure: int  # units of probability that a key of one person is released
    noise_theorem: str

    @property
    def theorem(self) -> str:
        return f"{THEOREM}; {self.noise_theorem}"

    @property
    def noise(self) -> NoiseName:
        return self.shape.noise

    @property
    def law(self) -> NoiseDistribution:
        return laplace.LAW if self.noise == "laplace" else gaussian.LAW

    @override
    def released(self, batch: KeyBatch, noise: RandomSource) -> Iterator[tuple[int, str, int]]:
        counts = np.array([count for _, _, count in batch], dtype=np.int64)
        tail = tail_of(self.noise, self.scale)
        for i, noisy in sample_counts_above(
            counts, self.threshold, law=self.law, tail=tail, noise=noise
        ):
            yield batch[i][0], batch[i][1], noisy

    @override
    def shown_keys(self, keys: KeyBatch, confidence: float) -> list[Any]:
        groups, column = self.tally.group_labels(), self.wanted.column
        width = width_above(self.noise, self.scale, 1.0 - confidence)
        return [
            {
                "group": {**groups[group], column: text},
                "value": noisy,
                "interval": self._figure(noisy, width).interval(confidence),
            }
            for group, text, noisy in keys
        ]

    def _figure(self, noisy: int, width: int) -> Estimate:
        low = noisy - width if noisy - width >= self.threshold else 1
        return Estimate(noisy, low, noisy + width)

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """The least count whose key is released with probability 0.95."""
        return (float(self._kept_from(0.95)),)

    def _kept_from(self, probability: float) -> int:
        """The least count released with this probability: w above T fails only if noise is below
        -w."""
        return self.threshold + max(0, self.law.width(self.scale, 2.0 * (1.0 - probability)))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "noise": self.noise,
            "sensitivity": self.shape.measure.sensitivity,
            "scale": self.scale,
            "threshold": self.threshold,
            "failure": self.failure / ATTO,
            "keys_max": KEYS_MAX,
        }

    def ledger_entry(self) -> dict[str, Any]:
        return {
            "mechanism": KIND,
            "noise": self.noise,
            "sensitivity": str(self.shape.measure.sensitivity),
            "square": str(self.shape.measure.sensitivity_squared),
            "rows": self.shape.rows,
            "scale": self.scale.hex(),
            "threshold": str(self.threshold),
        }

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        half = width_above(self.noise, self.scale, 1.0 - confidence)
        details = {"threshold": self.threshold, "told_from": self._kept_from(confidence)}
        return ExpectedError(half, details=details)


def tail_of(noise: NoiseName, scale: float) -> Tail:
    return LaplaceTail(scale) if noise == "laplace" else GaussianTail(scale)


def width_above(noise: NoiseName, scale: float, alpha: float) -> int:
    """A w with P(Z > w) <= (alpha / 2) P(Z > 0)."""
    log = math.log(2.0 / alpha)
    if noise == "laplace":
        return math.ceil(scale * log * (1.0 + 1e-12))
    width = math.ceil((math.sqrt(1.0 + 2.0 * scale**2 * log) - 1.0) * (1.0 + 1e-9))
    if scale < 1.0:
        return width
    positive = (1.0 - 1.0 / (scale * math.sqrt(2.0 * math.pi))) / 2.0
    normal = -_NORMAL.inv_cdf(alpha / 2.0 * positive) * scale
    return min(width, math.ceil(normal * (1.0 + 1e-9)))


def prepare(shape: PrivateKeysShape, target: PrivacyTarget) -> StabilityRelease:
    if not shape.counts:
        raise UnsupportedShape("it releases counts: use a count or histogram query")
    if target.noise not in (None, shape.noise):
        raise UnsupportedShape("the query names another noise")
    if target.delta is None:
        raise Invalid.field("/privacy/delta", "required: private keys cost a delta")
    if shape.noise == "gaussian":
        return _gaussian(shape, target, cost_units(target.delta, ATTO))
    return _laplace(shape, target, cost_units(target.delta, ATTO))


def _laplace(shape: PrivateKeysShape, target: PrivacyTarget, delta: int) -> StabilityRelease:
    noise_target = PrivacyTarget(epsilon=target.epsilon, rho=target.rho)
    if target.half_width is not None:
        noise_target = PrivacyTarget(epsilon=Decimal(_epsilon_for(shape, target)) / PICO)
    counted = laplace.prepare(_counted(shape), noise_target)
    return _with_threshold(shape, counted, delta)


def _gaussian(shape: PrivateKeysShape, target: PrivacyTarget, delta: int) -> StabilityRelease:
    if target.epsilon is None:
        rho = target.rho if target.half_width is None else _rho_for(shape, target)
        counted = gaussian.prepare(_counted(shape), PrivacyTarget(rho=rho))
        return _with_threshold(shape, counted, delta)
    half = delta // 2
    if half < 1:
        raise CannotServe("the delta is too small to be split between noise and threshold")
    noise_target = PrivacyTarget(epsilon=target.epsilon, delta=Decimal(half) / ATTO)
    return _with_threshold(shape, gaussian.prepare(_counted(shape), noise_target), delta - half)


def _counted(shape: PrivateKeysShape) -> SumShape:
    return SumShape(shape.tally, (shape.measure,))


def _with_threshold(
    shape: PrivateKeysShape, counted: AdditiveRelease, allowed: int
) -> StabilityRelease:
    scale = counted.parts[0].scale
    tail = tail_of(shape.noise, scale)
    threshold = least_threshold(tail, shape.rows, allowed)
    failure = failure_units(tail, shape.rows, threshold)
    if failure > allowed:
        raise ArithmeticError("the threshold fails more often than delta allows")
    loss = counted.loss.replace(failure=failure)
    if loss.epsilon < INFINITE:
        loss = loss.replace(delta=loss.delta + failure)
    return StabilityRelease(shape, loss, scale, threshold, failure, counted.theorem)


def _epsilon_for(shape: PrivateKeysShape, target: PrivacyTarget) -> int:
    """The least epsilon whose interval is within the half width."""
    assert target.half_width is not None
    steps, alpha = math.floor(target.half_width), 1.0 - target.confidence

    def too_wide(epsilon: int) -> bool:
        scale = float_up(Fraction(shape.measure.sensitivity * PICO, epsilon))
        return width_above("laplace", scale, alpha) > steps

    if too_wide(EPSILON_UNITS_MAX):
        raise CannotServe("no noise reaches this half width")
    return largest_satisfying(too_wide, 0, EPSILON_UNITS_MAX) + 1 if too_wide(1) else 1


def _rho_for(shape: PrivateKeysShape, target: PrivacyTarget) -> Decimal:
    """Nearly the least rho whose interval is within the half width."""
    assert target.half_width is not None
    steps, alpha = math.floor(target.half_width), 1.0 - target.confidence
    low, high = 0.0, 2.0 * steps + 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if width_above("gaussian", middle, alpha) <= steps else (low, middle)
        )
    if steps < 1 or low <= 0.0:
        raise CannotServe("no noise reaches this half width")
    rho = shape.measure.sensitivity_squared / (2 * Fraction(low) ** 2)
    return Decimal(math.ceil(rho * PICO)) / PICO
