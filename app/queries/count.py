"""How many rows meet the filter.

Missing values: a row counts whatever its columns hold; only the filter decides. An empty selection
is an ordinary zero. With persons of several rows this counts rows, at most `rows_max` a person.
"""

from typing import Literal

from app.datasets import Card
from app.queries.figures import Figure, Noisy, figure
from app.queries.measures import row_measure
from app.queries.shape import Selection, Shape
from app.queries.statistics import Rows


class Count(Selection):
    """`{"kind": "count", "where": ..., "group_by": [...]}`"""

    kind: Literal["count"]

    def shape(self, card: Card) -> Shape:
        groups = self.resolved_groups(card)
        counted = row_measure(card, "count", low=1, high=1, grouped=bool(groups), grid_exponent=0)
        return Shape(tally=self.tally(card, groups, Rows()), measures=(counted,))

    def figures(self, noisy: tuple[tuple[Noisy, ...], ...], card: Card) -> list[Figure]:
        return [figure(each, 0) for each in noisy[0]]
