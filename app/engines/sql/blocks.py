"""A BlockTally as one SQL statement.

Rows with the same readings are interchangeable, so they are numbered in any order. A block's
content depends on how often readings occur, and not on how rows are stored. An MD5 of seed,
readings and number selects the block, so every engine puts a row in the same one. If a person may
have several rows, the person's lot selects the block of all of them (`layout.py`).
"""

import operator
from functools import reduce
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    String,
    Subquery,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    select,
    true,
)

from app.engines.hash_functions import HashBitsLow
from app.engines.sql.conditions import condition_sql, stored_column
from app.engines.sql.dialects import ExactSum, Statement, Wide, WideQuotient, constant, quoted
from app.engines.sql.layout import BLOCK_HASH, Layout
from app.engines.sql.tally_statement import factor_sql
from app.queries.block_tally import (
    Added,
    AtRanks,
    BlockTally,
    Commonest,
    Given,
    Meets,
    RowReading,
    Steps,
    Trimmed,
)
from app.queries.tally import CategoryIndex


def render_blocks(layout: Layout, tally: BlockTally, seed: str) -> Statement:
    return layout.written(_found(_placed(layout, tally, seed), tally.given))


def _found(placed: Subquery, statistic: Given) -> Select[*tuple[Any, ...]]:
    match statistic:
        case AtRanks():
            return _at_ranks(placed, statistic)
        case Trimmed():
            return _trimmed(placed, statistic)
        case Added():
            return _added(placed, statistic)
        case Commonest():
            return _commonest(placed)


def _placed(layout: Layout, tally: BlockTally, seed: str) -> Subquery:
    """Readings r0, r1, ... of each row that counts, and its block."""
    made = [_reading(reading, layout) for reading in tally.readings] or [constant(0)]
    names = [f"r{i}" for i in range(len(made))]
    read = [reading.label(name) for name, reading in zip(names, made, strict=True)]
    lot: list[ColumnElement[Any]] = [column(BLOCK_HASH)] if tally.persons else []
    chosen = select(*read, *lot).select_from(layout.rows)
    if tally.where is not None:
        chosen = chosen.where(condition_sql(tally.where, layout))
    readings: list[ColumnElement[Any]] = [column(name, BigInteger()) for name in names]
    decides: ColumnElement[Any] = column(BLOCK_HASH, BigInteger())
    rows = chosen.subquery("chosen")
    present = and_(true(), *(column(name).is_not(None) for name in names))
    if not tally.persons:
        k = func.row_number().over(partition_by=readings, order_by=readings).label("k")
        rows = select(*readings, k).select_from(rows).where(present).subquery("numbered")
        decides = HashBitsLow(_keyed([*readings, column("k")], seed))
    block = cast(decides % constant(tally.blocks), BigInteger()).label("block")
    return select(*readings, block).select_from(rows).where(present).subquery("placed")


def _keyed(numbers: list[ColumnElement[Any]], seed: str) -> ColumnElement[Any]:
    keyed: list[ColumnElement[Any]] = [cast(bindparam("seed", seed, unique=True), String())]
    for each in numbers:
        keyed += [quoted("|"), cast(each, String())]
    return func.concat(*keyed)


def _reading(reading: RowReading, layout: Layout) -> ColumnElement[Any]:
    match reading:
        case Steps():
            return cast(column(layout.steps(reading.column), BigInteger()), BigInteger())
        case Meets():
            met = condition_sql(reading.condition, layout)
            return cast(case((met, constant(1)), else_=constant(0)), BigInteger())
        case CategoryIndex():
            return cast(cast(stored_column(layout, reading.column), Integer()), BigInteger())
        case _:
            return cast(factor_sql(reading, layout), BigInteger())


def _added(placed: Subquery, added: Added) -> Select[*tuple[Any, ...]]:
    sums = [
        ExactSum(reduce(operator.mul, (placed.c[f"r{i}"] for i in product)))
        for product in added.products
    ]
    return select(placed.c.block, func.count(), *sums).group_by(placed.c.block)


def _ranked(placed: Subquery) -> Subquery:
    """The first reading v, its rank in its block, and the number of rows in the block."""
    block, v = placed.c.block, placed.c.r0
    rank = func.row_number().over(partition_by=block, order_by=v)
    n = func.count().over(partition_by=block)
    return select(
        block,
        v.label("v"),
        cast(rank, Wide()).label("place"),
        cast(n, Wide()).label("n"),
    ).subquery("ranked")


def _at_ranks(placed: Subquery, at_ranks: AtRanks) -> Select[*tuple[Any, ...]]:
    ranked = _ranked(placed)
    # Each rank belongs to one row, so the maximum is its value.
    values = [
        func.max(case((ranked.c.place == _rank(ranked.c.n, a, b), ranked.c.v)))
        for a, b in at_ranks.shares
    ]
    return select(ranked.c.block, *values).group_by(ranked.c.block)


def _rank(n: ColumnElement[Any], a: int, b: int) -> ColumnElement[Any]:
    up = _wide(a) * n + _wide(b - 1)
    return func.least(n, func.greatest(_wide(1), WideQuotient(up, _wide(b))))


def _trimmed(placed: Subquery, trimmed: Trimmed) -> Select[*tuple[Any, ...]]:
    ranked = _ranked(placed)
    n, rank = ranked.c.n, ranked.c.place
    a, b = trimmed.share
    cut = WideQuotient(_wide(a) * n, _wide(b))
    left = case((and_(rank > cut, rank <= n - cut), ranked.c.v))
    return select(ranked.c.block, func.count(), ExactSum(left)).group_by(ranked.c.block)


def _commonest(placed: Subquery) -> Select[*tuple[Any, ...]]:
    block, v = placed.c.block, placed.c.r0
    counted = select(block, v.label("v"), func.count().label("n")).group_by(block, v)
    counts = counted.subquery("counts")
    order = func.row_number().over(
        partition_by=counts.c.block, order_by=(counts.c.n.desc(), counts.c.v)
    )
    best = select(counts.c.block, counts.c.v, order.label("place")).subquery("best")
    return select(best.c.block, best.c.v).where(best.c.place == constant(1))


def _wide(number: int) -> ColumnElement[Any]:
    return cast(constant(number), Wide())
