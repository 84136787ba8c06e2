"""Noise on several aggregates of one question: each figure with the interval of its own noise."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.data.card import Card
from app.mechanisms.noise.additive import AdditiveRelease
from app.mechanisms.release import RandomSource
from app.queries import Query
from app.queries.estimates import Estimate
from app.queries.sums.aggregates import Aggregates
from app.queries.tally import Exact


@dataclass(frozen=True, slots=True)
class AggregatesRelease(AdditiveRelease):
    """The measures of each aggregate stand together, in the order of the question."""

    @override
    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        """Each interval holds with the confidence by itself, as those of groups do."""
        assert isinstance(query, Aggregates)
        columns: list[list[Estimate]] = []
        rest = self.parts
        for question, size in zip(query.alone(), self.shape.several, strict=True):
            parts, rest = rest[:size], rest[size:]
            noisy = self.draw(exact, noise, confidence=confidence, parts=parts)
            columns.append(question.figures(noisy, card))
        names = [each.model_dump() for each in query.of]
        rows = [
            [
                {**name, "value": each.value, "interval": each.interval(confidence)}
                for name, each in zip(names, figures, strict=True)
            ]
            for figures in zip(*columns, strict=True)
        ]
        if not self.tally.groups:
            return {"value": rows[0], "interval": None}
        labels = self.tally.group_labels()
        value = [{"group": label, "values": row} for label, row in zip(labels, rows, strict=True)]
        return {"value": value, "interval": None}
