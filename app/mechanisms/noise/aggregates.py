"""Noise on several aggregates of one query: each figure has the interval of its own noise."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.data.card import Card
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.noise.additive import AdditiveRelease, error_of
from app.mechanisms.release import RandomSource
from app.queries import Query
from app.queries.estimates import Estimate
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
