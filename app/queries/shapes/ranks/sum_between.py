"""Exact sum of the values from one rank to another, ties included, without reading them.

Let u be the value of the first rank and v that of the last. The engine adds up the values strictly
between. The others are u or v, and counts give the number of each.
"""

from collections.abc import Callable
from fractions import Fraction

from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.window import Window
from app.queries.tally import AllOf, Compare, Condition, CountRows, Exact, SumSteps, Tally


def sum_between(
    shape: RankShape, windows: tuple[Window, ...], exact: Callable[[Tally], Exact]
) -> int:
    """Sum in steps. The requests to the engine do not depend on the values."""
    first, last = (rule(window.count) for rule, window in zip(shape.ranks, windows, strict=True))
    low, high = windows[0][first], windows[1][last]
    until = Compare(shape.column, "<", _value(shape, low + 1))
    after = Compare(shape.column, ">=", _value(shape, low + 1))
    before = Compare(shape.column, "<", _value(shape, high))
    ((at_most,),) = exact(_tally(shape, (until,), CountRows()))
    (inside,), (total,) = exact(_tally(shape, (after, before), CountRows(), SumSteps(shape.column)))
    if shape.missing is not None:
        ((absent,),) = exact(shape.missing_tally)
        at_most += absent if shape.missing <= low else 0
        if low < shape.missing < high:
            inside, total = inside + absent, total + absent * shape.missing
    kept = last - first + 1
    if low == high:
        return kept * low
    lowest = at_most - (first - 1)
    return total + lowest * low + (kept - lowest - inside) * high


def _tally(
    shape: RankShape, parts: tuple[Condition, ...], *aggregates: CountRows | SumSteps
) -> Tally:
    where = () if shape.where is None else (shape.where,)
    return Tally(AllOf((*where, *parts)), (), aggregates)


def _value(shape: RankShape, steps: int) -> int | float:
    """The least value of this number of steps, in the column's type; exact, as steps have 54
    bits."""
    if shape.grid_exponent == 0:
        return steps
    return float(Fraction(steps) / Fraction(2) ** shape.grid_exponent)
