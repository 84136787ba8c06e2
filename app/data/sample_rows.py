"""Synthetic rows from a card alone, for development without cost: no value comes from the data."""

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

# Words of synthetic texts: public, and the same for every dataset.
WORDS = (
    "alder", "ash", "aspen", "beech", "birch", "cedar", "cherry", "chestnut", "elder", "elm", "fir",
    "hawthorn", "hazel", "holly", "juniper", "larch", "lime", "maple", "oak", "pine", "poplar",
    "rowan", "spruce", "sycamore", "walnut", "willow", "yew",
)  # fmt: skip


class ColumnValues(Protocol):
    def below(self, bound: int) -> int: ...


def sample_rows(card: Card, count: int, choice: ColumnValues) -> list[dict[str, Any]]:
    """`count` rows, each value drawn uniformly from the card's domain."""
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
    """Derived value of a synthetic row, as the engine would compute it."""
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
