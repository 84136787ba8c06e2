"""The declared cell of a clean row as an integer: cells in order, missing values last."""

import datetime
import math
from typing import Any

from sqlalchemy import ColumnElement, Integer, case, cast, column, func

from app.data.card import Card
from app.data.columns import CELLS_MAX, Column, DateColumn, EpochColumn, IntegerColumn, NumberColumn
from app.engines.sql.dialects import constant, day, exact_double

CELL = "cell"


def cell_number(card: Card) -> ColumnElement[Any]:
    """Cell of a row, for a card with cells. Every value is within the first and the last edge."""
    assert card.cells is not None
    declared = card.column(card.cells.column)
    assert declared is not None
    value: ColumnElement[Any] = column(f"c{card.columns.index(declared)}")
    if card.cells.edges is None:
        code = value if isinstance(declared, EpochColumn) else cast(value, Integer())
        return func.coalesce(cast(code, Integer()), constant(CELLS_MAX))
    inner: list[float | datetime.date] = [*card.cells.edges][1:-1]
    whens = [(value < _edge(declared, edge), constant(i)) for i, edge in enumerate(inner)]
    return case((value.is_(None), constant(CELLS_MAX)), *whens, else_=constant(len(inner)))


def _edge(declared: Column, edge: float | datetime.date) -> ColumnElement[Any]:
    if isinstance(edge, datetime.date):
        assert isinstance(declared, DateColumn)
        return day(edge)
    if isinstance(declared, IntegerColumn):
        return constant(math.ceil(edge))  # integers below the edge are those below this one
    assert isinstance(declared, NumberColumn)
    return exact_double(edge)
