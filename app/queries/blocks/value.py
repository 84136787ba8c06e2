"""What a statistic of a block is made of: what the engine gives of its rows, and a formula over it.

The formula is exact, in fractions: what a block gives depends on what it holds, and on nothing of
the machine that it is computed on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.data.columns import IntegerColumn, NumberColumn
from app.queries.block_tally import Given, Reading
from app.queries.filters import POINTER
from app.queries.tally import Condition

HERE = f"{POINTER}/statistic"


@dataclass(frozen=True, slots=True)
class BlockValue:
    readings: tuple[Reading, ...]
    given: Given
    value: Callable[[Sequence[int]], Fraction | None]  # None where the rows do not decide it
    empty: Fraction | None = None  # of a block without rows
    present: tuple[Condition, ...] = ()  # what rows must meet besides the filter
    work: int = 1  # how long the formula takes


def step(column: IntegerColumn | NumberColumn) -> Fraction:
    """What a step of the column's grid is worth."""
    return 1 / Fraction(2) ** column.grid_exponent
