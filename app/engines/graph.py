"""An EdgeTally in SQL: how many triangles, and the most neighbours that two nodes have in common.

Nodes are numbered by falling degree, so that few edges go from a node to others before it. A
triangle is found once, at the one of its nodes that is last: with m edges no node has more than
sqrt(2 m) before it, and m sqrt(2 m) pairs are looked at, at most.

Two nodes have no more common neighbours than either has neighbours. So the FIRST nodes, of the
largest degrees, are looked at for a number c that some pair reaches, and then all nodes of more
than c neighbours: no other pair can have more. Both counts are exact.

Temporary tables are this cursor's own, and go to its directory if memory does not hold them.
"""

import duckdb
from sqlalchemy import BigInteger, column, select

from app.engines.conditions import condition_sql
from app.engines.dialects import Statement
from app.engines.layout import Layout
from app.queries.statistics import EdgeTally, GraphCounts

FIRST = 512

# Numbers from 1; an edge goes from its node that is last to the one that is first.
EDGES = """
WITH chosen AS ({chosen}),
degrees AS (
    SELECT node, count(*) AS degree
    FROM (SELECT one AS node FROM chosen UNION ALL SELECT other FROM chosen) AS ends GROUP BY node
),
numbered AS (
    SELECT node, degree,
        CAST(row_number() OVER (ORDER BY degree DESC, node) AS INTEGER) AS number
    FROM degrees
)
SELECT greatest(a.number, b.number) AS last, least(a.number, b.number) AS first,
    least(a.degree, b.degree) AS last_degree, greatest(a.degree, b.degree) AS first_degree
FROM chosen JOIN numbered AS a ON one = a.node JOIN numbered AS b ON other = b.node
"""
BOTH_WAYS = """
SELECT last AS middle, first AS node, first_degree AS degree FROM edges
UNION ALL SELECT first, last, last_degree FROM edges
"""
TRIANGLES = """
SELECT count(*) FROM edges AS a
JOIN edges AS b ON a.last = b.last AND a.first < b.first
JOIN edges AS c ON c.last = b.first AND c.first = a.first
"""
COMMON = """
WITH ends AS (SELECT middle, node FROM joined WHERE {which})
SELECT coalesce(max(size), 0) FROM (
    SELECT count(*) AS size FROM ends AS a
    JOIN ends AS b ON a.middle = b.middle AND a.node < b.node GROUP BY a.node, b.node
) AS pairs
"""


def count_graph(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, wanted: EdgeTally
) -> GraphCounts:
    chosen = chosen_edges(layout, wanted)
    try:
        edges = f"CREATE OR REPLACE TEMP TABLE edges AS {EDGES.format(chosen=chosen.text)}"
        cursor.execute(edges, chosen.parameters)
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE joined AS {BOTH_WAYS}")
        triangles = _number(cursor, TRIANGLES)
        reached = _number(cursor, COMMON.format(which=f"node <= {FIRST:d}"))
        more = _number(cursor, COMMON.format(which=f"degree > {reached:d}"))
        return GraphCounts(triangles, max(reached, more))
    finally:
        cursor.execute("DROP TABLE IF EXISTS joined")
        cursor.execute("DROP TABLE IF EXISTS edges")


def chosen_edges(layout: Layout, wanted: EdgeTally) -> Statement:
    """The edges that meet the condition, as `one` and `other`."""
    one, other = (column(layout.value(name), BigInteger()) for name in wanted.ends)
    statement = select(one.label("one"), other.label("other")).select_from(layout.rows)
    if wanted.where is not None:
        statement = statement.where(condition_sql(wanted.where, layout))
    return layout.written(statement)


def _number(cursor: duckdb.DuckDBPyConnection, text: str) -> int:
    found = cursor.execute(text).fetchone()
    if found is None or type(found[0]) is not int:
        raise TypeError("a count is a whole number")
    return found[0]
