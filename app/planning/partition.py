"""Stored values that each declared cell of a card can hold.

A value that fits the card is an integer, a double or a day within its bounds, or a declared value
(`engines/sql/layout.py`). So an interval between edges has a least and a greatest possible value.
An interval without any is a cell that no row is ever in.
"""

import datetime
import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from app.data.card import Card
from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    EpochColumn,
    IntegerColumn,
    NumberColumn,
    TextColumn,
)


@dataclass(frozen=True, slots=True)
class CellValues:
    """Least and greatest value that rows of one cell can have; for a category both are its value.

    `count` is the number of values between them, both included, or None for doubles, which are
    not listed."""

    least: Any
    greatest: Any
    count: int | None


class Partition:
    """The cells in order; after the declared ones comes the cell of missing values.

    A set of cells is an integer: cell i is its bit 2^i."""

    def __init__(
        self, cells: Iterable[CellValues | None], *, ordered: bool, whole: bool = False
    ) -> None:
        self.cells = tuple(cells)
        self.ordered = ordered
        self._whole = whole  # integers only, so that none equals 17.5
        self.size = len(self.cells) + 1
        self.every = (1 << self.size) - 1
        self.missing = 1 << len(self.cells)
        self.empty = as_set(i for i, values in enumerate(self.cells) if values is None)
        inhabited = [(i, values) for i, values in enumerate(self.cells) if values is not None]
        self._places = [i for i, _ in inhabited]
        self._leasts = [values.least for _, values in inhabited]
        self._by_value = {} if ordered else dict(zip(self._leasts, self._places, strict=True))

    def place(self, value: Any) -> int | None:
        """Index of the cell of rows with this value; None if no row can have it."""
        if not self.ordered:
            return self._by_value.get(value)
        if self._whole and value != math.floor(value):
            return None
        position = bisect_right(self._leasts, value) - 1
        if position < 0:
            return None
        cell = self._places[position]
        values = self.cells[cell]
        return cell if values is not None and value <= values.greatest else None


def as_set(cells: Iterable[int]) -> int:
    total = 0
    for cell in cells:
        total |= 1 << cell
    return total


def partition_of(card: Card) -> Partition:
    """Partition of a card that declares cells."""
    column = cell_column(card)
    match column:
        case CategoryColumn() | BooleanColumn():
            return Partition(
                (CellValues(value, value, 1) for value in declared_values(column)), ordered=False
            )
        case EpochColumn():
            epochs = range(column.low, column.high + 1)
            cells = (CellValues(epoch, epoch, 1) for epoch in epochs)
            return Partition(cells, ordered=True, whole=True)
        case _:
            assert card.cells is not None
            assert card.cells.edges is not None, "cells of an ordered column have edges"
            assert not isinstance(column, TextColumn), "a text column has no cells"
            edges: tuple[Any, ...] = card.cells.edges
            return Partition(
                (
                    _interval(column, lower, upper, closed=upper == edges[-1])
                    for lower, upper in pairwise(edges)
                ),
                ordered=True,
                whole=isinstance(column, IntegerColumn),
            )


def cell_column(card: Card) -> Column:
    column = None if card.cells is None else card.column(card.cells.column)
    assert column is not None, "a card's cells name a declared column"
    return column


def declared_values(column: Column) -> tuple[str, ...] | tuple[bool, ...]:
    return column.values if isinstance(column, CategoryColumn) else (False, True)


def _interval(
    column: IntegerColumn | NumberColumn | DateColumn, lower: Any, upper: Any, *, closed: bool
) -> CellValues | None:
    """Values of the column in [lower, upper), or in [lower, upper] if it is closed."""
    least: Any = max(column.low, lower)
    greatest: Any
    count: int | None
    if isinstance(column, IntegerColumn):
        least = max(column.low, math.ceil(lower))
        greatest = min(column.high, math.floor(upper) if closed else math.ceil(upper) - 1)
        count = greatest - least + 1
    elif isinstance(column, NumberColumn):
        greatest = min(column.high, upper if closed else math.nextafter(upper, -math.inf))
        count = 1 if least == greatest else None
    else:
        greatest = min(column.high, upper if closed else upper - datetime.timedelta(days=1))
        count = (greatest - least).days + 1
    return CellValues(least, greatest, count) if least <= greatest else None
