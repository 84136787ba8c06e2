"""Make up rows from a card alone, to develop against for free: no value comes from the data."""

import datetime
import math
from typing import Any, Protocol

from app.data.card import Card, ColumnPerson
from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    IntegerColumn,
    NumberColumn,
    TextColumn,
)
from app.data.expressions import evaluate

# What made-up texts are made of: public, and the same for every dataset.
WORDS = (
    "alder", "ash", "aspen", "beech", "birch", "cedar", "cherry", "chestnut", "elder", "elm", "fir",
    "hawthorn", "hazel", "holly", "juniper", "larch", "lime", "maple", "oak", "pine", "poplar",
    "rowan", "spruce", "sycamore", "walnut", "willow", "yew",
)  # fmt: skip


class ColumnValues(Protocol):
    def below(self, bound: int) -> int: ...


def sample_rows(card: Card, count: int, choice: ColumnValues) -> list[dict[str, Any]]:
    """So many rows, each value drawn evenly from what the card allows."""
    rows: list[dict[str, Any]] = []
    person = 0
    while len(rows) < count:
        person += 1
        rows_of_person = 1 + choice.below(min(card.person.rows_max, count))
        for _ in range(rows_of_person):
            row = {each.name: _value(each, choice) for each in card.columns if not each.derived}
            row |= {each.name: _derived(each, row) for each in card.columns if each.derived}
            if isinstance(card.person, ColumnPerson):
                row = {card.person.column: person, **row}
            rows.append(row)
    return rows[:count]


def _derived(column: Column, row: dict[str, Any]) -> Any:
    """As the engine would, of the made-up row."""
    assert column.derived is not None
    value = evaluate(column.derived, row)
    if value is None or not isinstance(column, IntegerColumn | NumberColumn):
        return value
    value = math.floor(value) if isinstance(column, IntegerColumn) else value
    return min(max(value, column.low), column.high)


def _value(column: Column, choice: ColumnValues) -> Any:
    match column:
        case IntegerColumn():
            return column.low + choice.below(column.high - column.low + 1)
        case NumberColumn():
            part = choice.below(1 << 20) / (1 << 20)
            value = round(column.low + (column.high - column.low) * part, 6)
            return min(max(value, column.low), column.high)
        case CategoryColumn():
            return column.values[choice.below(len(column.values))]
        case BooleanColumn():
            return bool(choice.below(2))
        case DateColumn():
            days = (column.high - column.low).days
            return (column.low + datetime.timedelta(choice.below(days + 1))).isoformat()
        case TextColumn():
            return WORDS[choice.below(len(WORDS))][: column.length_max]
