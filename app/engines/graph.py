"""An EdgeTally: how many triangles, and the most neighbours that two nodes have in common.

The engine selects and cleans the edges, `neighbours.py` counts. Not by joins: a join looks at every
two neighbours of a node, which of a node of 50,000 is a thousand million pairs.
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

# Nodes as places from 0 among those that have an edge.
_EDGES = """
WITH chosen AS MATERIALIZED ({chosen}),
placed AS MATERIALIZED (
    SELECT node, CAST(row_number() OVER (ORDER BY node) - 1 AS INTEGER) AS place
    FROM (SELECT one AS node FROM chosen UNION SELECT other FROM chosen)
)
SELECT a.place AS one, b.place AS other
FROM chosen JOIN placed AS a ON one = a.node JOIN placed AS b ON other = b.node
"""
EDGES_MAX = 1 << 24  # of about 100 bytes each in memory
BATCH = 1 << 16
# An interruption between two statements is lost, but one between two rows of an open result is
# heard at the next of its chunks.
_PULSE = "SELECT range FROM range(1000000000000)"
_CHUNK = 2048


def count_graph(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, wanted: GraphCountsRequest
) -> GraphCounts:
    # Asked first: with a LIMIT in its place DuckDB 2.0.0 stands still in ten tries of twelve.
    size = edge_count(layout, wanted)
    found = cursor.execute(size.text, size.parameters).fetchone()
    must_be_held(None if found is None else found[0])
    chosen = layout.written(_chosen(layout, wanted))
    edges = cursor.execute(_EDGES.format(chosen=chosen.text), chosen.parameters).fetchnumpy()
    pulse = cursor.execute(_PULSE)
    try:
        return count_neighbours(edges["one"], edges["other"], lambda: pulse.fetchmany(_CHUNK))
    finally:
        cursor.execute("SELECT 1")  # which closes the result


def count_edges(batches: Iterator[list[Any]], beat: Callable[[], object]) -> GraphCounts:
    """The same, of edges that come some at a time."""
    parts = [np.array(batch, dtype=np.int64) for batch in batches]
    edges = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)
    _, places = np.unique(edges, return_inverse=True)
    one, other = places.reshape(edges.shape).astype(np.int32).T
    return count_neighbours(one, other, beat)


def edge_count(layout: Layout, wanted: GraphCountsRequest) -> Statement:
    chosen = _chosen(layout, wanted).subquery("chosen")
    return layout.written(select(func.count()).select_from(chosen))


def all_edges(layout: Layout, wanted: GraphCountsRequest) -> Statement:
    return layout.written(_chosen(layout, wanted))


def must_be_held(count: int | None) -> None:
    if count is None or count > EDGES_MAX:
        raise MemoryError("more edges than are held")


def _chosen(layout: Layout, wanted: GraphCountsRequest) -> Select[*tuple[Any, ...]]:
    """The edges that meet the condition, as `one` and `other`."""
    one, other = (column(layout.value(name), BigInteger()) for name in wanted.ends)
    statement = select(one.label("one"), other.label("other")).select_from(layout.rows)
    if wanted.where is not None:
        statement = statement.where(condition_sql(wanted.where, layout))
    return statement
