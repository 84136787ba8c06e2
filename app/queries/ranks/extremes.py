"""Smallest and largest value, by rank: the r-th from the end, r as small as noise allows.

With the last rank as target, noise would select beyond it: all candidates past the last row have
equal scores there. So the target is a rank r, by default one more than the rank error that the
noise stays within at the query's confidence. With that confidence the answer then has a row at or
beyond it.

Among n values that are not missing, L are below a candidate and M at or below it. From below it
occupies the ranks L + 1 to M, and its score is minus the distance of r to them, -max(0, L + 1 - r,
r - M); `max` counts from above, with n - M and n - L in their place.

R for an added row of value x: L and M of candidates above x grow by one and those of others stay,
except M at x. Each score moves by at most one, and one may gain and another lose: R = 2. A row that
moves from x to y > x lowers L and M by one between them only: R = 2 again, as r does not depend on
n. From above the same holds. For m rows per person R is m times as large. Intervals between edges
occupy the ranks of the rows inside, and move no further.

If a selection has fewer than r rows, its other end is chosen. For an empty one all candidates have
equal scores.
"""

from typing import Annotated, Literal

from pydantic import Field

from app.data.card import Card
from app.queries.candidates import ordered_column
from app.queries.cut_points import outcomes_cut
from app.queries.shapes.ranks.rank import RankFromAbove, RankFromBelow
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.selection import RankChoice, SelectionShape
from app.queries.tally import Exact

RANK_MAX = 10**12
Rank = Annotated[int, Field(ge=1, le=RANK_MAX)]


class _Extreme(RankChoice):
    rank: Rank | None = None

    def extreme_shape(self, card: Card, *, from_above: bool) -> SelectionShape | RankShape:
        # By value the last rank is the default: noise goes on the value and not on the rank.
        by_value = (RankFromAbove if from_above else RankFromBelow)(self.rank or 1)
        if self.missing is not None:
            return self.value_shape(card, by_value)
        column = ordered_column(card, self.column)
        outcomes, pieces = outcomes_cut(self.candidates, column)

        def scores(exact: Exact, rank: int) -> list[int]:
            before, until, count = pieces.counted(exact)
            if from_above:
                before, until = [count - m for m in until], [count - few for few in before]
            return [
                rank - 1 - few if few >= rank else min(0, many - rank)
                for few, many in zip(before, until, strict=True)
            ]

        return SelectionShape(
            tally=self.tally(card, pieces.grouping),
            outcomes=outcomes,
            scores=scores,
            score_range=2 * card.person.rows_max,
            error="rank_error",
            rank=self._rank,
            alternatives=self.by_value(card, by_value),
        )

    def _rank(self, error: float) -> int:
        return self.rank or min(RANK_MAX, int(error) + 1)


class Min(_Extreme):
    """`{"kind": "min", "column": ..., "rank": ..., "candidates": ..., "where": ...}`"""

    kind: Literal["min"]

    def shape(self, card: Card) -> SelectionShape | RankShape:
        return self.extreme_shape(card, from_above=False)


class Max(_Extreme):
    """`{"kind": "max", "column": ..., "rank": ..., "candidates": ..., "where": ...}`"""

    kind: Literal["max"]

    def shape(self, card: Card) -> SelectionShape | RankShape:
        return self.extreme_shape(card, from_above=True)
