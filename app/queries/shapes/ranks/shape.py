"""What is made of the values at ranks: a quantile, an end, the distance of two, a mean between.

Which rank it is depends on n, the rows that count (`ranks.py`). How n may change decides what one
person can do to the ranks:

    fixed    replace_one on the whole table, each row a person, missing values counted as one public
             value: n is public and the same for all neighbours, and one row is replaced.
    moving   everything else: rows come and go, one by one. A person of m rows who appears or
             vanishes is at most m such moves, and one who is replaced at most 2 m: their rows go,
             and others come. Filters and missing values make no more of it: a row that is replaced
             may have counted before, or after, or both.

Smooth sensitivity and propose-test-release both read windows of ranks from here: whatever is
reached by k moves lies within k + 1 ranks of the one that is asked for.

Under moving n, let y be k moves away from x, of n' rows, and let r(n') or the rank beside it be the
gap by which the statistic of y may change, with a rows of x at or below the gap. Of the moves, at
least the rows of x in the gap went. As r grows by 0 or 1 with each row, going from n' to n moves it
the same way by no more than there are moves; so r(n) - a <= k + 1, and from above the same.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import POINTER, declared
from app.queries.shapes.ranks.rank import RankRule
from app.queries.shapes.ranks.window import Span, Window, order_windows
from app.queries.tally import (
    AllOf,
    Condition,
    CountPresent,
    CountRows,
    Exact,
    IsMissing,
    StepCounts,
    StepHistogram,
    Tally,
)

Statistic = Literal["rank", "distance", "mean_between"]


@dataclass(frozen=True, slots=True)
class RankShape:
    """A statistic of the values at ranks, and how one person can change which values these are."""

    statistic: Statistic
    ranks: tuple[RankRule, ...]  # one; for the others two, the lower one first
    where: Condition | None
    column: str
    grid_exponent: int
    bounds: Span  # of the column, in steps
    fixed: bool  # is n the same for all neighbours, of whom one row differs
    moves: int  # otherwise: how many rows come or go with one person
    missing: int | None  # the value in steps that missing ones count as; None if they do not count
    candidates: bool = False  # were candidates sent, which only a choice has
    alternatives: tuple["RankShape", ...] = ()  # other ways to ask the same; there are none

    @property
    def alone(self) -> bool:
        """Is there no choice that answers the same?"""
        return self.statistic != "rank" or self.missing is not None

    @property
    def width(self) -> int:
        """Of the bounds, in steps."""
        return self.bounds[1] - self.bounds[0]

    @property
    def tally(self) -> Tally:
        """The rows that count."""
        counted = CountPresent(self.column) if self.missing is None else CountRows()
        return Tally(self.where, (), (counted,))

    @property
    def missing_tally(self) -> Tally:
        absent = IsMissing(self.column)
        where = absent if self.where is None else AllOf((self.where, absent))
        return Tally(where, (), (CountRows(),))

    def windows(
        self,
        steps: Callable[[StepHistogram], StepCounts],
        exact: Callable[[Tally], Exact],
        reach: int,
    ) -> tuple[Window, ...]:
        """For each rank the values from `reach` ranks below it to as many above."""
        ask = steps
        if self.missing is not None:
            ask = _with_missing(steps, exact(self.missing_tally)[0][0], self.missing)

        def wanted(n: int) -> tuple[Span, ...]:
            return tuple((rule(n) - reach, rule(n) + reach) for rule in self.ranks)

        return order_windows(ask, self.where, self.column, self.bounds, wanted)


def order_shape(
    card: Card,
    name: str,
    where: Condition | None,
    statistic: Statistic,
    ranks: tuple[RankRule, ...],
    missing: int | float | None,
    *,
    candidates: bool = False,
) -> RankShape:
    column = stepped_column(card, name)
    steps = None if missing is None else missing_steps(column, missing)
    m, replaced = card.person.rows_max, card.neighbours == "replace_one"
    return RankShape(
        statistic=statistic,
        ranks=ranks,
        where=where,
        column=column.name,
        grid_exponent=column.grid_exponent,
        bounds=column.steps,
        # Rows of persons who are told by a column may be dropped, if they have none or too many.
        fixed=replaced and card.person.kind == "row" and where is None and steps is not None,
        moves=2 * m if replaced else m,
        missing=steps,
        candidates=candidates,
    )


def stepped_column(card: Card, name: str) -> IntegerColumn | NumberColumn:
    column = declared(card, name, f"{POINTER}/column")
    if not isinstance(column, IntegerColumn | NumberColumn):
        raise Invalid.field(f"{POINTER}/column", "an integer or number column")
    low, high = column.steps
    if low == high:  # all values are one step: there would be no noise at all
        raise Invalid.field(f"{POINTER}/column", "one whose bounds are further apart than its grid")
    return column


def missing_steps(column: IntegerColumn | NumberColumn, value: int | float) -> int:
    """The value that missing ones count as, in steps of the column's grid."""
    at = f"{POINTER}/missing"
    if not column.low <= value <= column.high:
        raise Invalid.field(at, "within the column's bounds")
    if isinstance(column, IntegerColumn) and value != int(value):
        raise Invalid.field(at, "a whole number, as the column holds")
    # Exact: a power of two changes the exponent alone.
    return math.floor(math.ldexp(float(value), column.grid_exponent))


def _with_missing(
    steps: Callable[[StepHistogram], StepCounts], count: int, value: int
) -> Callable[[StepHistogram], StepCounts]:
    """The counts as if so many more rows had the value."""

    def asked(wanted: StepHistogram) -> StepCounts:
        found = steps(wanted)
        if count == 0 or not any(low <= value <= high for low, high in wanted.ranges):
            return found
        place = (value - wanted.low) >> wanted.shift
        counts = dict(found)
        counts[place] = counts.get(place, 0) + count
        return sorted(counts.items())

    return asked
