"""Sum queries: a selection of rows, and the shape of the release."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.data.card import Card
from app.data.columns import Column, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.groups import GroupBy, resolve_groups
from app.queries.quotient_error import RowEstimate
from app.queries.shapes.learning import LearningShape
from app.queries.shapes.measures import Measure
from app.queries.shapes.moments import Moments
from app.queries.shapes.single_mean import MeanShape
from app.queries.shapes.workload import OverlappingCounts
from app.queries.tally import Aggregate, Grouping, Tally

DEPENDS = "none: the width depends on what is released"


@dataclass(frozen=True, slots=True)
class SumShape:
    """One tally to request from the engine, and the measures computed from it that receive noise.

    Where the figure is one measure, or sums of measured counts, its width is that of the noise
    and known beforehand. Any other shape states why it is not."""

    tally: Tally
    measures: tuple[Measure, ...]
    linear: OverlappingCounts | None = None  # answers that are sums of measured counts
    # Other shapes of the same query.
    alternatives: tuple["SumShape | LearningShape | MeanShape", ...] = ()
    divisor: int = 1  # public number by which the measure is divided
    no_half_width_reason: str | None = None  # reason, for people, why no half width can be promised
    # true if the measure is a logarithm, so that noise is a factor of the figure
    factor: bool = False
    # moments of a regression, from which its coefficients are computed
    moments: Moments | None = None
    # half width for an assumed number of rows, where that is all it depends on
    estimate: RowEstimate | None = field(default=None, compare=False)  # a function of the shape
    several: tuple["SumShape", ...] = ()  # shapes of several figures; their measures are adjacent


class Selection(BaseModel):
    """The rows of a query, and the public groups of its answer."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    where: Filter | None = None
    group_by: Annotated[tuple[GroupBy, ...], Field(max_length=5)] = ()

    @field_validator("group_by", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def resolved_groups(self, card: Card) -> tuple[Grouping, ...]:
        return resolve_groups(self.group_by, card, f"{POINTER}/group_by")

    def tally(self, card: Card, groups: tuple[Grouping, ...], *aggregates: Aggregate) -> Tally:
        return Tally(resolve(self.where, card, f"{POINTER}/where"), groups, aggregates)


def numeric(card: Card, name: str, at: str = f"{POINTER}/column") -> IntegerColumn | NumberColumn:
    column: Column = declared(card, name, at)
    if not isinstance(column, IntegerColumn | NumberColumn):
        raise Invalid.field(at, "must be an integer or number column")
    return column
