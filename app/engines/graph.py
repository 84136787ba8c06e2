"""An EdgeTally: how many triangles, and the most neighbours that two nodes have in common.

The engine selects and cleans the edges, `neighbours.py` counts. Not by joins: a join looks at every
two neighbours of a node, which of a node of 50,000 is a thousand million pairs.
"""

from typing import Any

import duckdb
from sqlalchemy import BigInteger, literal_column, select, table

from app.engines.conditions import condition_sql
from app.engines.layout import TABLE, Layout
from app.engines.neighbours import count_neighbours
from app.engines.sql import DuckDBDialect
from app.queries.statistics import EdgeTally, GraphCounts

# Asked first: with a LIMIT in its place DuckDB 2.0.0 stands still in ten tries of twelve.
_SIZE = "SELECT count(*) FROM ({chosen})"
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
# An interruption between two statements is lost, but one between two rows of an open result is
# heard at the next of its chunks.
_PULSE = "SELECT range FROM range(1000000000000)"
_CHUNK = 2048


def count_graph(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, wanted: EdgeTally
) -> GraphCounts:
    text, parameters = _chosen(layout, wanted)
    found = cursor.execute(_SIZE.format(chosen=text), parameters).fetchone()
    if found is None or found[0] > EDGES_MAX:
        raise MemoryError("more edges than are held")
    edges = cursor.execute(_EDGES.format(chosen=text), parameters).fetchnumpy()
    pulse = cursor.execute(_PULSE)
    try:
        return count_neighbours(edges["one"], edges["other"], lambda: pulse.fetchmany(_CHUNK))
    finally:
        cursor.execute("SELECT 1")  # which closes the result


def _chosen(layout: Layout, wanted: EdgeTally) -> tuple[str, list[Any]]:
    """The edges that meet the condition, as `one` and `other`."""
    one, other = (literal_column(layout.value(name), BigInteger()) for name in wanted.ends)
    statement = select(one.label("one"), other.label("other")).select_from(table(TABLE))
    if wanted.where is not None:
        statement = statement.where(condition_sql(wanted.where, layout))
    made = statement.compile(dialect=DuckDBDialect(), compile_kwargs={"render_postcompile": True})
    return str(made), [made.params[name] for name in made.positiontup or ()]
