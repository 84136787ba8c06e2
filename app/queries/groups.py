"""Public groups: a category's values, true and false, or the intervals between given edges.

Groups come from the card and the query, never from rows, so the existence of a group reveals
nothing. A row whose value is missing or outside the edges is in no group.

The texts of a text column are not public. `{"column", "keys": "private"}` requests those that many
rows have, and pays for finding them (`shapes/private_keys.py`).
"""

import datetime
import math
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, DateColumn, TextColumn
from app.errors import Invalid
from app.queries.filters import declared, typed_day
from app.queries.tally import ByEdges, ByValues, Grouping

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


class GroupByKeys(BaseModel):
    """A text column, grouped by those of its texts that enough rows have."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str
    keys: Literal["private"]


def _shape(value: Any) -> str:
    if isinstance(value, GroupByKeys) or (isinstance(value, dict) and "keys" in value):
        return "private keys"
    return "public edges" if isinstance(value, dict | GroupByEdges) else "a column"


GroupBy = Annotated[
    Annotated[str, Tag("a column")]
    | Annotated[GroupByEdges, Tag("public edges")]
    | Annotated[GroupByKeys, Tag("private keys")],
    Discriminator(_shape),
]


def resolve_groups(items: tuple[GroupBy, ...], card: Card, at: str) -> tuple[Grouping, ...]:
    """Resolve public groups. Raises Invalid for groups by private keys."""
    for i, item in enumerate(items):
        if isinstance(item, GroupByKeys):
            raise Invalid.field(f"{at}/{i}/keys", "only a count can be grouped by private keys")
    return public_groups(items, card, at)


def public_groups(items: tuple[GroupBy, ...], card: Card, at: str) -> tuple[Grouping, ...]:
    groupings = tuple(
        resolve_group(item, None, card, f"{at}/{i}")
        if isinstance(item, str)
        else resolve_group(item.column, item.edges, card, f"{at}/{i}")
        for i, item in enumerate(items)
        if not isinstance(item, GroupByKeys)
    )
    names = [grouping.column for grouping in groupings]
    if len(set(names)) != len(names):
        raise Invalid.field(at, "each column may appear only once")
    if math.prod(grouping.count for grouping in groupings) > GROUPS_MAX:
        raise Invalid.field(at, f"a query may have at most {GROUPS_MAX} groups")
    return groupings


def private_column(items: tuple[GroupBy, ...], card: Card, at: str) -> str | None:
    """The one text column grouped by private keys, or None."""
    by_keys = [(i, item) for i, item in enumerate(items) if isinstance(item, GroupByKeys)]
    if not by_keys:
        return None
    (i, item), *others = by_keys
    if others:
        raise Invalid.field(f"{at}/{others[0][0]}/keys", "only one column may use private keys")
    return text_column(card, item.column, f"{at}/{i}/column").name


def text_column(card: Card, name: str, at: str) -> TextColumn:
    column = declared(card, name, at)
    if not isinstance(column, TextColumn):
        raise Invalid.field(
            at, f"must be a text column: the groups of a {column.type} column are public"
        )
    return column


EDGES_NEEDED = "a number or date column needs public edges"


def resolve_group(name: str, edges: Edges | None, card: Card, at: str) -> Grouping:
    column = declared(card, name, at)
    match column:
        case CategoryColumn() | BooleanColumn():
            if edges is not None:
                raise Invalid.field(f"{at}/edges", f"a {column.type} column has no edges")
            values = column.values if isinstance(column, CategoryColumn) else (False, True)
            return ByValues(column.name, values)
        case TextColumn():
            raise Invalid.field(
                at,
                'a text column has no public groups: use {"column", "keys": "private"} in a count',
            )
        case _:
            if edges is None:
                raise Invalid.field(at, f'{{"column", "edges"}}: {EDGES_NEEDED}')
            at = f"{at}/edges"
            if isinstance(column, DateColumn):
                days = [typed_day(edge, f"{at}/{i}") for i, edge in enumerate(edges)]
                return ByEdges(column.name, _increasing(days, at))
            numbers = [_number(edge, f"{at}/{i}") for i, edge in enumerate(edges)]
            return ByEdges(column.name, _increasing(numbers, at))


BinEdge = TypeVar("BinEdge", float, datetime.date)


def _increasing(edges: list[BinEdge], at: str) -> tuple[BinEdge, ...]:
    if any(not low < high for low, high in pairwise(edges)):
        raise Invalid.field(at, "edges must increase from first to last")
    return tuple(edges)


def _number(edge: int | float | str, at: str) -> float:
    if isinstance(edge, str) or not abs(edge) <= 1e18:
        raise Invalid.field(at, "must be a number between -1e18 and 1e18")
    return float(edge)
