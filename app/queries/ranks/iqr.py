"""The distance of the quartiles: the value that three quarters of the rows are at or below, less
the one that a quarter are.

Missing values do not count, unless `missing` says which value they count as. Of no rows it is 0.
"""

from fractions import Fraction
from typing import Literal

from app.data.card import Card
from app.queries.ranks.rank_query import OrderQuery
from app.queries.shapes.ranks.rank import ShareRank
from app.queries.shapes.ranks.shape import RankShape

QUARTILES = ShareRank(Fraction(1, 4)), ShareRank(Fraction(3, 4))


class Iqr(OrderQuery):
    """`{"kind": "iqr", "column": ..., "missing": ..., "where": ...}`"""

    kind: Literal["iqr"]
    missing: int | float | None = None

    def shape(self, card: Card) -> RankShape:
        return self.order_shape(card, "distance", QUARTILES, self.missing)
