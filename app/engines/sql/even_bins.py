"""Evenly spaced edges whose bins follow exactly from a quotient, without a list of edges.

Let q = (value - first) / width in doubles. For bins of one width, floor(q) is the index. The second
case is pairs: each candidate is an edge, and the next double is the next edge. Then the index is
floor(q) + ceil(q): 2 i at candidate i, and 2 i + 1 between it and the next. If a value is so little
above the first that its quotient underflows to zero, one is added.

All of these are monotone in the value. So if each edge has its index, and the largest double below
it has the index before, every double has the right one. That is checked here, in the same doubles
that every engine uses, before a statement relies on it. It saves a join with the list of edges,
which took more time than the rest of such a query.
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
    """Bin index of a value, from the first edge and the width.

    No part is a parameter: as one text it takes a third of the time of separate elements.
    """

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
    paired: bool  # every candidate is an edge, and the double after it is the next edge

    def place(self, value: ColumnElement[Any]) -> ColumnElement[int]:
        """Index of a value within the edges, except for the last edge itself."""
        numbers = exact_double(self.first), exact_double(self.width)
        return PairedPlace(value, *numbers) if self.paired else EvenBinIndex(value, *numbers)

    def places(self, values: Doubles) -> Doubles:
        """The same index, computed in Python."""
        quotient = (values - self.first) / self.width
        indexes: Doubles = np.floor(quotient)
        if self.paired:
            indexes = indexes + np.ceil(quotient) + ((quotient == 0.0) & (values > self.first))
        return indexes

    def matches(self, edges: Doubles) -> bool:
        starts = edges[:-1]
        below = np.nextafter(starts[1:], -np.inf)
        expected = np.arange(len(starts))
        return np.array_equal(self.places(starts), expected) and np.array_equal(
            self.places(below), expected[:-1]
        )


@owned_cache(maxsize=64)
def find_even(edges: tuple[float, ...]) -> Even | None:
    """The quotient that gives the bins, or None; the last bin may have any width."""
    first, count = edges[0], len(edges) - 1
    tried = [
        Even(first, (edges[-1] - first) / count, paired=False),
        Even(first, (edges[-2] - first) / (count - 1), paired=False),
        # With an even number of edges the last candidate is the last edge but one.
        Even(first, (edges[-2] - first) / (count // 2), paired=True),
    ]
    bounds = np.array(edges, dtype=np.float64)
    return next((even for even in tried if even.width > 0.0 and even.matches(bounds)), None)
