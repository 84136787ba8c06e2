"""Statistics of the values at ranks: a quantile, an extreme, the difference of two, a mean between.

The rank depends on n, the number of counted rows (`rank.py`). The possible changes of n decide how
one person can change the ranks:

    fixed    replace_one on the whole table, one row per person, missing values counted as one
             public value: n is public and the same for all neighbours, and one row is replaced.

    moving   everything else: rows are added and removed, one by one. A person of m rows who is
             added or removed makes at most m such moves, and one who is replaced at most 2 m:
             their rows are removed, and others are added. Filters and missing values add no
             further moves: a replaced row may have counted before, or after, or both.

Smooth sensitivity and propose-test-release both read windows of ranks from here: all ranks that k
moves can reach lie within k + 1 ranks of the requested one.

Proof for moving n: let y be k moves away from x, with n' rows. Let r(n') or the rank beside it be
the gap by which the statistic of y may change, with a rows of x at or below the gap. The moves
removed at least the rows of x in the gap. As r grows by 0 or 1 with each row, going from n' to n
moves it in the same direction by at most the number of moves. So r(n) - a <= k + 1, and from above
the same.
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
    """A statistic of the values at ranks, and the possible changes by one person."""

    statistic: Statistic
    ranks: tuple[RankRule, ...]  # one rank; two for other statistics, the lower first
    where: Condition | None
    column: str
    grid_exponent: int
    bounds: Span  # bounds of the column, in steps
    fixed: bool  # true if n is equal for all neighbours, which differ in one row
    moves: int  # otherwise: rows added or removed with one person
    missing: int | None  # value in steps that missing ones count as; None: they do not count
    candidates: bool = False  # true if the query has candidates, which only a choice uses
    alternatives: tuple["RankShape", ...] = ()  # other shapes of the same query; there are none

    @property
    def alone(self) -> bool:
        """True if no selection mechanism answers the same query."""
        return self.statistic != "rank" or self.missing is not None

    @property
    def width(self) -> int:
        """Width of the bounds, in steps."""
        return self.bounds[1] - self.bounds[0]

    @property
    def tally(self) -> Tally:
        """Count of the rows that count."""
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
        """For each rank the values from `reach` ranks below it to `reach` above."""
        ask = steps
        if self.missing is not None:
            ask = _with_missing(steps, exact(self.missing_tally)[0][0], self.missing)

        def ranks_needed(n: int) -> tuple[Span, ...]:
            return tuple((rule(n) - reach, rule(n) + reach) for rule in self.ranks)

        return order_windows(ask, self.where, self.column, self.bounds, ranks_needed)


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
        # Rows of persons identified by a column may be dropped, if their person is missing or has
        # too many.
        fixed=replaced and card.person.kind == "row" and where is None and steps is not None,
        moves=2 * m if replaced else m,
        missing=steps,
        candidates=candidates,
    )


def stepped_column(card: Card, name: str) -> IntegerColumn | NumberColumn:
    column = declared(card, name, f"{POINTER}/column")
    if not isinstance(column, IntegerColumn | NumberColumn):
        raise Invalid.field(f"{POINTER}/column", "must be an integer or number column")
    low, high = column.steps
    if low == high:  # all values are one step: there would be no noise at all
        raise Invalid.field(
            f"{POINTER}/column", "must have bounds that are further apart than its grid"
        )
    return column


def missing_steps(column: IntegerColumn | NumberColumn, value: int | float) -> int:
    """The value that missing ones count as, in steps of the column's grid."""
    at = f"{POINTER}/missing"
    if not column.low <= value <= column.high:
        raise Invalid.field(at, "must be within the column's bounds")
    if isinstance(column, IntegerColumn) and value != int(value):
        raise Invalid.field(at, "must be a whole number, as in the column")
    # Exact: a power of two changes the exponent alone.
    return math.floor(math.ldexp(float(value), column.grid_exponent))


def _with_missing(
    steps: Callable[[StepHistogram], StepCounts], count: int, value: int
) -> Callable[[StepHistogram], StepCounts]:
    """Wrap `steps`: counts as if `count` more rows had the value."""

    def with_missing(request: StepHistogram) -> StepCounts:
        counted = steps(request)
        if count == 0 or not any(low <= value <= high for low, high in request.ranges):
            return counted
        index = (value - request.low) >> request.shift
        counts = dict(counted)
        counts[index] = counts.get(index, 0) + count
        return sorted(counts.items())

    return with_missing
