"""Formula of a block statistic: the readings the engine returns, and a formula over them.

The formula is exact, in fractions. So the result depends only on the block's rows, and not on the
machine that computes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.data.columns import IntegerColumn, NumberColumn
from app.queries.block_tally import Given, RowReading
from app.queries.filters import POINTER
from app.queries.tally import Condition

HERE = f"{POINTER}/statistic"


@dataclass(frozen=True, slots=True)
class BlockValue:
    readings: tuple[RowReading, ...]
    given: Given
    value: Callable[[Sequence[int]], Fraction | None]  # None where the rows do not determine it
    empty: Fraction | None = None  # result of a block without rows
    present: tuple[Condition, ...] = ()  # conditions that rows must meet besides the filter
    work: int = 1  # relative time of the formula


def step(column: IntegerColumn | NumberColumn) -> Fraction:
    """Value of one step of the column's grid, in the column's unit."""
    return 1 / Fraction(2) ** column.grid_exponent
