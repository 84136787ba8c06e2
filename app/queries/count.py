"""How many rows meet the filter.

Missing values: a row counts whatever its columns hold; only the filter decides. An empty selection
is an ordinary zero. With persons of several rows this counts rows, at most `rows_max` a person.
"""

from fractions import Fraction
from typing import Literal

from app.datasets import Card
from app.queries.figures import Figure, Noisy, figure
from app.queries.measures import Measure, sensitivity_l1
from app.queries.shape import Selection, Shape
from app.queries.statistics import Rows


class Count(Selection):
    """`{"kind": "count", "where": ..., "group_by": [...]}`"""

    kind: Literal["count"]

    def shape(self, card: Card) -> Shape:
        groups = self.resolved_groups(card)
        sensitivity = sensitivity_l1(card, low=1, high=1, grouped=bool(groups))
        return Shape(
            tally=self.tally(card, groups, Rows()),
            measures=(Measure("count", ((1, 0),), sensitivity, Fraction(1), 0),),
        )

    def figures(self, noisy: tuple[tuple[Noisy, ...], ...], card: Card) -> list[Figure]:
        return [figure(each, 0) for each in noisy[0]]
