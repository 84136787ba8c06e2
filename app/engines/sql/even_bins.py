"""Evenly spaced edges whose intervals a quotient tells exactly, without a look at the edges.

With q = (value - first) / width in doubles, floor(q) is the place among intervals of one width. For
candidates, each of which is an edge with the double after it, floor(q) + ceil(q) is: 2 i at the
candidate i, and 2 i + 1 between it and the next. Where a value is so little above the first one
that its quotient is lost in zero, one is added.

None of them falls as the value grows; so if each edge has its place, and the greatest double below
it the place before, every double there is has the right one. That is tried here, in the doubles
that every engine computes with, before it is asked of one. It spares a join with the list of edges,
which took more time than all the rest of such a question.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Integer
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement

from app.caches import owned_cache
from app.engines.sql.dialects import exact_double

Doubles = NDArray[np.float64]


class EvenBinIndex(FunctionElement[int]):
    """Of a value, by the first edge and the width. No part has a parameter: written as one text,
    it takes a third of the time of the same in parts."""

    name = "place"
    type = Integer()
    inherit_cache = True


class PairedPlace(EvenBinIndex):
    inherit_cache = True


@compiles(EvenBinIndex)
def _place(element: EvenBinIndex, compiler: SQLCompiler, **options: Any) -> str:
    value, first, width = (compiler.process(part, **options) for part in element.clauses)
    return f"CAST(floor(({value} - {first}) / {width}) AS INTEGER)"


@compiles(PairedPlace)
def _paired_place(element: PairedPlace, compiler: SQLCompiler, **options: Any) -> str:
    value, first, width = (compiler.process(part, **options) for part in element.clauses)
    quotient = f"(({value} - {first}) / {width})"
    lost = f"CASE WHEN {quotient} = 0 AND {value} > {first} THEN 1 ELSE 0 END"
    return f"(CAST(floor({quotient}) + ceil({quotient}) AS INTEGER) + {lost})"


@dataclass(frozen=True, slots=True)
class Even:
    first: float
    width: float
    paired: bool  # is every candidate an edge, and the double after it the next

    def place(self, value: ColumnElement[Any]) -> ColumnElement[int]:
        """Of a value within the edges, but for the last one itself."""
        numbers = exact_double(self.first), exact_double(self.width)
        return PairedPlace(value, *numbers) if self.paired else EvenBinIndex(value, *numbers)

    def places(self, values: Doubles) -> Doubles:
        """The same, worked out here."""
        quotient = (values - self.first) / self.width
        found: Doubles = np.floor(quotient)
        if self.paired:
            found = found + np.ceil(quotient) + ((quotient == 0.0) & (values > self.first))
        return found

    def tells(self, edges: Doubles) -> bool:
        starts = edges[:-1]
        below = np.nextafter(starts[1:], -np.inf)
        wanted = np.arange(len(starts))
        return np.array_equal(self.places(starts), wanted) and np.array_equal(
            self.places(below), wanted[:-1]
        )


@owned_cache(maxsize=64)
def find_even(edges: tuple[float, ...]) -> Even | None:
    """How a quotient tells the intervals, if one does; the last may be of any width."""
    first, count = edges[0], len(edges) - 1
    tried = [
        Even(first, (edges[-1] - first) / count, paired=False),
        Even(first, (edges[-2] - first) / (count - 1), paired=False),
        # An even number of edges: the last candidate is the last but one.
        Even(first, (edges[-2] - first) / (count // 2), paired=True),
    ]
    bounds = np.array(edges, dtype=np.float64)
    return next((even for even in tried if even.width > 0.0 and even.tells(bounds)), None)
