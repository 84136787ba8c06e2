"""Several aggregates of the same rows: one query, one charge, one reading of the data.

Each of the k aggregates is measured as it would be alone, with a k-th of the loss. For neighbours
the measures of aggregate i satisfy sum of share * d / sensitivity <= 1 and sum of share * e^2 /
square <= 1 (`measures.py`). So with every share divided by k all of them together stay within k
times 1 / k. This is the composition of k queries, made before the charge: each gets the noise of a
k-th of epsilon, or of rho. Brute-force tests find that no neighbour moves all of them further, and
that undivided shares would not hold.

An aggregate that two of them need, such as a column's total, is requested from the engine once;
each adds its own noise to it.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.data.card import Card
from app.errors import Invalid
from app.queries.filters import POINTER
from app.queries.groups import GROUPS_MAX
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import Selection, SumShape, numeric
from app.queries.sums.count import Count
from app.queries.sums.mean import Mean
from app.queries.sums.sum import Sum
from app.queries.sums.variance import Variance
from app.queries.tally import Aggregate, Tally

AGGREGATES_MAX = 20
UNPROMISED = "none: each aggregate has a width of its own; one alone promises its own"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CountOfRows(_Frozen):
    """Number of rows."""

    kind: Literal["count"]


class OfColumn(_Frozen):
    """Statistic of one column's values."""

    kind: Literal["sum", "mean", "variance"]
    column: str


AggregatePart = Annotated[CountOfRows | OfColumn, Field(discriminator="kind")]
Alone = Count | Sum | Mean | Variance


class Aggregates(Selection):
    """`{"kind": "aggregates", "of": [{"kind": "count"}, {"kind": "mean", "column": ...}], "where":
    ..., "group_by": [...]}`"""

    kind: Literal["aggregates"]
    of: Annotated[tuple[AggregatePart, ...], Field(min_length=2, max_length=AGGREGATES_MAX)]

    @field_validator("of", mode="before")
    @classmethod
    def _tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def alone(self) -> list[Alone]:
        """Each aggregate as a query of its own."""
        return [self._alone(one) for one in self.of]

    def _alone(self, one: CountOfRows | OfColumn) -> Alone:
        where, groups = self.where, self.group_by
        if isinstance(one, CountOfRows):
            return Count(kind="count", where=where, group_by=groups)
        match one.kind:
            case "sum":
                return Sum(kind="sum", column=one.column, where=where, group_by=groups)
            case "mean":
                return Mean(kind="mean", column=one.column, where=where, group_by=groups)
            case "variance":
                return Variance(kind="variance", column=one.column, where=where, group_by=groups)

    def shape(self, card: Card) -> SumShape:
        self._must_fit(card)
        indices: dict[Aggregate, int] = {}
        measures: list[Measure] = []
        shapes = []
        for i, question in enumerate(self.alone()):
            shape = question.shape(card)
            assert isinstance(shape, SumShape)  # groups by private keys were refused
            moved = [indices.setdefault(one, len(indices)) for one in shape.tally.aggregates]
            measures.extend(
                replace(
                    measure,
                    name=f"of/{i}/{measure.name}",
                    terms=tuple((factor, moved[index]) for factor, index in measure.terms),
                    share=measure.share * Fraction(1, len(self.of)),
                    single_cell=False,
                )
                for measure in shape.measures
            )
            shapes.append(shape)
        rows = self.tally(card, self.resolved_groups(card))
        tally = Tally(rows.where, rows.groups, tuple(indices))
        return SumShape(
            tally, tuple(measures), no_half_width_reason=UNPROMISED, several=tuple(shapes)
        )

    def _must_fit(self, card: Card) -> None:
        for i, one in enumerate(self.of):
            if isinstance(one, OfColumn):
                numeric(card, one.column, f"{POINTER}/of/{i}/column")
            if one in self.of[:i]:
                raise Invalid.field(f"{POINTER}/of/{i}", "each aggregate may appear only once")
        groups = self.tally(card, self.resolved_groups(card)).group_count()
        if groups * len(self.of) > GROUPS_MAX:
            raise Invalid.field(
                f"{POINTER}/of", f"may have at most {GROUPS_MAX} numbers over all groups"
            )
