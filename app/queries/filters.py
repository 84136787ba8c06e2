"""Filters as analysts send them: data, never text pasted into SQL.

A filter is checked here against the card, column by column. It becomes a Condition whose values
have the column's own type. Every message names the field and the rule, and repeats no value.
"""

import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from app.data.card import Card
from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    IntegerColumn,
    NumberColumn,
    TextColumn,
    day,
)
from app.errors import Invalid
from app.nearest import did_you_mean, no_such
from app.queries.tally import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    IsMissing,
    Negation,
    OneOf,
    Scalar,
)

POINTER = "/query"  # JSON pointer of the query in the body of a request
NODES_MAX = 200
DEPTH_MAX = 20
LIST_MAX = 10_000

WireScalar = bool | int | float | str


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class Comparison(_Frozen):
    """Compare one declared column with a value: `==, !=, <, <=, >, >=`, `in`, `between`,
    `is_null`."""

    column: str
    op: Literal["==", "!=", "<", "<=", ">", ">=", "in", "between", "is_null"]
    value: WireScalar | Annotated[tuple[WireScalar, ...], Field(max_length=LIST_MAX)] | None = None

    @field_validator("value", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return _tuple(value)


class AllParts(_Frozen):
    """Every part holds; always true without parts."""

    all: Annotated[tuple["Filter", ...], Field(max_length=NODES_MAX)]
    _list = field_validator("all", mode="before")(_tuple)


class AnyParts(_Frozen):
    """Some part holds; never true without parts."""

    any: Annotated[tuple["Filter", ...], Field(max_length=NODES_MAX)]
    _list = field_validator("any", mode="before")(_tuple)


class Not(_Frozen):
    """The part does not hold. A comparison with a missing value is false, so its `not` is true."""

    not_: Annotated["Filter", Field(alias="not")]


# No member has these names: pydantic puts tags into the location of an error.
_TAGS = {"all": "all of", "any": "any of", "not": "not of"}


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return next((tag for member, tag in _TAGS.items() if member in value), "comparison")
    shapes: dict[type, str] = {AllParts: "all of", AnyParts: "any of", Not: "not of"}
    return shapes.get(type(value), "comparison")


Node = AllParts | AnyParts | Not | Comparison
Filter = Annotated[
    Annotated[AllParts, Tag("all of")]
    | Annotated[AnyParts, Tag("any of")]
    | Annotated[Not, Tag("not of")]
    | Annotated[Comparison, Tag("comparison")],
    Discriminator(_shape),
]

for model in (AllParts, AnyParts, Not):
    model.model_rebuild()


def resolve(node: Node | None, card: Card, at: str) -> Condition | None:
    """The filter as a Condition over the card's columns; `at` is its JSON pointer in the body."""
    if node is None:
        return None
    if _size(node, 1) > NODES_MAX:
        rule = f"a filter may have at most {NODES_MAX} parts, in at most {DEPTH_MAX} levels"
        raise Invalid.field(at, rule)
    if _values(node) > LIST_MAX:
        raise Invalid.field(
            at, f"the lists of a filter may have at most {LIST_MAX} values together"
        )
    return _resolve(node, card, at)


def _size(node: Node, depth: int) -> int:
    if depth > DEPTH_MAX:
        return NODES_MAX + 1
    match node:
        case AllParts():
            return 1 + sum(_size(part, depth + 1) for part in node.all)
        case AnyParts():
            return 1 + sum(_size(part, depth + 1) for part in node.any)
        case Not():
            return 1 + _size(node.not_, depth + 1)
        case Comparison():
            return 1


def _values(node: Node) -> int:
    match node:
        case AllParts():
            return sum(map(_values, node.all))
        case AnyParts():
            return sum(map(_values, node.any))
        case Not():
            return _values(node.not_)
        case Comparison():
            return len(node.value) if isinstance(node.value, tuple) else 0


def _resolve(node: Node, card: Card, at: str) -> Condition:
    match node:
        case AllParts():
            return AllOf(
                tuple(_resolve(part, card, f"{at}/all/{i}") for i, part in enumerate(node.all))
            )
        case AnyParts():
            return AnyOf(
                tuple(_resolve(part, card, f"{at}/any/{i}") for i, part in enumerate(node.any))
            )
        case Not():
            return Negation(_resolve(node.not_, card, f"{at}/not"))
        case Comparison():
            return _comparison(node, card, at)


def _comparison(node: Comparison, card: Card, at: str) -> Condition:
    column = declared(card, node.column, f"{at}/column")
    value_at = f"{at}/value"
    match node.op:
        case "is_null":
            if node.value is False:
                return Negation(IsMissing(column.name))
            if node.value is not None and node.value is not True:
                raise Invalid.field(value_at, "is_null takes no value, or true, or false")
            return IsMissing(column.name)
        case "in":
            if not isinstance(node.value, tuple):
                raise Invalid.field(value_at, "in takes a list of values")
            return OneOf(
                column.name,
                tuple(typed(column, v, f"{value_at}/{i}") for i, v in enumerate(node.value)),
            )
        case "between":
            if not isinstance(node.value, tuple) or len(node.value) != 2:
                raise Invalid.field(value_at, "between takes two values: [from, to], both included")
            _must_be_ordered(column, at)
            low, high = (typed(column, v, f"{value_at}/{i}") for i, v in enumerate(node.value))
            return AllOf((Compare(column.name, ">=", low), Compare(column.name, "<=", high)))
        case sign:
            if node.value is None or isinstance(node.value, tuple):
                raise Invalid.field(value_at, f"{sign} takes one value")
            if sign not in ("==", "!="):
                _must_be_ordered(column, at)
            return Compare(column.name, sign, typed(column, node.value, value_at))


def _must_be_ordered(column: Column, at: str) -> None:
    if isinstance(column, CategoryColumn | BooleanColumn | TextColumn):
        raise Invalid.field(f"{at}/op", f"a {column.type} column has no order: use ==, != or in")


def typed(column: Column, value: WireScalar, at: str) -> Scalar:
    match column:
        case IntegerColumn() | NumberColumn():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise Invalid.field(at, "must be a number, as in the column")
            if not abs(value) <= 1e18:
                raise Invalid.field(at, "must be a number between -1e18 and 1e18")
            return value
        case CategoryColumn():
            if not isinstance(value, str) or value not in column.known:
                near = did_you_mean(value, column.values)
                raise Invalid.field(
                    at, f"must be one of the categories on the dataset's card{near}"
                )
            return value
        case BooleanColumn():
            if not isinstance(value, bool):
                raise Invalid.field(at, "must be true or false")
            return value
        case DateColumn():
            return typed_day(value, at)
        case TextColumn():
            if not isinstance(value, str) or not column.could_hold(value):
                raise Invalid.field(
                    at,
                    f"must be a text of 1 to {column.length_max} characters, without control "
                    "characters, with single spaces between words and none at the ends",
                )
            return value


def typed_day(value: object, at: str) -> datetime.date:
    try:
        if isinstance(value, str):
            return day(value)
    except ValueError:
        pass
    raise Invalid.field(at, "must be a date written YYYY-MM-DD")


def declared(card: Card, name: str, at: str) -> Column:
    column = card.column(name)
    if column is None:
        names = [known.name for known in card.columns]
        rule = no_such("column", name, names, "a column that the dataset's card declares")
        raise Invalid.field(at, rule)
    return column
