"""Column cut at its candidates: one tally gives the number of rows below each candidate.

A candidate c and the value after it, c+ (the next integer, day or double), are both edges, so that
rows equal to c are separate: the edges make intervals [c, c+) and [c+, next c). Where the outcomes
are intervals themselves, their own edges are enough.
"""

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np

from app.caches import owned_cache
from app.data.columns import DateColumn, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.candidates import (
    Grid,
    Intervals,
    OrderedColumn,
    Wire,
    resolve_candidates,
    resolve_edges,
)
from app.queries.filters import POINTER
from app.queries.tally import ByEdges, Exact


@dataclass(frozen=True, slots=True)
class Cut:
    grouping: ByEdges
    # Index of each candidate or interval among the edges; the rows after it begin at the next edge.
    places: Sequence[int]

    def counted(self, exact: Exact) -> tuple[list[int], list[int], int]:
        """For each outcome the rows below it, and those at or below it; and the number of all
        rows."""
        before = [0, *accumulate(exact[0])]
        below = [before[index] for index in self.places]
        return below, [before[index + 1] for index in self.places], before[-1]


def outcomes_cut(
    sent: tuple[Wire, ...] | Grid | Intervals | None, column: OrderedColumn
) -> tuple[Sequence[Any], Cut]:
    """Possible answers in the form shown to the analyst, and the column cut at them."""
    if isinstance(sent, Intervals):
        edges = resolve_edges(sent, column)
        pieces = cut_between(column, edges)
        return ByEdges(column.name, tuple(edges)).labels(), pieces
    if sent is None:  # drop the derivation, which may be a table of 100,000 lines
        bare = column.model_copy(update={"derived": None}) if column.derived else column
        return _usual_cut(bare)
    candidates = resolve_candidates(sent, column)
    return candidates, cut(column, candidates)


@owned_cache(maxsize=64)
def _usual_cut(column: OrderedColumn) -> tuple[Sequence[Any], Cut]:
    """Default cut, if the query names no candidates: equal for all queries, up to a thousand
    cached."""
    candidates = resolve_candidates(None, column)
    return candidates, cut(column, candidates)


def cut_between(column: OrderedColumn, edges: Sequence[Any]) -> Cut:
    """The whole column, cut at increasing edges within its bounds."""
    low, high = _edge_values(column, [column.low, column.high])
    *lows, last = _edge_values(column, edges)
    after = _after(column)
    lowest = [] if lows[0] == low else [low]
    ends = [after(last)] if last == high else [after(last), after(high)]
    places = range(len(lowest), len(lowest) + len(lows))
    return Cut(ByEdges(column.name, (*lowest, *lows, *ends)), places)


def cut(column: OrderedColumn, candidates: Sequence[Any]) -> Cut:
    """The whole column, cut at increasing candidates within its bounds."""
    if not isinstance(column, DateColumn):
        return _cut_numbers(column, candidates)
    low, high = column.low, column.high
    values = candidates
    after = _after(column)
    nexts = [after(value) for value in values]
    beyond = after(high)  # no value is as large, so the last interval is like the others
    # If the value after a candidate is the next candidate, they are one edge.
    apart = [one != two for one, two in zip(nexts, [*values[1:], beyond], strict=True)]
    edges = chain.from_iterable(
        (value, following) if separate else (value,)
        for value, following, separate in zip(values, nexts, apart, strict=True)
    )
    lowest = [] if values[0] == low else [low]
    steps = (2 if separate else 1 for separate in apart[:-1])
    places = list(accumulate(steps, initial=len(lowest)))
    return Cut(ByEdges(column.name, (*lowest, *edges, beyond)), places)


def _cut_numbers(column: IntegerColumn | NumberColumn, candidates: Sequence[Any]) -> Cut:
    """The same cut for a number column, vectorised."""
    values = np.array(candidates, dtype=np.float64)
    whole = isinstance(column, IntegerColumn) and column.high < 1 << 53
    nexts = values + 1.0 if whole else np.nextafter(values, np.inf)
    beyond = _after(column)(float(column.high))
    apart = nexts != np.append(values[1:], beyond)
    lowest = [] if values[0] == float(column.low) else [float(column.low)]
    both = np.column_stack((values, nexts)).ravel()
    edges = both[np.column_stack((np.ones(len(values), dtype=bool), apart)).ravel()]
    places = len(lowest) + np.concatenate(([0], np.cumsum(1 + apart[:-1].astype(np.int64))))
    return Cut(ByEdges(column.name, (*lowest, *edges.tolist(), beyond)), places.tolist())


def cut_from_below(column: OrderedColumn, candidates: Sequence[Any]) -> ByEdges:
    """Intervals from each candidate up to the next; the last ends at the column's bound."""
    values = _edge_values(column, candidates)
    beyond = _after(column)(_edge_values(column, [column.high])[0])
    return ByEdges(column.name, (*values, beyond))


def until_edges(column: OrderedColumn, edges: Sequence[Any]) -> ByEdges:
    """Intervals from the first edge up to each further one, upper edge included.

    Each interval begins after the edge before. No row beyond the last edge may be counted."""
    after = _after(column)
    first, *others = edges
    ends = [math.floor(edge) for edge in others] if isinstance(column, IntegerColumn) else others
    if isinstance(column, DateColumn):
        return ByEdges(column.name, (first, *map(after, ends)))
    # For large floats, adding one may change nothing.
    nexts = [max(after(float(end)), math.nextafter(end, math.inf)) for end in ends]
    return ByEdges(column.name, (first, *nexts))


def _edge_values(column: OrderedColumn, values: Sequence[Any]) -> Sequence[Any]:
    """Integers as doubles, which is exact within their bounds."""
    return [float(v) for v in values] if isinstance(column, IntegerColumn) else values


def _after(column: OrderedColumn) -> Callable[[Any], Any]:
    """Function from a value to the next value of the column."""
    if isinstance(column, DateColumn):
        if column.high == datetime.date.max:
            raise Invalid.field(
                f"{POINTER}/column",
                "must be a column whose upper bound is before the last possible day",
            )
        one_day = datetime.timedelta(1)
        return lambda day: day + one_day
    if isinstance(column, IntegerColumn) and column.high < 1 << 53:
        return lambda value: value + 1.0
    return lambda value: math.nextafter(value, math.inf)
