"""What blocks hold and give, in plain Python: slow, exact, and not made of the SQL."""

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
    Reading,
    Steps,
    Trimmed,
)
from app.queries.tally import CategoryIndex, EqualsValue
from tests.engines.reference import fitted_row, holds, steps, whole

Readings = tuple[int, ...]
Row = dict[str, Any]
# From the rows that count, in the order of the table, to the block of each.
Placing = Callable[[Sequence[tuple[Readings, Row]]], list[int]]


def read(card: Card, reading: Reading, row: Row) -> int | None:
    """One number of a row that fits the card; None if it is missing."""
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
    """The k-th row of the same readings, by a hash of seed, readings and k."""

    def placed(rows: Sequence[tuple[Readings, Row]]) -> list[int]:
        seen = Counter[Readings]()
        found = []
        for each, _ in rows:
            seen[each] += 1
            found.append(_hashed(seed, *(each or (0,)), seen[each]) % blocks)
        return found

    return placed


def by_lot(card: Card, table: Sequence[Row], blocks: int, seed: str, name: str) -> Placing:
    """By the lot of whose row it is, which the column of that name says: of all their rows, counted
    or not, the first by one half of its hash has it in the other half."""
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
    """By a hash of seed and whose row it is: as good a lot as any."""
    return lambda rows: [_hashed(seed, row[name]) % blocks for _, row in rows]


def _shown(column: Column, value: Any) -> str:
    """As it is stored."""
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
    """Fifteen digits of each half of an MD5, the last one first."""
    digits = hashlib.md5("|".join(map(str, parts)).encode()).hexdigest()
    return int(digits[14::-1], 16), int(digits[30:15:-1], 16)


def held(
    card: Card, rows: Sequence[Row], wanted: BlockTally, placing: Placing
) -> dict[int, list[Readings]]:
    """The readings of each block's rows."""
    counted: list[tuple[Readings, Row]] = []
    for raw in rows:
        row = fitted_row(card, raw)
        numbers = [read(card, each, row) for each in wanted.readings]
        if holds(wanted.where, row) and None not in numbers:
            counted.append((tuple(each for each in numbers if each is not None), raw))
    blocks = defaultdict(list)
    for block, (each, _) in zip(placing(counted), counted, strict=True):
        blocks[block].append(each)
    return dict(blocks)


def given(what: Given, rows: list[Readings]) -> tuple[int, ...]:
    n = len(rows)
    match what:
        case AtRanks(shares):
            values = sorted(each[0] for each in rows)
            return tuple(values[min(n, max(1, -(-a * n // b))) - 1] for a, b in shares)
        case Trimmed((a, b)):
            values = sorted(each[0] for each in rows)
            cut = n * a // b
            return n, sum(values[cut : n - cut])
        case Added(products):
            return n, *(sum(prod(each[i] for i in places) for each in rows) for places in products)
        case Commonest():
            votes = Counter(each[0] for each in rows)
            return (min(votes, key=lambda code: (-votes[code], code)),)


def block_reference(
    card: Card, rows: Sequence[Row], wanted: BlockTally, placing: Placing
) -> BlockCounts:
    blocks = held(card, rows, wanted, placing)
    return sorted((block, *given(wanted.given, each)) for block, each in blocks.items())
