"""What queries have in common: a selection of rows, and the shape of what is released."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.data.card import Card
from app.data.columns import Column, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.groups import GroupBy, resolve_groups
from app.queries.shapes.learning import LearningShape
from app.queries.shapes.measures import Measure
from app.queries.shapes.moments import Moments
from app.queries.shapes.single_mean import MeanShape
from app.queries.shapes.workload import OverlappingCounts
from app.queries.tally import Aggregate, Grouping, Tally

DEPENDS = "none: the width depends on what is released"


@dataclass(frozen=True, slots=True)
class SumShape:
    """One tally to ask the engine for, and the measures made of it that get noise.

    Where the figure is one measure, or sums of what is measured, its width is that of the noise and
    known beforehand; any other shape says why it is not.
    """

    tally: Tally
    measures: tuple[Measure, ...]
    linear: OverlappingCounts | None = None  # answers that are sums of what is measured
    # Other ways to the same answers.
    alternatives: tuple["SumShape | LearningShape | MeanShape", ...] = ()
    divisor: int = 1  # a public number: the figure is the measure over it
    no_half_width_reason: str | None = None  # why no half width can be promised, for people
    factor: bool = False  # is the measure a logarithm, so that noise is a factor of the figure
    moments: Moments | None = None  # of a regression, whose coefficients are made of them
    several: tuple[int, ...] = ()  # of how many measures each of several figures is made


class Selection(BaseModel):
    """The rows a query is about, and the public groups it is answered for."""

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
        raise Invalid.field(at, "an integer or number column")
    return column
