"""Noise on many counts of one query, and answers that are sums of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import le
from typing import Any

import numpy as np
from typing_extensions import override

from app.caches import owned_cache
from app.data.card import Card
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.noise.additive import AdditiveRelease, NoiseDistribution
from app.mechanisms.noise.constrained_inference import adjusted, linear_estimate
from app.mechanisms.release import RandomSource
from app.queries import Query
from app.queries.estimates import Estimate
from app.queries.shapes.sums import SumShape
from app.queries.shapes.workload import OverlappingCounts
from app.queries.tally import Exact
from app.queries.weighted_noise import WeightedNoiseSum

_CLOSE = 1e-6  # largest change of a count that is only rounding


@dataclass(frozen=True, slots=True)
class WorkloadRelease(AdditiveRelease):
    """Release of one measure over all measured counts; each answer has the interval of its own
    noise."""

    @property
    def linear(self) -> OverlappingCounts:
        assert self.shape.linear is not None
        return self.shape.linear

    @property
    @override
    def is_instant(self) -> bool:
        return False

    @override
    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        numbers = self.linear.measurements(exact)
        draws = self.law.draw(noise, self.parts[0].scale, len(numbers))
        noisy = [number + z for number, z in zip(numbers, draws, strict=True)]
        figures = list(self._figures(noisy, 1.0 - confidence))
        items: list[dict[str, Any]] = [
            {
                "up_to" if self.linear.increasing else "name": label,
                "value": figure.value,
                "interval": figure.interval(confidence),
                "adjusted": moved,
            }
            for label, (figure, moved) in zip(self.linear.labels, figures, strict=True)
        ]
        if self.linear.increasing:
            halves = [figure for figure, _ in self._figures(noisy, (1.0 - confidence) / 2.0)]
            for item, figure in zip(items, halves, strict=True):
                share = _share(figure, halves[-1])
                item["share"] = {"value": share.value, "interval": share.interval(confidence)}
        return {"value": items, "interval": None}

    def _figures(self, noisy: list[int], alpha: float) -> Iterator[tuple[Estimate, bool]]:
        linear = self.linear
        estimate = linear_estimate(linear, noisy)
        values = adjusted(linear, noisy, estimate)
        raw = estimate if linear.strategy != "identity" else np.array(noisy, dtype=np.float64)
        least = 0.0 if linear.nonnegative or linear.increasing else -math.inf
        for sum_of, linear_value, value, before in zip(
            linear.answers, estimate, values, raw, strict=True
        ):
            half = width_of(self.law, self.parts[0].scale, sum_of, alpha)
            low, high = (max(bound, least) for bound in (linear_value - half, linear_value + half))
            shown = Estimate(_plain(value), _plain(min(low, value)), _plain(max(high, value)))
            yield shown, bool(abs(value - before) > _CLOSE)

    @override
    def warm(self, confidence: float) -> None:
        for sum_of in self.linear.answers:
            width_of(self.law, self.parts[0].scale, sum_of, 1.0 - confidence)

    @override
    def half_width(self, confidence: float) -> float:
        """Half width of the answer with the widest interval."""
        return widest(self.law, self.shape, self.parts[0].scale, 1.0 - confidence)

    @override
    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        details = {"total_squared_error": self._squared_error()}
        return ExpectedError(self.half_width(confidence), details=details)

    @property
    @override
    def standard_deviations(self) -> tuple[float, ...]:
        return (math.sqrt(self._squared_error()),)

    def _squared_error(self) -> float:
        """Expected total squared error over all answers, before the non-linear constraints."""
        return float(self.law.deviation(self.parts[0].scale) ** 2 * self.linear.error)

    @override
    def describe(self) -> dict[str, Any]:
        description = super(WorkloadRelease, self).describe()
        return {**description, **self._strategy()}

    @override
    def ledger_entry(self) -> dict[str, Any]:
        entry = super(WorkloadRelease, self).ledger_entry()
        return {**entry, **self._strategy()}

    def _strategy(self) -> dict[str, Any]:
        levels = {"levels": list(self.linear.runs)} if self.linear.runs else {}
        return {"strategy": self.linear.strategy, "measured": self.linear.measured, **levels}


def figure_width(law: NoiseDistribution, shape: SumShape, scale: float, alpha: float) -> float:
    """Half of the interval's width, in steps of the single measure."""
    if shape.linear is None:
        return law.width(scale, alpha)
    return widest(law, shape, scale, alpha)


def width_of(law: NoiseDistribution, scale: float, sum_of: WeightedNoiseSum, alpha: float) -> float:
    """A w with P(|sum of a_i Z_i| > w) <= alpha."""
    if sum_of.count == 0:
        return 0.0
    if sum_of.count == 1:
        assert sum_of.weight is not None
        return sum_of.weight * law.width(scale, alpha)
    return law.sum_width(scale, sum_of, alpha)


def widest(law: NoiseDistribution, shape: SumShape, scale: float, alpha: float) -> float:
    """The largest width of all answers."""
    assert shape.linear is not None
    return max(width_of(law, scale, each, alpha) for each in _may_be_widest(shape.linear))


@owned_cache(maxsize=16)
def _may_be_widest(linear: OverlappingCounts) -> tuple[WeightedNoiseSum, ...]:
    """Sums that may have the widest interval.

    With equal weights a longer sum is never narrower, so only the longest of each weight counts.
    Other widths are computed from the sums of powers of the weights. They never grow if each of
    these sums shrinks."""
    longest: dict[float, WeightedNoiseSum] = {}
    others: list[WeightedNoiseSum] = []
    for sum_of in sorted(set(linear.answers), key=lambda each: each.powers, reverse=True):
        if sum_of.weight is not None:
            if sum_of.weight not in longest or sum_of.count > longest[sum_of.weight].count:
                longest[sum_of.weight] = sum_of
        elif not any(all(map(le, sum_of.powers, other.powers)) for other in others):
            others.append(sum_of)
    return (*longest.values(), *others)


def _share(part: Estimate, whole: Estimate) -> Estimate:
    """A part over its whole: the extremes over the box of both intervals.

    An empty whole gives 0. If the whole may be empty, the interval is [0, 1]."""
    value = part.value / whole.value if whole.value > 0 else 0.0
    if whole.low < 1:
        return Estimate(value, 0.0, 1.0)
    return Estimate(
        value, min(part.low / whole.high, value), max(min(part.high / whole.low, 1.0), value)
    )


def _plain(value: float) -> int | float:
    """An integer where the float is one."""
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
