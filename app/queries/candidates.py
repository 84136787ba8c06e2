"""Public candidates for a number or a day: a list, a grid, or a default from the column's bounds.

Candidates come from the query and the card, never from rows: which values occur is private.
"""

import datetime
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from app.data.card import Card
from app.data.columns import DateColumn, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import POINTER, declared, typed_day

CANDIDATES_MAX = 100_000
GRID_COUNT = 1001  # candidates for a column with more than LISTED_MAX values
LISTED_MAX = 10_001

OrderedColumn = IntegerColumn | NumberColumn | DateColumn
Wire = int | float | str


class Grid(BaseModel):
    """`count` candidates, evenly spaced from low to high, both included."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    low: Wire
    high: Wire
    count: Annotated[int, Field(ge=2, le=CANDIDATES_MAX)]


Candidates = Annotated[
    Annotated[
        tuple[Wire, ...], Field(min_length=1, max_length=CANDIDATES_MAX), Tag("a list of values")
    ]
    | Annotated[Grid, Tag("a grid of values")],
    Discriminator(
        lambda sent: "a grid of values" if isinstance(sent, dict | Grid) else "a list of values"
    ),
    BeforeValidator(lambda sent: tuple(sent) if isinstance(sent, list) else sent),
]


class Intervals(BaseModel):
    """The intervals between increasing edges, each with its lower edge, the last with both."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    edges: Annotated[
        tuple[Wire, ...],
        Field(min_length=2, max_length=CANDIDATES_MAX + 1),
        BeforeValidator(lambda sent: tuple(sent) if isinstance(sent, list) else sent),
    ]


def _outcome_kind(sent: object) -> str:
    if isinstance(sent, Intervals) or (isinstance(sent, dict) and "edges" in sent):
        return "intervals between edges"
    return "a grid of values" if isinstance(sent, dict | Grid) else "a list of values"


CandidatesOrIntervals = Annotated[
    Annotated[
        tuple[Wire, ...], Field(min_length=1, max_length=CANDIDATES_MAX), Tag("a list of values")
    ]
    | Annotated[Grid, Tag("a grid of values")]
    | Annotated[Intervals, Tag("intervals between edges")],
    Discriminator(_outcome_kind),
    BeforeValidator(lambda sent: tuple(sent) if isinstance(sent, list) else sent),
]


def ordered_column(card: Card, name: str) -> OrderedColumn:
    column = declared(card, name, f"{POINTER}/column")
    if not isinstance(column, OrderedColumn):
        raise Invalid.field(f"{POINTER}/column", "must be an integer, number or date column")
    return column


def resolve_candidates(
    sent: tuple[Wire, ...] | Grid | None, column: OrderedColumn, least: int | None = None
) -> Sequence[Any]:
    """Increasing values of the column's type, within its bounds and not below `least`."""
    at = f"{POINTER}/candidates"
    typed = _typed(column)
    if sent is None:
        low: Any = column.low if least is None else max(column.low, typed(least, at))
        if column.high < low:
            raise Invalid.field(
                at, f"must be at least {least}, but the column's bounds are below it"
            )
        return _suggested(column, low)
    if isinstance(sent, Grid):
        low, high = typed(sent.low, f"{at}/low"), typed(sent.high, f"{at}/high")
        if not low < high:
            raise Invalid.field(f"{at}/high", "must be greater than low")
        if not isinstance(column, NumberColumn) and _whole_span(low, high) + 1 < sent.count:
            raise Invalid.field(
                f"{at}/count", "must be at most the number of values from low to high"
            )
        _must_be_within(column, [low], f"{at}/low", least)
        _must_be_within(column, [high], f"{at}/high", least)
        values = _grid(low, high, sent.count)
        if not _increase(values):
            raise Invalid.field(f"{at}/count", "too large: neighbouring values would be equal")
        return values
    values = [typed(value, f"{at}/{i}") for i, value in enumerate(sent)]
    if not _increase(values):
        raise Invalid.field(at, "candidates must increase from first to last, each listed once")
    _must_be_within(column, values, at, least)
    return values


def resolve_edges(sent: Intervals, column: OrderedColumn) -> Sequence[Any]:
    """Increasing values of the column's type, within its bounds."""
    at = f"{POINTER}/candidates/edges"
    typed = _typed(column)
    edges = [typed(edge, f"{at}/{i}") for i, edge in enumerate(sent.edges)]
    if not _increase(edges):
        raise Invalid.field(at, "edges must increase from first to last")
    _must_be_within(column, edges, at, None)
    return edges


def _typed(column: OrderedColumn) -> Callable[[Any, str], Any]:
    match column:
        case IntegerColumn():
            return _whole
        case NumberColumn():
            return _number
        case DateColumn():
            return typed_day


def _whole(value: Wire, at: str) -> int:
    if isinstance(value, str) or not abs(value) <= 1e18 or value != int(value):
        raise Invalid.field(at, "must be a whole number, as in the column")
    return int(value)


def _number(value: Wire, at: str) -> float:
    if isinstance(value, str) or not abs(value) <= 1e18:
        raise Invalid.field(at, "must be a number, as in the column")
    return float(value) + 0.0  # turns -0.0 into 0.0


def _increase(values: Sequence[Any]) -> bool:
    return all(map(operator.lt, values, values[1:]))


def _must_be_within(
    column: OrderedColumn, values: Sequence[Any], at: str, least: int | None
) -> None:
    """Check the first and the last of increasing values, which covers all of them."""
    ends = {0: values[0], len(values) - 1: values[-1]}
    for index, value in ends.items():
        pointer = at if len(values) == 1 else f"{at}/{index}"
        if not column.low <= value <= column.high:
            raise Invalid.field(pointer, "must be within the column's bounds")
        if least is not None and value < least:
            raise Invalid.field(pointer, f"must be at least {least}")


def _suggested(column: OrderedColumn, low: Any) -> Sequence[Any]:
    """Every value where there are few, otherwise a grid between the bounds."""
    if column.high == low:
        return [low]
    count = GRID_COUNT
    if not isinstance(column, NumberColumn):
        values = _whole_span(low, column.high) + 1
        count = values if values <= LISTED_MAX else GRID_COUNT
    grid = _grid(low, column.high, count)
    if not _increase(grid):
        raise Invalid.field(
            f"{POINTER}/candidates",
            "required: the column's bounds are too narrow for a default grid",
        )
    return grid


def _whole_span(low: Any, high: Any) -> int:
    span = high - low
    return span.days if isinstance(span, datetime.timedelta) else int(span)


def _grid(low: Any, high: Any, count: int) -> list[Any]:
    last = count - 1
    if isinstance(low, float):
        span = high - low
        return [low + span * i / last for i in range(last)] + [high]
    span = _whole_span(low, high)
    if isinstance(low, datetime.date):
        return [low + datetime.timedelta(span * i // last) for i in range(count)]
    return [low + span * i // last for i in range(count)]
