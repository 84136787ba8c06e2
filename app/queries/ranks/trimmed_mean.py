"""The mean of what is left when a share of the rows is taken away from either end.

Only where n is public and fixed: replace_one, each row a person, no filter, and missing values
count as a public value, the column's lower bound if no other is named. Elsewhere the number that it
is divided by, and which ranks are left, would change with every row, and no bound is known that is
smooth (mechanism sheet, sections 5 and 9): it is refused.
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
        raise ValueError("less than a half: the share is taken away from either end")
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
            raise Invalid.field(
                f"{POINTER}/kind", "trimmed_mean is for rows that are a person each"
            )
        if self.where is not None:
            raise Invalid.field(f"{POINTER}/where", "none: a trimmed_mean is of the whole table")
        column = stepped_column(card, self.column)
        missing = column.low if self.missing is None else self.missing
        trim = Fraction(self.trim)
        ends = TrimmedRank(trim, last=False), TrimmedRank(trim, last=True)
        return self.order_shape(card, "mean_between", ends, missing)
