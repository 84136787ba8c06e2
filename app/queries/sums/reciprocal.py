"""Reciprocal of the number of rows that meet the filter, or 1 if there are none, from a noisy
count.

The local sensitivity of 1 / max(f, 1) is 1 / (f (f - 1)) for f >= 2. The reciprocal of a noisy
count has an error of about 1 / (epsilon f^2), which is of the same order. So the noisy count loses
nothing in order of magnitude, is pure, and keeps the interval of its noise. The reciprocal falls as
the count grows, so its interval is that of the count reversed. Below one the reciprocal of a count
is not defined. That of a sum has no finite sensitivity at all, so sums are not offered.
"""

from typing import Literal

from app.data.card import Card
from app.queries.estimates import Estimate, NoisySteps
from app.queries.quotient_error import reciprocal_estimate
from app.queries.shapes.measures import row_measure
from app.queries.shapes.sums import DEPENDS, Selection, SumShape
from app.queries.tally import CountRows

UNPROMISED = f"{DEPENDS}, by the count itself; a count promises its own"


class Reciprocal(Selection):
    """`{"kind": "reciprocal", "where": ..., "group_by": [...]}`"""

    kind: Literal["reciprocal"]

    def shape(self, card: Card) -> SumShape:
        groups = self.resolved_groups(card)
        counted = row_measure(card, "count", low=1, high=1, grouped=bool(groups), grid_exponent=0)
        return SumShape(
            self.tally(card, groups, CountRows()),
            (counted,),
            no_half_width_reason=UNPROMISED,
            estimate=reciprocal_estimate,
        )

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        return [
            Estimate(1 / max(count.steps, 1), 1 / max(count.high, 1), 1 / max(count.low, 1))
            for count in noisy[0]
        ]
