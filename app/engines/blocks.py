"""A BlockTally as one SQL statement.

Rows that have the same value are one as good as the other, so they are numbered in any order: which
values a block holds depends on how often each value is there, and not on how rows are stored.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, column, select, table

from app.engines.conditions import condition_sql
from app.engines.layout import TABLE, Layout
from app.engines.sql import DuckDBDialect
from app.queries.statistics import BlockTally

_PLACED = """
WITH chosen AS ({chosen}),
numbered AS (SELECT v, row_number() OVER (PARTITION BY v) AS k FROM chosen),
placed AS (
    SELECT v, CAST(hash(CAST(? AS VARCHAR), v, k) % {blocks:d} AS BIGINT) AS block FROM numbered
)
"""
_SUMS = """
SELECT block, count(*), sum((v - {low:d}) // {grain:d}), {squares} FROM placed GROUP BY block
"""
_SQUARES = "sum(((v - {low:d}) // {grain:d}) * ((v - {low:d}) // {grain:d}))"
_RANKS = """
SELECT block, {values} FROM (
    SELECT block, v, CAST(row_number() OVER (PARTITION BY block ORDER BY v) AS HUGEINT) AS place,
        CAST(count(*) OVER (PARTITION BY block) AS HUGEINT) AS n
    FROM placed
) GROUP BY block
"""


def render_blocks(layout: Layout, wanted: BlockTally, seed: str) -> tuple[str, list[Any]]:
    """The text and its parameters. Only whole numbers of ours are written into the text."""
    steps = column(layout.steps(wanted.column), BigInteger())
    conditions: list[ColumnElement[bool]] = [steps.is_not(None)]
    if wanted.where is not None:
        conditions.append(condition_sql(wanted.where, layout))
    statement = select(steps.label("v")).select_from(table(TABLE)).where(and_(*conditions))
    made = statement.compile(dialect=DuckDBDialect(), compile_kwargs={"render_postcompile": True})
    parameters = [made.params[name] for name in made.positiontup or ()]
    text = _PLACED.format(chosen=made, blocks=wanted.blocks)
    if wanted.ranks:
        text += _RANKS.format(values=", ".join(_at(a, b) for a, b in wanted.ranks))
    else:
        numbers = {"low": wanted.low, "grain": wanted.grain}
        squares = _SQUARES.format(**numbers) if wanted.squares else "0"
        text += _SUMS.format(squares=squares, **numbers)
    return text, [*parameters, seed]


def _at(a: int, b: int) -> str:
    """The value at the rank min(n, max(1, ceil(a n / b)))."""
    rank = f"least(n, greatest(1, ({a:d} * n + {b - 1:d}) // {b:d}))"
    return f"max(v) FILTER (WHERE place = {rank})"
