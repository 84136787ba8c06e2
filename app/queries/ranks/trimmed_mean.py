"""Mean of the rows that remain after a share is trimmed from either end.

It requires a public and fixed n: replace_one, one row per person, no filter, and missing values
that count as a public value, by default the column's lower bound. Otherwise the divisor and the
remaining ranks would change with every row. No smooth bound is known for that case: Bun and Steinke
(2019) prove theirs for a fixed n. So the query is refused.
"""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import AfterValidator

from app.data.card import Card
from app.errors import Invalid
from app.queries.filters import POINTER
from app.queries.ranks.quantile import Share
from app.queries.ranks.rank_query import OrderQuery
from app.queries.shapes.ranks.rank import TrimmedRank
from app.queries.shapes.ranks.shape import RankShape, stepped_column


def _below_half(share: Share) -> Share:
    if share >= Fraction(1, 2):
        raise ValueError("must be less than a half: the share is trimmed from either end")
    return share


Trim = Annotated[Share, AfterValidator(_below_half)]


class TrimmedMean(OrderQuery):
    """`{"kind": "trimmed_mean", "column": ..., "trim": 0.1, "missing": ...}`"""

    kind: Literal["trimmed_mean"]
    trim: Trim
    missing: int | float | None = None

    def shape(self, card: Card) -> RankShape:
        if card.neighbours != "replace_one":
            raise Invalid.field(f"{POINTER}/kind", "trimmed_mean needs a public number of rows")
        if card.person.kind != "row":
            raise Invalid.field(f"{POINTER}/kind", "trimmed_mean needs one row per person")
        if self.where is not None:
            raise Invalid.field(
                f"{POINTER}/where", "must be absent: trimmed_mean covers the whole table"
            )
        column = stepped_column(card, self.column)
        missing = column.low if self.missing is None else self.missing
        trim = Fraction(self.trim)
        ends = TrimmedRank(trim, last=False), TrimmedRank(trim, last=True)
        return self.order_shape(card, "mean_between", ends, missing)
