"""The sum of a column, its values clamped to the card's bounds.

Missing values (NULL, NaN, text that is no number) add nothing; infinities are clamped like any
value. An empty selection sums to zero. Values are added as whole steps of the column's grid.
"""

from fractions import Fraction
from typing import Literal

from app.datasets import Card
from app.queries.figures import Figure, Noisy, figure
from app.queries.measures import Measure, sensitivity_l1
from app.queries.shape import Selection, Shape, numeric
from app.queries.statistics import Total


class Sum(Selection):
    """`{"kind": "sum", "column": ..., "where": ..., "group_by": [...]}`"""

    kind: Literal["sum"]
    column: str

    def shape(self, card: Card) -> Shape:
        column = numeric(card, self.column)
        low, high = column.steps
        groups = self.resolved_groups(card)
        sensitivity = sensitivity_l1(card, low=low, high=high, grouped=bool(groups))
        return Shape(
            tally=self.tally(card, groups, Total(column.name)),
            measures=(Measure("sum", ((1, 0),), sensitivity, Fraction(1), column.grid_exponent),),
        )

    def figures(self, noisy: tuple[tuple[Noisy, ...], ...], card: Card) -> list[Figure]:
        exponent = numeric(card, self.column).grid_exponent
        return [figure(each, exponent) for each in noisy[0]]
