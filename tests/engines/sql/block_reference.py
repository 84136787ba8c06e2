"""A reference for blocks and their results in plain Python: slow, exact, independent of the SQL."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, Column, NumberColumn
from app.queries.block_tally import (
    Added,
    AtRanks,
    BlockCounts,
    BlockTally,
    Commonest,
    Given,
    Meets,
    RowReading,
    Steps,
    Trimmed,
)
from app.queries.tally import CategoryIndex, EqualsValue
from tests.engines.reference import fitted_row, holds, steps, whole

Readings = tuple[int, ...]
Row = dict[str, Any]
# Maps the rows that count, in table order, to their blocks.
Placing = Callable[[Sequence[tuple[Readings, Row]]], list[int]]


def read(card: Card, reading: RowReading, row: Row) -> int | None:
    """One reading of a row that fits the card; None if it is missing."""
    if isinstance(reading, Meets):
        return int(holds(reading.condition, row))
    value = row[reading.column]
    if isinstance(reading, EqualsValue):
        return int(value == reading.value)
    if value is None:
        return None
    column = card.column(reading.column)
    if isinstance(reading, CategoryIndex):
        if isinstance(column, CategoryColumn):
            return column.values.index(value)
        assert isinstance(column, BooleanColumn)
        return int(value)
    if isinstance(reading, Steps):
        assert column is not None
        return steps(column, value)
    return whole(card, reading, row)


def by_readings(blocks: int, seed: str) -> Placing:
    """Place the k-th row with equal readings by a hash of seed, readings and k."""

    def placed(rows: Sequence[tuple[Readings, Row]]) -> list[int]:
        seen = Counter[Readings]()
        placed_blocks = []
        for readings, _ in rows:
            seen[readings] += 1
            placed_blocks.append(_hashed(seed, *(readings or (0,)), seen[readings]) % blocks)
        return placed_blocks

    return placed


def by_lot(card: Card, table: Sequence[Row], blocks: int, seed: str, name: str) -> Placing:
    """Place rows by the block hash of their person, who is in the column of that name.

    All rows of the person count, even those that the filter excludes. The row with the smallest
    first half of its hash decides by the other half.
    """
    lots: dict[object, tuple[int, int]] = {}
    for raw in table:
        row = fitted_row(card, raw)
        texts = [
            "~" if row[each.name] is None else _shown(each, row[each.name]) for each in card.columns
        ]
        drawn = _halves(seed, *texts, raw[name])
        lots[raw[name]] = min(drawn, lots.get(raw[name], drawn))
    return lambda rows: [lots[row[name]][1] % blocks for _, row in rows]


def by_person(blocks: int, seed: str, name: str) -> Placing:
    """Place rows by a hash of seed and person, which is as good as any block hash."""
    return lambda rows: [_hashed(seed, row[name]) % blocks for _, row in rows]


def _shown(column: Column, value: Any) -> str:
    """The stored form of a value."""
    if value is None:
        return "~"
    match column:
        case CategoryColumn():
            return str(column.values.index(value))
        case BooleanColumn():
            return str(value).lower()
        case NumberColumn():
            return str(steps(column, value))
    return str(value)


def _hashed(*parts: object) -> int:
    return _halves(*parts)[0]


def _halves(*parts: object) -> tuple[int, int]:
    """Fifteen digits of each half of an MD5, reversed."""
    digits = hashlib.md5("|".join(map(str, parts)).encode()).hexdigest()
    return int(digits[14::-1], 16), int(digits[30:15:-1], 16)


def held(
    card: Card, rows: Sequence[Row], tally: BlockTally, placing: Placing
) -> dict[int, list[Readings]]:
    """The readings of each block's rows."""
    counted: list[tuple[Readings, Row]] = []
    for raw in rows:
        row = fitted_row(card, raw)
        numbers = [read(card, reading, row) for reading in tally.readings]
        if holds(tally.where, row) and None not in numbers:
            counted.append((tuple(number for number in numbers if number is not None), raw))
    blocks = defaultdict(list)
    for block, (readings, _) in zip(placing(counted), counted, strict=True):
        blocks[block].append(readings)
    return dict(blocks)


def result_of(what: Given, rows: list[Readings]) -> tuple[int, ...]:
    n = len(rows)
    match what:
        case AtRanks(shares):
            values = sorted(readings[0] for readings in rows)
            return tuple(values[min(n, max(1, -(-a * n // b))) - 1] for a, b in shares)
        case Trimmed((a, b)):
            values = sorted(readings[0] for readings in rows)
            cut = n * a // b
            return n, sum(values[cut : n - cut])
        case Added(products):
            return n, *(
                sum(prod(readings[i] for i in places) for readings in rows) for places in products
            )
        case Commonest():
            votes = Counter(readings[0] for readings in rows)
            return (min(votes, key=lambda code: (-votes[code], code)),)


def block_reference(
    card: Card, rows: Sequence[Row], wanted: BlockTally, placing: Placing
) -> BlockCounts:
    blocks = held(card, rows, wanted, placing)
    return sorted((block, *result_of(wanted.given, each)) for block, each in blocks.items())
