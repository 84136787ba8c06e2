"""Interval (bin) of a value: [edge, next edge); the last interval includes its upper edge.

There are four methods with equal results:

- Evenly spaced edges, in DuckDB: a quotient where it is exact (`even_bins.py`).
- Other evenly spaced edges: an arithmetic guess, corrected by comparing with the guessed interval's
  edges.
- A few uneven edges: a tree of comparisons.
- Many uneven edges: DuckDB has an ASOF join with the list of edges, and PostgreSQL `width_bucket`.
  Spark counts the edges that are not above the value.

(Three million rows, 1,000 even edges: 0.08 s by guess, 0.5 s by ASOF join, 1.4 s by tree, 8 s by a
join on both edges.)
"""

import datetime
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import (
    Date,
    Double,
    Integer,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import FromClause, Join
from sqlalchemy.types import TypeEngine

from app.data.columns import IntegerColumn, NumberColumn
from app.engines.sql.conditions import stored_column
from app.engines.sql.dialects import Dialect, constant, scaled
from app.engines.sql.even_bins import Even, find_even
from app.engines.sql.layout import Layout
from app.engines.sql.lists import Kind, among, listed
from app.queries.tally import ByEdges

TREE_LEAVES_MAX = 64
GUESS_COUNT_MIN = 24  # below, a tree is as fast
GUESS_COUNT_MAX = 20_000  # above, the ASOF join is as fast, and checking the spacing takes time


class AsofJoin(Join):
    """Join each row on the left with the one row on the right that is nearest below it."""

    inherit_cache = False


@compiles(AsofJoin)
def _asof_join(element: AsofJoin, compiler: SQLCompiler, **options: Any) -> str:
    options["asfrom"] = True
    left = compiler.process(element.left, **options)
    right = compiler.process(element.right, **options)
    assert element.onclause is not None
    options["asfrom"] = False
    return f"{left} ASOF JOIN {right} ON {compiler.process(element.onclause, **options)}"


class PlaceAmong(FunctionElement[int]):
    """Number of values in a sorted list that are not above a value, minus one."""

    name = "place_among"
    type = Integer()
    inherit_cache = True


@compiles(PlaceAmong, "postgresql")
def _place_among_postgresql(element: PlaceAmong, compiler: SQLCompiler, **options: Any) -> str:
    value, edges = (compiler.process(part, **options) for part in element.clauses)
    return f"(width_bucket({value}, {edges}) - 1)"


@compiles(PlaceAmong, "spark")
def _place_among_spark(element: PlaceAmong, compiler: SQLCompiler, **options: Any) -> str:
    value, edges = (compiler.process(part, **options) for part in element.clauses)
    return f"(size(filter({edges}, edge -> edge <= {value})) - 1)"


def binned(
    rows: FromClause, grouping: ByEdges, layout: Layout, number: int
) -> tuple[FromClause, ColumnElement[int], ColumnElement[bool]]:
    """Rows to select from, the index of the bin, and the condition to be in any bin."""
    days = isinstance(grouping.edges[0], datetime.date)
    kind: TypeEngine[Any] = Date() if days else Double()
    # Integers are compared as doubles: bounds are within 2^53, so this is exact.
    stored = cast(stored_column(layout, grouping.column), kind)
    first, *_, last = grouping.edges
    inside = and_(stored >= _bound(first, kind), stored <= _bound(last, kind))
    if not days and GUESS_COUNT_MIN <= len(grouping.edges) - 1 <= GUESS_COUNT_MAX:
        numbers: tuple[Any, ...] = grouping.edges
        # Only for DuckDB: PostgreSQL raises an error if a quotient underflows to zero.
        even = find_even(numbers) if layout.dialect.name == "duckdb" else None
        if even is not None:
            return rows, *_by_quotient(stored, inside, grouping, even, layout)
    name = f"edges{number}"
    if not days and _evenly_spaced(grouping.edges):
        return *_by_guess(rows, stored, inside, grouping.edges, layout.dialect, name), inside
    lows = grouping.edges[:-1]
    if len(lows) <= TREE_LEAVES_MAX:
        return rows, _tree(stored, lows, 0, kind), inside
    places: tuple[Kind, Any] = ("day" if days else "double", lows)
    if layout.dialect.name != "duckdb":
        return rows, PlaceAmong(stored, among(layout.dialect, name, *places)), inside
    edges = listed(layout.dialect, name, edge=places, place=("whole", range(len(lows))))
    joined = AsofJoin(rows, edges, stored >= edges.c.edge)
    return joined, cast(edges.c.place, Integer()), inside


def _by_quotient(
    stored: ColumnElement[Any],
    inside: ColumnElement[bool],
    grouping: ByEdges,
    even: Even,
    layout: Layout,
) -> tuple[ColumnElement[int], ColumnElement[bool]]:
    declared = layout.column(grouping.column)
    assert isinstance(declared, IntegerColumn | NumberColumn)
    edges: Sequence[Any] = grouping.edges
    first, last = edges[0], edges[-1]
    bin_index = even.place(stored)
    if first <= declared.low and declared.high <= last:
        # All stored values are within the edges, so no comparison is needed.
        inside, top = stored.is_not(None), float(declared.high)
    else:
        # Guarded: outside the edges the index could overflow an integer, and an error that depends
        # on data would leak.
        bin_index, top = case((inside, bin_index)), last
    final = len(edges) - 2
    if even.places(np.array([top], dtype=np.float64))[0] > final:
        bin_index = func.least(
            bin_index, constant(final)
        )  # the upper edge belongs to the last interval
    return bin_index, inside


def _guess(value: float, edges: Sequence[Any]) -> int:
    return math.floor((value - float(edges[0])) * _spacing(edges))


def _spacing(edges: Sequence[Any]) -> float:
    return float((len(edges) - 1) / (edges[-1] - edges[0]))


def _evenly_spaced(edges: Sequence[Any]) -> bool:
    """True if the guess is off by at most one for every value.

    The guess is monotone in the value, so the smallest and the largest value of an interval bound
    it for all others. The engine computes it from the same doubles as this function.
    """
    count = len(edges) - 1
    if not GUESS_COUNT_MIN <= count <= GUESS_COUNT_MAX or not math.isfinite(_spacing(edges)):
        return False
    return _guess(edges[-1], edges) <= count and all(
        i - 1 <= _guess(edges[i], edges) and _guess(below, edges) <= i + 1
        for i in range(count)
        for below in [math.nextafter(edges[i + 1], -math.inf)]
    )


def _by_guess(
    rows: FromClause,
    stored: ColumnElement[Any],
    inside: ColumnElement[bool],
    edges: Sequence[Any],
    dialect: Dialect,
    name: str,
) -> tuple[FromClause, ColumnElement[int]]:
    above = stored - _bound(edges[0], Double())
    steps = scaled(above, partial(_bound, kind=Double()), _spacing(edges))
    # Guarded: outside the edges the guess could overflow an integer, and an error that depends on
    # data would leak.
    guess = case((inside, cast(func.floor(steps), Integer())))
    count = len(edges) - 1
    # The upper edge belongs to the last interval, which therefore has no upper end here. A guess
    # past the last interval is corrected to it.
    grid = listed(
        dialect,
        name,
        low=("double", [*edges[:-1], math.inf]),
        high=("double", [*edges[1:-1], math.inf, math.inf]),
        place=("whole", range(count + 1)),
    )
    correction = case((stored >= grid.c.high, 1), (stored < grid.c.low, -1), else_=0)
    return Join(rows, grid, guess == grid.c.place), grid.c.place + correction


def _tree(
    stored: ColumnElement[Any], lows: Sequence[Any], offset: int, kind: TypeEngine[Any]
) -> ColumnElement[int]:
    if len(lows) == 1:
        bin_index: ColumnElement[int] = literal_column(str(offset), Integer())
        return bin_index
    middle = len(lows) // 2
    return case(
        (stored < _bound(lows[middle], kind), _tree(stored, lows[:middle], offset, kind)),
        else_=_tree(stored, lows[middle:], offset + middle, kind),
    )


def _bound(edge: float | datetime.date, kind: TypeEngine[Any]) -> ColumnElement[Any]:
    return cast(bindparam(None, edge, type_=kind, unique=True), kind)
