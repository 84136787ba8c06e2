"""Release with additive noise on integer measures: the code shared by the additive mechanisms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from typing_extensions import override

from app.accounting.loss import Loss
from app.data.card import Card
from app.mechanisms.expected_error import ExpectedError, unknown
from app.mechanisms.release import OneTally, RandomSource
from app.queries import Measured, Query
from app.queries.estimates import NoisySteps, number
from app.queries.shapes.measures import AggregateTerms, Measure
from app.queries.shapes.sums import SumShape
from app.queries.tally import Exact, Tally
from app.queries.weighted_noise import WeightedNoiseSum, combinations

OTHERS_SHARE = 0.05  # part of alpha for all noises but the largest
FACTOR_LOG_MAX = 690.0  # largest exponent whose result a float holds and JSON can write


class NoiseDistribution(Protocol):
    """Noise distribution on the integers, parametrised by one scale."""

    @property
    def kind(self) -> str: ...

    def draw(self, noise: RandomSource, scale: float, size: int) -> list[int]: ...

    def width(self, scale: float, alpha: float) -> int:
        """A w with P(|Z| > w) <= alpha."""
        ...

    def sum_width(self, scale: float, sum_of: WeightedNoiseSum, alpha: float) -> float:
        """A w with P(|sum of a_i Z_i| > w) <= alpha, for more than one independent draw."""
        ...

    def norm(self, scale: float, *, root: float, largest: float, size: int, alpha: float) -> float:
        """A w with P(|sum of Z_k B_k| > w) <= alpha, for symmetric matrices B_k of one size.

        Requires |sum of B_k^2| <= root^2 and |B_k| <= largest for all k. The result is linear in
        `root` and `largest`."""
        ...

    def deviation(self, scale: float) -> float:
        """Standard deviation, used to compare mechanisms."""
        ...


@dataclass(frozen=True, slots=True)
class NoisyMeasure:
    """One measure with its noise scale, in steps of the measure's own grid."""

    measure: Measure
    scale: float

    def describe(self) -> dict[str, Any]:
        exponent = self.measure.grid_exponent
        return {
            "measure": self.measure.name,
            "sensitivity": number(self.measure.sensitivity, exponent),
            "scale": math.ldexp(self.scale, -exponent),
            "grid": number(1, exponent),
        }


@dataclass(frozen=True, slots=True)
class AdditiveRelease(OneTally):
    """Prepared release: the tally to read, its price, and the noise distribution."""

    law: NoiseDistribution
    shape: SumShape
    parts: tuple[NoisyMeasure, ...]
    loss: Loss
    theorem: str

    @property
    @override
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    @override
    def is_instant(self) -> bool:
        return True

    def draw(
        self,
        exact: Exact,
        noise: RandomSource,
        *,
        confidence: float,
        parts: tuple[NoisyMeasure, ...] | None = None,
    ) -> tuple[tuple[NoisySteps, ...], ...]:
        """Add noise to every vector of all parts, or of the given parts of one figure.

        Each interval holds with an equal share of 1 - confidence, so those of one figure hold
        together."""
        vectors = [(part, terms) for part in parts or self.parts for terms in part.measure.vectors]
        alpha = (1.0 - confidence) / len(vectors)
        released = []
        for part, terms in vectors:
            exacts = _added(exact, terms)
            draws = self.law.draw(noise, part.scale, len(exacts))
            half = self.law.width(part.scale, alpha)
            sums = [e + z for e, z in zip(exacts, draws, strict=True)]
            released.append(
                tuple([NoisySteps(steps, steps - half, steps + half) for steps in sums])
            )
        return tuple(released)

    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        """One figure, or one per public group, each with the interval of its noise."""
        assert isinstance(query, Measured)
        noisy = self.draw(exact, noise, confidence=confidence)
        figures = query.figures(noisy, card)
        if not self.tally.groups:
            return {"value": figures[0].value, "interval": figures[0].interval(confidence)}
        return {
            "value": [
                {"group": label, "value": figure.value, "interval": figure.interval(confidence)}
                for label, figure in zip(self.tally.group_labels(), figures, strict=True)
            ],
            "interval": None,
        }

    def describe(self) -> dict[str, Any]:
        return {"kind": self.law.kind, "noise": [part.describe() for part in self.parts]}

    def ledger_entry(self) -> dict[str, Any]:
        """Ledger description: integers and fractions from which any accountant can recompute the
        price."""
        return {
            "mechanism": self.law.kind,
            "noise": [
                {
                    "measure": part.measure.name,
                    "sensitivity": str(part.measure.sensitivity),
                    "square": str(part.measure.sensitivity_squared),
                    "share": str(part.measure.share),
                    "grid_exponent": part.measure.grid_exponent,
                    "scale": part.scale.hex(),
                }
                for part in self.parts
            ],
        }

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        if self.shape.factor:
            return ExpectedError(self.factor(confidence), "factor")
        return error_of(self.law, self.shape, self.parts, confidence, rows)

    def half_width(self, confidence: float) -> float | None:
        """Half of the interval's width, where one measure is the figure.

        None for a mean: its interval depends on released values."""
        if self.shape.no_half_width_reason is not None:
            return None
        return _promised(self.law, self.shape, self.parts[0], confidence)

    def factor(self, confidence: float) -> float:
        """Largest factor by which noise changes the figure either way; two extra steps cover
        rounding."""
        part = self.parts[0]
        steps = self.law.width(part.scale, 1.0 - confidence) + 2
        return math.exp(min(number(steps, part.measure.grid_exponent), FACTOR_LOG_MAX))

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """Standard deviations of the noise; the planner compares mechanisms by them."""
        return tuple(self.law.deviation(part.scale) for part in self.parts)


def _promised(
    law: NoiseDistribution, shape: SumShape, part: NoisyMeasure, confidence: float
) -> float:
    steps = law.width(part.scale, 1.0 - confidence)
    return float(number(steps, part.measure.grid_exponent)) / shape.divisor


def error_of(
    law: NoiseDistribution,
    shape: SumShape,
    parts: tuple[NoisyMeasure, ...],
    confidence: float,
    rows: int | None,
) -> ExpectedError:
    """Expected error of one figure: the promise of a single measure, or an estimate."""
    reason = shape.no_half_width_reason
    if reason is None:
        return ExpectedError(_promised(law, shape, parts[0], confidence))
    if shape.estimate is None:
        return unknown(reason)
    if rows is None:
        return ExpectedError(None, promise=False, depends_on_rows=True, reason=reason)

    def width(weights: Sequence[tuple[int, float]], alpha: float) -> float:
        return _sum_width(law, [(parts[i], weight) for i, weight in weights], alpha)

    half = shape.estimate(width, rows, 1.0 - confidence)
    return ExpectedError(half, promise=False, rows=rows, depends_on_rows=True)


def _sum_width(
    law: NoiseDistribution, weighted: list[tuple[NoisyMeasure, float]], alpha: float
) -> float:
    """About the width of a weighted sum of independent noises, in the unit of its weights.

    A noise of scale s is taken as s / t times one of scale t, the largest. That is exact for
    continuous noise, and close for discrete noise of a large scale."""
    sizes = [
        abs(weight) * math.ldexp(part.scale, -part.measure.grid_exponent)
        for part, weight in weighted
    ]
    scale = max(part.scale for part, _ in weighted)
    largest, *others = sorted((size / scale for size in sizes if size > 0.0), reverse=True)
    if not others:
        return largest * law.width(scale, alpha)
    (sum_of,) = combinations(np.array([[largest, *others]]))
    # Better where one noise outweighs the others: each within its own width.
    rest = sum(others) * law.width(scale, alpha * OTHERS_SHARE / len(others))
    apart = largest * law.width(scale, alpha * (1.0 - OTHERS_SHARE)) + rest
    return min(law.sum_width(scale, sum_of, alpha), apart)


def _added(exact: Exact, terms: AggregateTerms) -> Sequence[int]:
    """Exact integer value of the measure for each group."""
    if len(terms) == 1 and terms[0][0] == 1:
        return exact[terms[0][1]]
    vectors = [[coefficient * number for number in exact[index]] for coefficient, index in terms]
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def float_up(exact: Fraction) -> float:
    scale = float(exact)
    return scale if Fraction(scale) >= exact else math.nextafter(scale, math.inf)


def steps_within(shape: SumShape, half_width: float) -> Fraction:
    """Number of steps of the single measure's grid within a half width."""
    return Fraction(half_width) * shape.divisor * Fraction(2) ** shape.measures[0].grid_exponent
