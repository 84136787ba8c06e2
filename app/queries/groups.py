"""Public groups: a category's values, true and false, or the intervals between given edges.

Groups come from the card and the question, never from rows, so that which groups exist tells
nothing. A row whose value is missing or outside the edges is in no group.
"""

import datetime
import math
from itertools import pairwise
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.datasets import BooleanColumn, Card, CategoryColumn, DateColumn
from app.errors import Invalid
from app.queries.filters import declared, typed_day
from app.queries.statistics import ByEdges, ByValues, Grouping

GROUPS_MAX = 100_000
EDGES_MAX = 100_001

Edges = Annotated[tuple[int | float | str, ...], Field(min_length=2, max_length=EDGES_MAX)]


class GroupByEdges(BaseModel):
    """A numeric or date column cut at increasing public edges."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str
    edges: Edges

    @field_validator("edges", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


GroupBy = str | GroupByEdges


def resolve_groups(items: tuple[GroupBy, ...], card: Card, at: str) -> tuple[Grouping, ...]:
    groupings = tuple(
        resolve_group(item, None, card, f"{at}/{i}")
        if isinstance(item, str)
        else resolve_group(item.column, item.edges, card, f"{at}/{i}")
        for i, item in enumerate(items)
    )
    names = [grouping.column for grouping in groupings]
    if len(set(names)) != len(names):
        raise Invalid.field(at, "each column is grouped by once")
    if math.prod(grouping.count for grouping in groupings) > GROUPS_MAX:
        raise Invalid.field(at, f"at most {GROUPS_MAX} groups")
    return groupings


def resolve_group(name: str, edges: Edges | None, card: Card, at: str) -> Grouping:
    column = declared(card, name, at)
    match column:
        case CategoryColumn() | BooleanColumn():
            if edges is not None:
                raise Invalid.field(f"{at}/edges", f"a {column.type} column has no edges")
            values = column.values if isinstance(column, CategoryColumn) else (False, True)
            return ByValues(column.name, values)
        case _:
            if edges is None:
                raise Invalid.field(
                    at, f'a {column.type} column is grouped by public edges: {{"column", "edges"}}'
                )
            at = f"{at}/edges"
            if isinstance(column, DateColumn):
                days = [typed_day(edge, f"{at}/{i}") for i, edge in enumerate(edges)]
                return ByEdges(column.name, _increasing(days, at))
            numbers = [_number(edge, f"{at}/{i}") for i, edge in enumerate(edges)]
            return ByEdges(column.name, _increasing(numbers, at))


Edge = TypeVar("Edge", float, datetime.date)


def _increasing(edges: list[Edge], at: str) -> tuple[Edge, ...]:
    if any(not low < high for low, high in pairwise(edges)):
        raise Invalid.field(at, "edges increase from first to last")
    return tuple(edges)


def _number(edge: int | float | str, at: str) -> float:
    if isinstance(edge, str) or not abs(edge) <= 1e18:
        raise Invalid.field(at, "a number between -1e18 and 1e18")
    return float(edge)
