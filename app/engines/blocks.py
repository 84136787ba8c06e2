"""A BlockTally as one SQL statement.

Rows that have the same value are one as good as the other, so they are numbered in any order: which
values a block holds depends on how often each value is there, and not on how rows are stored. The
block is decided by an MD5 of seed, value and number, so that every engine puts it in the same one.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    String,
    Subquery,
    bindparam,
    case,
    cast,
    column,
    func,
    select,
)

from app.engines.conditions import condition_sql
from app.engines.dialects import (
    ExactSum,
    Quotient,
    Statement,
    Wide,
    WideQuotient,
    constant,
    hash_number,
    quoted,
)
from app.engines.layout import Layout
from app.queries.statistics import BlockTally


def render_blocks(layout: Layout, wanted: BlockTally, seed: str) -> Statement:
    placed = _placed(layout, wanted, seed)
    return layout.written(_ranks(placed, wanted) if wanted.ranks else _sums(placed, wanted))


def _placed(layout: Layout, wanted: BlockTally, seed: str) -> Subquery:
    """Each value v, in steps, and its block."""
    steps: ColumnElement[int] = column(layout.steps(wanted.column), BigInteger())
    chosen = select(steps.label("v")).select_from(layout.rows).where(steps.is_not(None))
    if wanted.where is not None:
        chosen = chosen.where(condition_sql(wanted.where, layout))
    k = func.row_number().over(partition_by=column("v"), order_by=column("v")).label("k")
    numbered = select(column("v"), k).select_from(chosen.subquery("chosen")).subquery("numbered")
    keyed = [cast(bindparam("seed", seed, unique=True), String()), quoted("|")]
    keyed += [cast(column("v"), String()), quoted("|"), cast(column("k"), String())]
    block = hash_number(func.concat(*keyed)) % constant(wanted.blocks)
    return (
        select(column("v", BigInteger()), cast(block, BigInteger()).label("block"))
        .select_from(numbered)
        .subquery("placed")
    )


def _sums(placed: Subquery, wanted: BlockTally) -> Select[*tuple[Any, ...]]:
    t = Quotient(placed.c.v - constant(wanted.low), constant(wanted.grain))
    squares = ExactSum(t * t) if wanted.squares else constant(0)
    return select(placed.c.block, func.count(), ExactSum(t), squares).group_by(placed.c.block)


def _ranks(placed: Subquery, wanted: BlockTally) -> Select[*tuple[Any, ...]]:
    block, v = placed.c.block, placed.c.v
    place = func.row_number().over(partition_by=block, order_by=v)
    n = func.count().over(partition_by=block)
    ranked = select(block, v, place.label("place"), cast(n, Wide()).label("n")).subquery("ranked")
    # The value at the rank min(n, max(1, ceil(a n / b))): of one row each, so the largest is it.
    values = [
        func.max(case((cast(ranked.c.place, Wide()) == _rank(ranked.c.n, a, b), ranked.c.v)))
        for a, b in wanted.ranks
    ]
    return select(ranked.c.block, *values).group_by(ranked.c.block)


def _rank(n: ColumnElement[Any], a: int, b: int) -> ColumnElement[Any]:
    up = cast(constant(a), Wide()) * n + cast(constant(b - 1), Wide())
    rank = WideQuotient(up, cast(constant(b), Wide()))
    return func.least(n, func.greatest(cast(constant(1), Wide()), rank))
