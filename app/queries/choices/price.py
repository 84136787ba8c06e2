"""Price at which a digital good earns most: rows are buyers, the column is what each would pay.

The score of a price p is p times the number of rows whose value is at least p, with prices in
integer steps of the column's grid. (A `number` column's larger bound is about 2^34 steps. A price
is rounded down to a step for its score, and compared with values unrounded.)

R: an added row of value x adds p to the score of every price p <= x and nothing to the others. If
no price is above x the scores move between the smallest and the largest price, and otherwise
between 0 and a price that is not the largest: R = max(largest - smallest, second largest). A row
that moves from x to y > x adds p to the scores of the prices between, at most the largest, and
nothing to others: R = the largest price, which is no less. For m rows per person R is m times as
large.

Missing values buy nothing. For an empty selection all prices are equal: all earn nothing.
"""

import math
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from app.data.card import Card
from app.queries.candidates import Candidates, resolve_candidates
from app.queries.cut_points import cut_from_below
from app.queries.shapes.selection import Choice, SelectionShape
from app.queries.shapes.sums import numeric
from app.queries.tally import Exact


class Price(Choice):
    """`{"kind": "price", "column": ..., "candidates": ..., "where": ...}`"""

    kind: Literal["price"]
    column: str
    candidates: Candidates | None = None

    def shape(self, card: Card) -> SelectionShape:
        column = numeric(card, self.column)
        prices = resolve_candidates(self.candidates, column, least=0)
        exponent = column.grid_exponent
        whole = [math.floor(math.ldexp(price, exponent)) for price in prices]

        def scores(exact: Exact, _: int) -> list[int]:
            at_least = list(accumulate(reversed(exact[0])))
            return [p * buyers for p, buyers in zip(whole, reversed(at_least), strict=True)]

        return SelectionShape(
            tally=self.tally(card, cut_from_below(column, prices)),
            outcomes=prices,
            scores=scores,
            score_range=card.person.rows_max * max(1, _range_of_one(card, whole)),
            steps=Fraction(2) ** exponent,
        )


def _range_of_one(card: Card, prices: list[int]) -> int:
    """Largest difference by which one row moves two scores; prices increase."""
    if card.neighbours == "replace_one":
        return prices[-1]
    return max(prices[-1] - prices[0], prices[-2] if len(prices) > 1 else 0)
