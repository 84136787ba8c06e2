"""A column cut at its candidates: from one tally, how many rows are below each of them.

A candidate c and the value after it, c+ (the next whole number, day or double), are both edges, so
that rows equal to c are told apart: the edges make intervals [c, c+) and [c+, next c).
"""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from app.datasets import DateColumn, IntegerColumn
from app.errors import Invalid
from app.queries.candidates import OrderedColumn
from app.queries.shape import AT
from app.queries.statistics import ByEdges, Exact


@dataclass(frozen=True, slots=True)
class Cut:
    grouping: ByEdges
    starts: Sequence[int]  # of each candidate, its place among the edges
    ends: Sequence[int]  # and that of the value after it

    def counted(self, exact: Exact) -> tuple[list[int], list[int], int]:
        """For each candidate the rows below it, and those at or below it; and all rows."""
        before = [0, *accumulate(exact[0])]
        below = [before[place] for place in self.starts]
        return below, [before[place] for place in self.ends], before[-1]


def cut(column: OrderedColumn, candidates: Sequence[Any]) -> Cut:
    """All of the column, cut at increasing candidates within its bounds."""
    values = _edge_values(column, candidates)
    edges = [_edge_values(column, [column.low])[0]]
    starts, ends = [], []
    after = _after(column)
    for value in values:
        if value > edges[-1]:
            edges.append(value)
        starts.append(len(edges) - 1)
        edges.append(after(value))
        ends.append(len(edges) - 1)
    beyond = after(_edge_values(column, [column.high])[0])
    if beyond > edges[-1]:  # no value is as large, so the last interval is like the others
        edges.append(beyond)
    return Cut(ByEdges(column.name, tuple(edges)), starts, ends)


def cut_from_below(column: OrderedColumn, candidates: Sequence[Any]) -> ByEdges:
    """From each candidate up to the next; the last up to the column's bound."""
    values = _edge_values(column, candidates)
    beyond = _after(column)(_edge_values(column, [column.high])[0])
    return ByEdges(column.name, (*values, beyond))


def _edge_values(column: OrderedColumn, values: Sequence[Any]) -> Sequence[Any]:
    """Whole numbers are compared as doubles, which is exact within their bounds."""
    return [float(v) for v in values] if isinstance(column, IntegerColumn) else values


def _after(column: OrderedColumn) -> Any:
    if isinstance(column, DateColumn):
        if column.high == datetime.date.max:
            raise Invalid.field(f"{AT}/column", "a column whose last day has a day after it")
        one_day = datetime.timedelta(1)
        return lambda day: day + one_day
    if isinstance(column, IntegerColumn):
        return lambda value: max(value + 1.0, math.nextafter(value, math.inf))
    return lambda value: math.nextafter(value, math.inf)
