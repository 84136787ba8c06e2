"""Release classes of additive noise, and the choice of one for a shape.

A shape has one figure, several, sums of counts, or the moments of a fit. All moments are released,
and the fit uses only them.
"""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.accounting.loss import Loss
from app.data.card import Card
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.noise.additive import (
    AdditiveRelease,
    NoiseDistribution,
    NoisyMeasure,
    error_of,
)
from app.mechanisms.noise.linear_fit import Fit, fit_estimates, model_of
from app.mechanisms.noise.moment_noise import MomentNoise
from app.mechanisms.noise.workload_release import WorkloadRelease
from app.mechanisms.release import RandomSource
from app.queries import Query
from app.queries.estimates import Estimate
from app.queries.regression.linear import LinearRegression
from app.queries.shapes.sums import SumShape
from app.queries.sums.aggregates import Aggregates
from app.queries.tally import Exact


@dataclass(frozen=True, slots=True)
class AggregatesRelease(AdditiveRelease):
    """Release of several aggregates. The measures of one aggregate are adjacent, in query order."""

    @override
    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        """One error per aggregate: they have units of their own."""
        errors: list[ExpectedError] = []
        rest = self.parts
        for shape in self.shape.several:
            parts, rest = rest[: len(shape.measures)], rest[len(shape.measures) :]
            errors.append(error_of(self.law, shape, parts, confidence, rows))
        promise = all(error.promise for error in errors)
        return ExpectedError(None, promise=promise, parts=tuple(errors))

    @override
    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        """One figure per aggregate. Each interval holds with the confidence by itself, as for
        groups."""
        assert isinstance(query, Aggregates)
        columns: list[list[Estimate]] = []
        rest = self.parts
        for question, shape in zip(query.alone(), self.shape.several, strict=True):
            parts, rest = rest[: len(shape.measures)], rest[len(shape.measures) :]
            noisy = self.draw(exact, noise, confidence=confidence, parts=parts)
            columns.append(question.figures(noisy, card))
        names = [aggregate.model_dump() for aggregate in query.of]
        rows = [
            [
                {**name, "value": figure.value, "interval": figure.interval(confidence)}
                for name, figure in zip(names, figures, strict=True)
            ]
            for figures in zip(*columns, strict=True)
        ]
        if not self.tally.groups:
            return {"value": rows[0], "interval": None}
        labels = self.tally.group_labels()
        value = [{"group": label, "values": row} for label, row in zip(labels, rows, strict=True)]
        return {"value": value, "interval": None}


@dataclass(frozen=True, slots=True)
class MomentsRelease(AdditiveRelease):
    """Release of one measure over all moments, n first."""

    @property
    @override
    def is_instant(self) -> bool:
        return False

    @override
    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        assert isinstance(query, LinearRegression)
        assert self.shape.moments is not None
        moments, (part,) = self.shape.moments, self.parts
        numbers = [
            sum(coefficient * exact[index][0] for coefficient, index in terms)
            for terms in part.measure.vectors
        ]
        draws = self.law.draw(noise, part.scale, len(numbers))
        noisy = [number + z for number, z in zip(numbers, draws, strict=True)]
        model = model_of(moments, intercept=query.intercept, ridge=query.ridge)
        fit = Fit(model, MomentNoise(moments), noisy, self.law, part.scale, 1.0 - confidence)
        return {"value": fit_estimates(fit, confidence), "interval": None}

    @override
    def describe(self) -> dict[str, Any]:
        return {**super(MomentsRelease, self).describe(), "moments": self._count}

    @override
    def ledger_entry(self) -> dict[str, Any]:
        return {**super(MomentsRelease, self).ledger_entry(), "moments": self._count}

    @property
    def _count(self) -> int:
        return len(self.parts[0].measure.vectors)


def release_of(
    law: NoiseDistribution,
    shape: SumShape,
    parts: tuple[NoisyMeasure, ...],
    loss: Loss,
    theorem: str,
) -> AdditiveRelease:
    kind = AdditiveRelease
    if shape.linear is not None:
        kind = WorkloadRelease
    elif shape.moments is not None:
        kind = MomentsRelease
    elif shape.several:
        kind = AggregatesRelease
    return kind(law, shape, parts, loss, theorem)
