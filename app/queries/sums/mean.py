"""Mean of a column's present values: one query, one charge, two measures.

The release is T = sum of (x - c) over the values, c the middle of the bounds, and N = the number of
values; the mean is c + T / N, which is post-processing. One row moves T by at most h, half the
width of the bounds, and N by at most 1. A row that does not count, or with a missing value, moves
neither.

Each measure takes half of the loss: noise of scale 2mh/epsilon on T and 2m/epsilon on N, where m is
the number of rows a person may have. In units of epsilon an added or removed row costs at most
(h/2h + 1/2)/m = 1/m, and one whose value changes costs at most (2h/2h + 0)/m = 1/m. So m rows cost
at most epsilon under add_remove, and under replace_one without groups. With groups a replaced row
may leave one group and enter another, which is twice the first: both sensitivities are doubled.

For Gaussian noise the squares add up, in units of m^2. An added or removed row moves T by h and N
by 1, h^2/2h^2 + 1/2 <= 1 with squares (h^2, 1). One whose value changes moves only T, by the whole
width w, which takes a square of T of at least w^2/2. One that leaves a group and enters another is
the first twice, so both squares double. For m rows that do one or the other the sum of squares is
convex in the numbers of each, so the extremes decide.

An empty selection gives c plus noise, clamped to the bounds, as every mean is.

With `per_person` it is the mean of the persons' totals, each clamped to the bounds in the query,
over the persons who have a value (`persons.py`).
"""

from fractions import Fraction
from math import ldexp
from typing import Literal

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.estimates import Estimate, NoisySteps
from app.queries.filters import POINTER
from app.queries.quotient_error import RowEstimate, mean_estimate
from app.queries.shapes.measures import Measure
from app.queries.shapes.single_mean import mean_shape
from app.queries.shapes.sums import DEPENDS, SumShape, numeric
from app.queries.sums.persons import NEEDS_PERSONS, PerPerson, PersonSelection, person_mean_measures
from app.queries.tally import CountPresent, Grouping, Persons, PersonTotal, SumSteps

UNPROMISED = f"{DEPENDS}, by how many values there are; a count and a sum promise theirs"


class Mean(PersonSelection):
    """`{"kind": "mean", "column": ..., "where": ..., "group_by": [...], "per_person": {"low",
    "high"}, "groups_max": ...}`"""

    kind: Literal["mean"]
    column: str
    per_person: PerPerson = None

    def shape(self, card: Card) -> SumShape:
        column = numeric(card, self.column)
        low, high = self._bounds(column)
        centre = (low + high) // 2
        groups = self.resolved_groups(card)
        if self.per_person is not None:
            return self._of_persons(card, column, groups)
        if self.groups_max is not None:
            raise Invalid.field(f"{POINTER}/groups_max", NEEDS_PERSONS)
        m = rows = card.person.rows_max
        reach = max(high - centre, centre - low)
        square, count_square = reach**2, 1
        if card.neighbours == "replace_one":
            square = max(square, ((high - low) ** 2 + 1) // 2)
            if groups:
                rows, square, count_square = 2 * m, 2 * reach**2, 2
        half = Fraction(1, 2)
        total_terms = ((1, 0), (-centre, 1))
        tally = self.tally(card, groups, SumSteps(column.name), CountPresent(column.name))
        return SumShape(
            tally=tally,
            measures=(
                Measure(
                    "centred_sum",
                    total_terms,
                    rows * reach,
                    half,
                    column.grid_exponent,
                    sensitivity_l2_squared=square * m**2,
                ),
                Measure(
                    "count", ((1, 1),), rows, half, 0, sensitivity_l2_squared=count_square * m**2
                ),
            ),
            no_half_width_reason=UNPROMISED,
            estimate=_estimate(low, high, column.grid_exponent),
            alternatives=() if groups else (mean_shape(card, column, tally.where),),
        )

    def _of_persons(
        self, card: Card, column: IntegerColumn | NumberColumn, groups: tuple[Grouping, ...]
    ) -> SumShape:
        low, high = self._bounds(column)
        parts = PersonTotal(column.name, low, high), Persons(column.name)
        measures = person_mean_measures(
            card,
            low=low,
            high=high,
            kept=self.groups_of_one(card, groups),
            grouped=bool(groups),
            grid_exponent=column.grid_exponent,
        )
        return SumShape(
            self.person_tally(card, groups, *parts),
            measures,
            no_half_width_reason=UNPROMISED,
            estimate=_estimate(low, high, column.grid_exponent),
        )

    def _bounds(self, column: IntegerColumn | NumberColumn) -> tuple[int, int]:
        return column.steps if self.per_person is None else self.per_person.steps(column)

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        column = numeric(card, self.column)
        low, high = self._bounds(column)
        centre = (low + high) // 2
        step = 1 / Fraction(2) ** column.grid_exponent

        def mean(total: int, count: int) -> float:
            steps = centre + Fraction(total, max(count, 1))
            return float(min(max(steps, Fraction(low)), Fraction(high)) * step)

        def interval(total: NoisySteps, count: NoisySteps) -> tuple[float, float]:
            # T / N over the box of both intervals has its extremes in the corners once N >= 1. If N
            # = 0 is possible there may be no mean at all, and only the bounds are certain.
            if count.low < 1:
                return float(low * step), float(high * step)
            corners = [mean(t, n) for t in (total.low, total.high) for n in (count.low, count.high)]
            return min(corners), max(corners)

        figures = []
        for total, count in zip(*noisy, strict=True):
            figures.append(Estimate(mean(total.steps, count.steps), *interval(total, count)))
        return figures


def _estimate(low: int, high: int, grid_exponent: int) -> RowEstimate:
    """Error of T / N for an assumed N: the mean is at most `reach` from the middle."""
    centre = (low + high) // 2
    reach = ldexp(max(high - centre, centre - low), -grid_exponent)
    return mean_estimate(0, 1, reach=reach, spread=ldexp(high - low, -grid_exponent))
