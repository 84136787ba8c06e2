"""Public candidates for a number or a day: a list, a grid, or what the column's bounds suggest.

Candidates come from the question and the card, never from rows: which values are there would tell.
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
GRID_COUNT = 1001  # of a column with more values than are listed
LISTED_MAX = 10_001

OrderedColumn = IntegerColumn | NumberColumn | DateColumn
Wire = int | float | str


class Grid(BaseModel):
    """So many candidates, evenly spaced from low to high, both among them."""

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
        raise Invalid.field(f"{POINTER}/column", "an integer, number or date column")
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
            raise Invalid.field(at, f"from {least} up, which the column's bounds leave out")
        return _suggested(column, low)
    if isinstance(sent, Grid):
        low, high = typed(sent.low, f"{at}/low"), typed(sent.high, f"{at}/high")
        if not low < high:
            raise Invalid.field(f"{at}/high", "greater than low")
        if not isinstance(column, NumberColumn) and _whole_span(low, high) + 1 < sent.count:
            raise Invalid.field(f"{at}/count", "no more than there are values from low to high")
        _must_be_within(column, [low], f"{at}/low", least)
        _must_be_within(column, [high], f"{at}/high", least)
        values = _grid(low, high, sent.count)
        if not _increase(values):
            raise Invalid.field(f"{at}/count", "so many that values would fall together")
        return values
    values = [typed(value, f"{at}/{i}") for i, value in enumerate(sent)]
    if not _increase(values):
        raise Invalid.field(at, "candidates increase from first to last, each listed once")
    _must_be_within(column, values, at, least)
    return values


def resolve_edges(sent: Intervals, column: OrderedColumn) -> Sequence[Any]:
    """Increasing values of the column's type, within its bounds."""
    at = f"{POINTER}/candidates/edges"
    typed = _typed(column)
    edges = [typed(edge, f"{at}/{i}") for i, edge in enumerate(sent.edges)]
    if not _increase(edges):
        raise Invalid.field(at, "edges increase from first to last")
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
        raise Invalid.field(at, "a whole number, as the column holds")
    return int(value)


def _number(value: Wire, at: str) -> float:
    if isinstance(value, str) or not abs(value) <= 1e18:
        raise Invalid.field(at, "a number, as the column holds")
    return float(value) + 0.0  # of two zeros the positive one


def _increase(values: Sequence[Any]) -> bool:
    return all(map(operator.lt, values, values[1:]))


def _must_be_within(
    column: OrderedColumn, values: Sequence[Any], at: str, least: int | None
) -> None:
    """Of increasing values the first and the last tell for all."""
    ends = {0: values[0], len(values) - 1: values[-1]}
    for place, value in ends.items():
        pointer = at if len(values) == 1 else f"{at}/{place}"
        if not column.low <= value <= column.high:
            raise Invalid.field(pointer, "within the column's bounds")
        if least is not None and value < least:
            raise Invalid.field(pointer, f"at least {least}")


def _suggested(column: OrderedColumn, low: Any) -> Sequence[Any]:
    """Every value where there are few, and otherwise a grid between the bounds."""
    if column.high == low:
        return [low]
    count = GRID_COUNT
    if not isinstance(column, NumberColumn):
        values = _whole_span(low, column.high) + 1
        count = values if values <= LISTED_MAX else GRID_COUNT
    grid = _grid(low, column.high, count)
    if not _increase(grid):
        raise Invalid.field(f"{POINTER}/candidates", "needed: the bounds are too narrow for a grid")
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
