"""Which interval a value falls in: [edge, next edge), the last one with its upper edge.

A few edges become a tree of comparisons, which touches each row a few times and nothing else. Many
edges become an ASOF join with the list of edges, because such a tree would be slow to run (one
thousand edges: four times slower than the join) and in the end too large to compile.
"""

import datetime
from collections.abc import Sequence
from typing import Any

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
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import FromClause, Join
from sqlalchemy.types import TypeEngine, UserDefinedType
from typing_extensions import override

from app.engines.conditions import stored_column
from app.engines.layout import Layout
from app.queries.statistics import ByEdges

TREE_EDGES_MAX = 64


class AsofJoin(Join):
    """Each row on the left with the one row on the right that is nearest below it."""

    inherit_cache = False


@compiles(AsofJoin)
def _asof_join(element: AsofJoin, compiler: SQLCompiler, **options: Any) -> str:
    options["asfrom"] = True
    left = compiler.process(element.left, **options)
    right = compiler.process(element.right, **options)
    assert element.onclause is not None
    options["asfrom"] = False
    return f"{left} ASOF JOIN {right} ON {compiler.process(element.onclause, **options)}"


class ListOf(UserDefinedType[list[Any]]):
    """A list bound as one parameter."""

    cache_ok = True

    def __init__(self, item: str) -> None:
        self.item = item

    @override
    def get_col_spec(self, **_: Any) -> str:
        return f"{self.item}[]"


def binned(
    rows: FromClause, grouping: ByEdges, layout: Layout, number: int
) -> tuple[FromClause, ColumnElement[int], ColumnElement[bool]]:
    """Rows to select from, the interval's place, and the condition to be in any interval."""
    days = isinstance(grouping.edges[0], datetime.date)
    kind: TypeEngine[Any] = Date() if days else Double()
    # Whole numbers are compared as doubles: bounds are within 2^53, so this is exact.
    stored = cast(stored_column(layout, grouping.column), kind)
    lows, last = grouping.edges[:-1], grouping.edges[-1]
    inside = and_(stored >= _bound(grouping.edges[0], kind), stored <= _bound(last, kind))
    if len(grouping.edges) <= TREE_EDGES_MAX:
        return rows, _tree(stored, lows, 0, kind), inside
    items = bindparam(None, list(lows), type_=ListOf("DATE" if days else "DOUBLE"), unique=True)
    edges = select(
        func.unnest(cast(items, items.type)).label("edge"),
        func.unnest(func.range(len(lows))).label("place"),
    ).subquery(f"edges{number}")
    joined = AsofJoin(rows, edges, stored >= edges.c.edge)
    return joined, cast(edges.c.place, Integer()), inside


def _tree(
    stored: ColumnElement[Any], lows: Sequence[Any], offset: int, kind: TypeEngine[Any]
) -> ColumnElement[int]:
    if len(lows) == 1:
        place: ColumnElement[int] = literal_column(str(offset), Integer())
        return place
    middle = len(lows) // 2
    return case(
        (stored < _bound(lows[middle], kind), _tree(stored, lows[:middle], offset, kind)),
        else_=_tree(stored, lows[middle:], offset + middle, kind),
    )


def _bound(edge: float | datetime.date, kind: TypeEngine[Any]) -> ColumnElement[Any]:
    return cast(bindparam(None, edge, type_=kind, unique=True), kind)
