"""Interquartile range: the 3/4-quantile less the 1/4-quantile.

Missing values do not count, unless `missing` gives the value they count as. Without rows the range
is 0.
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
