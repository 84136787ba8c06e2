"""The sum of a column, its values clamped to the card's bounds.

Missing values (NULL, NaN, text that is no number) add nothing; infinities are clamped like any
value. An empty selection sums to zero. Values are added as whole steps of the column's grid.
"""

from typing import Literal

from app.datasets import Card
from app.queries.figures import Figure, Noisy, figure
from app.queries.measures import row_measure
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
        added = row_measure(
            card,
            "sum",
            low=low,
            high=high,
            grouped=bool(groups),
            grid_exponent=column.grid_exponent,
        )
        return Shape(tally=self.tally(card, groups, Total(column.name)), measures=(added,))

    def figures(self, noisy: tuple[tuple[Noisy, ...], ...], card: Card) -> list[Figure]:
        exponent = numeric(card, self.column).grid_exponent
        return [figure(each, exponent) for each in noisy[0]]
