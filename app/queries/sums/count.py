"""Number of rows that meet the filter.

Missing values: only the filter decides, so a row counts with any values. An empty selection is an
ordinary zero. If persons have several rows this counts rows, at most `rows_max` per person. Grouped
by private keys it releases the groups that contain enough rows, with their counts.
"""

from typing import Literal

from app.data.card import Card
from app.queries.estimates import Estimate, NoisySteps, figure
from app.queries.filters import POINTER
from app.queries.groups import private_column, public_groups
from app.queries.shapes.measures import row_measure
from app.queries.shapes.private_keys import PrivateKeysShape, keys_shape
from app.queries.shapes.sums import Selection, SumShape
from app.queries.tally import CountRows


class Count(Selection):
    """`{"kind": "count", "where": ..., "group_by": [...]}`"""

    kind: Literal["count"]

    def shape(self, card: Card) -> SumShape | PrivateKeysShape:
        at = f"{POINTER}/group_by"
        groups = public_groups(self.group_by, card, at)
        private = private_column(self.group_by, card, at)
        if private is not None:
            return keys_shape(card, self.tally(card, groups, CountRows()), private, counts=True)
        counted = row_measure(card, "count", low=1, high=1, grouped=bool(groups), grid_exponent=0)
        return SumShape(tally=self.tally(card, groups, CountRows()), measures=(counted,))

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        return [figure(each, 0) for each in noisy[0]]
