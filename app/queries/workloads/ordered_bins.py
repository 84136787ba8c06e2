"""Bins of an ordered column, each from its start to below the next, the last to the bound."""

import datetime
import math
from typing import Any

from app.data.columns import Column, DateColumn, IntegerColumn, NumberColumn
from app.queries.tally import ByEdges


def bins_of(column: Column, starts: list[Any]) -> ByEdges | None:
    """Bins that hold every present value; None if the last edge would be past the last possible
    day."""
    if isinstance(column, DateColumn):
        if column.high < datetime.date.max:
            return ByEdges(column.name, (*starts, column.high + datetime.timedelta(days=1)))
        return ByEdges(column.name, (*starts, column.high)) if starts[-1] < column.high else None
    assert isinstance(column, IntegerColumn | NumberColumn)
    return ByEdges(column.name, (*map(float, starts), math.nextafter(float(column.high), math.inf)))
