"""Graph counts: the number of triangles, and the most neighbours that two nodes share.

The engine selects and cleans the edges, `neighbours.py` counts. Joins would look at every two
neighbours of a node: for a node with 50,000 neighbours that is a thousand million pairs.
"""

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
from sqlalchemy import BigInteger, Select, column, func, select

from app.engines.neighbours import count_neighbours
from app.engines.sql.conditions import condition_sql
from app.engines.sql.dialects import Statement
from app.engines.sql.layout import Layout
from app.queries.tally import GraphCounts, GraphCountsRequest

# Nodes are numbered from 0 among those that have an edge.
_EDGES = """
WITH chosen AS MATERIALIZED ({chosen}),
placed AS MATERIALIZED (
    SELECT node, CAST(row_number() OVER (ORDER BY node) - 1 AS INTEGER) AS place
    FROM (SELECT one AS node FROM chosen UNION SELECT other FROM chosen)
)
SELECT a.place AS one, b.place AS other
FROM chosen JOIN placed AS a ON one = a.node JOIN placed AS b ON other = b.node
"""
EDGES_MAX = 1 << 24  # about 100 bytes each in memory
BATCH = 1 << 16
# DuckDB loses an interruption between two statements. It notices one between two rows of an open
# result at the next chunk.
_PULSE = "SELECT range FROM range(1000000000000)"
_CHUNK = 2048


def count_graph(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, request: GraphCountsRequest
) -> GraphCounts:
    # Count first: with a LIMIT instead, DuckDB 2.0.0 hangs in ten tries of twelve.
    size = edge_count(layout, request)
    count_row = cursor.execute(size.text, size.parameters).fetchone()
    must_be_held(None if count_row is None else count_row[0])
    chosen = layout.written(_chosen(layout, request))
    edges = cursor.execute(_EDGES.format(chosen=chosen.text), chosen.parameters).fetchnumpy()
    pulse = cursor.execute(_PULSE)
    try:
        return count_neighbours(edges["one"], edges["other"], lambda: pulse.fetchmany(_CHUNK))
    finally:
        cursor.execute("SELECT 1")  # closes the open result


def count_edges(batches: Iterator[list[Any]], beat: Callable[[], object]) -> GraphCounts:
    """Count a graph whose edges come in batches."""
    parts = [np.array(batch, dtype=np.int64) for batch in batches]
    edges = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)
    _, places = np.unique(edges, return_inverse=True)
    one, other = places.reshape(edges.shape).astype(np.int32).T
    return count_neighbours(one, other, beat)


def edge_count(layout: Layout, request: GraphCountsRequest) -> Statement:
    chosen = _chosen(layout, request).subquery("chosen")
    return layout.written(select(func.count()).select_from(chosen))


def all_edges(layout: Layout, request: GraphCountsRequest) -> Statement:
    return layout.written(_chosen(layout, request))


def must_be_held(count: int | None) -> None:
    if count is None or count > EDGES_MAX:
        raise MemoryError("the graph has more edges than fit in memory")


def _chosen(layout: Layout, request: GraphCountsRequest) -> Select[*tuple[Any, ...]]:
    """Edges that meet the condition, as `one` and `other`."""
    one, other = (column(layout.value(name), BigInteger()) for name in request.ends)
    statement = select(one.label("one"), other.label("other")).select_from(layout.rows)
    if request.where is not None:
        statement = statement.where(condition_sql(request.where, layout))
    return statement
