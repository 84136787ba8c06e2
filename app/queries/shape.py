"""What queries have in common: a selection of rows, and the shape of what is released."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.datasets import Card, Column, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import Filter, declared, resolve
from app.queries.gradient_shape import GradientShape
from app.queries.groups import GroupBy, resolve_groups
from app.queries.linear import Linear
from app.queries.measures import Measure
from app.queries.statistics import Aggregate, Grouping, Tally

AT = "/query"


@dataclass(frozen=True, slots=True)
class Shape:
    """One tally to ask the engine for, and the measures made of it that get noise."""

    tally: Tally
    measures: tuple[Measure, ...]
    linear: Linear | None = None  # answers that are sums of what is measured
    alternatives: tuple["Shape | GradientShape", ...] = ()  # other ways to the same answers
    indirect: bool = False  # is the figure made of its one measure, rather than being it

    @property
    def figure_is_measure(self) -> bool:
        """Is the width of a figure that of its noise, known beforehand?"""
        if self.linear is not None:
            return True
        return len(self.measures) == 1 and not self.measures[0].also and not self.indirect


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
        return resolve_groups(self.group_by, card, f"{AT}/group_by")

    def tally(self, card: Card, groups: tuple[Grouping, ...], *aggregates: Aggregate) -> Tally:
        return Tally(resolve(self.where, card, f"{AT}/where"), groups, aggregates)


def numeric(card: Card, name: str) -> IntegerColumn | NumberColumn:
    column: Column = declared(card, name, f"{AT}/column")
    if not isinstance(column, IntegerColumn | NumberColumn):
        raise Invalid.field(f"{AT}/column", "an integer or number column")
    return column
