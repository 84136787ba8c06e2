"""Candidate that is a q-quantile, or as near to one in rank as noise allows.

Among n values that are not missing, L are below a candidate and M at or below it, so it occupies
the ranks from L to M. It is a q-quantile if q n is among them; its score is minus the distance,

    -max(0, L - q n, q n - M),    for q = a / b in steps of 1 / b:  -max(0, b L - a n, a n - b M).

R for an added row of value x:

- for candidates above x, b L - a n and b M - a n grow by b - a;
- for candidates below x, both fall by a;
- at x, the first falls by a and the second grows by b - a.

So a score moves by at most b - a above x and by at most a below x. At x it may only grow, by at
most max(a, b - a). Two candidates on one side of x may move by as much in opposite directions. No
two scores move further apart, so R = 2 max(a, b - a).

For a row that moves from x to y > x, b L and b M fall by b between x and y and stay elsewhere. So R
= 2 b, which is no less. For m rows per person R is m times as large.

An interval from c to d occupies the ranks from L, the rows below c, to M, those below d. An added
row above, below or in it moves L and M as it would those of a candidate, so R is the same.

Missing values and rows outside the filter count nowhere. For an empty selection all candidates have
equal scores. `median` is q = 1/2.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from app.data.card import Card
from app.queries.candidates import ordered_column
from app.queries.cut_points import outcomes_cut
from app.queries.shapes.ranks.rank import ShareRank
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.selection import RankChoice, SelectionShape
from app.queries.tally import Exact

PLACES_MAX = 9


def exact_share(value: object) -> Decimal:
    """A number between 0 and 1 from a JSON number or decimal text, exactly as written."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("must be a number between 0 and 1, or a decimal text such as '0.25'")
    text = str(getattr(value, "text", None) or value)  # a JSON number keeps its text
    if len(text) > 30 or not set(text) <= set("0123456789.eE+-"):
        raise ValueError("must be a number between 0 and 1, or a decimal text such as '0.25'")
    try:
        share = Decimal(text)
    except ArithmeticError:
        raise ValueError(
            "must be a number between 0 and 1, or a decimal text such as '0.25'"
        ) from None
    if not 0 < share < 1:
        raise ValueError("must be greater than 0 and less than 1")
    if share != round(share, PLACES_MAX):
        raise ValueError(f"may have at most {PLACES_MAX} decimal places")
    return share.normalize()


Share = Annotated[
    Decimal,
    BeforeValidator(exact_share),
    Field(json_schema_extra={"examples": [0.25, "0.9"]}),
]


class Quantile(RankChoice):
    """`{"kind": "quantile", "column": ..., "q": 0.9, "candidates": ..., "where": ...}`"""

    kind: Literal["quantile"]
    q: Share

    def shape(self, card: Card) -> SelectionShape | RankShape:
        return quantile_shape(self, card, Fraction(self.q))


class Median(RankChoice):
    """`{"kind": "median", "column": ..., "candidates": ..., "where": ...}`"""

    kind: Literal["median"]

    def shape(self, card: Card) -> SelectionShape | RankShape:
        return quantile_shape(self, card, Fraction(1, 2))


def quantile_shape(query: RankChoice, card: Card, q: Fraction) -> SelectionShape | RankShape:
    if query.missing is not None:
        return query.value_shape(card, ShareRank(q))
    column = ordered_column(card, query.column)
    outcomes, pieces = outcomes_cut(query.candidates, column)
    a, b = q.numerator, q.denominator
    of_one = 2 * b if card.neighbours == "replace_one" else 2 * max(a, b - a)

    def scores(exact: Exact, _: int) -> list[int]:
        below, at_most, count = pieces.counted(exact)
        target = a * count
        return [
            target - b * few if b * few > target else min(0, b * many - target)
            for few, many in zip(below, at_most, strict=True)
        ]

    return SelectionShape(
        tally=query.tally(card, pieces.grouping),
        outcomes=outcomes,
        scores=scores,
        score_range=card.person.rows_max * of_one,
        steps=Fraction(b),
        error="rank_error",
        alternatives=query.by_value(card, ShareRank(q)),
    )
