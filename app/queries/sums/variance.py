"""Variance of a column's present values: one query, one charge, three measures.

A value is its bucket t on a grid of at most 2^21 steps, counted from the middle of the bounds, so
that |t| <= r. The release is N = the number of values, T = sum of t and Q = sum of (t^2 - k), where
k = r^2 / 2 rounded down: t^2 - k lies within g = r^2 - k of zero, half as far as t^2. The variance
Q/N + k - (T/N)^2 is post-processing. It is that of the values themselves, over N, and 0 for one
value.

Sensitivities per row are (1, r, g), with shares (2/5, 1/4, 7/20) of the loss; m is the number of
rows of a person. An added or removed row costs at most 2/5 + 1/4 + 7/20 = 1. Let the value of a row
move from u r to v r with |v| <= u (or both negated). As g >= r^2 / 2, this costs at most (u - v) /
4 + (7/10) (u^2 - v^2). The cost grows with u. At u = 1, with w = 1 - v, it is w (33 - 14 w) / 20 <
0.98. So m rows cost at most epsilon under add_remove, and under replace_one without groups. With
groups a replaced row may leave one and enter another, so all sensitivities are doubled.

For Gaussian noise the squares add up. An added row costs 1 with squares (1, r^2, g^2). For a row
whose value moves, the squares of T and Q are doubled. It costs at most w^2 / 8 + (7/10) (w (2 -
w))^2. For w <= 3/2 the second square is at most 1, and the cost at most 0.99. For larger w that
square is at most (3/4)^2, and the cost at most 0.90. A row that leaves a group and enters another
costs as much as two added rows, so all squares are doubled. The root of the sum of squares is a
norm, so m rows cost at most m^2 times what one does.

A constant column has a small variance plus noise. Like every variance it is clamped to the range
that the bounds allow. An empty selection gives k plus noise, clamped in the same way.
"""

from fractions import Fraction
from math import ldexp
from typing import Literal

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.queries.estimates import Estimate, NoisySteps
from app.queries.quotient_error import RowEstimate, variance_estimate
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import DEPENDS, Selection, SumShape, numeric
from app.queries.tally import CentredBucket, CountPresent, Product

STEPS_MAX = 1 << 21  # squares stay below 2^40, and their noise far within 64 bits
SHARES = Fraction(2, 5), Fraction(1, 4), Fraction(7, 20)


class Variance(Selection):
    """`{"kind": "variance", "column": ..., "where": ..., "group_by": [...]}`"""

    kind: Literal["variance"]
    column: str

    def shape(self, card: Card) -> SumShape:
        column = numeric(card, self.column)
        grid = CentredGrid(column)
        groups = self.resolved_groups(card)
        m = rows = card.person.rows_max
        count_factor, sum_factor = 1, 1
        if card.neighbours == "replace_one":
            sum_factor = 2
            if groups:
                rows, count_factor = 2 * m, 2
        exponent = grid.exponent
        bucket = CentredBucket(column.name, column.steps[0], grid.grain, grid.centre)
        return SumShape(
            tally=self.tally(
                card,
                groups,
                Product((bucket,)),
                Product((bucket, bucket)),
                CountPresent(column.name),
            ),
            measures=(
                Measure("count", ((1, 2),), rows, SHARES[0], 0, count_factor * m**2),
                Measure(
                    "centred_sum",
                    ((1, 0),),
                    rows * grid.reach,
                    SHARES[1],
                    exponent,
                    sum_factor * (m * grid.reach) ** 2,
                ),
                Measure(
                    "centred_squares",
                    ((1, 1), (-grid.middle, 2)),
                    rows * grid.square_reach,
                    SHARES[2],
                    2 * exponent,
                    sum_factor * (m * grid.square_reach) ** 2,
                ),
            ),
            no_half_width_reason=f"{DEPENDS}, by how many values there are",
            estimate=grid.estimate(),
        )

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        grid = CentredGrid(numeric(card, self.column))
        return [grid.figure(*each) for each in zip(*noisy, strict=True)]


class CentredGrid:
    """Buckets of a column's values: 0 to `width`, and from the middle -centre to `reach`."""

    def __init__(self, column: IntegerColumn | NumberColumn) -> None:
        low, high = column.steps
        doublings = max(0, (high - low).bit_length() - STEPS_MAX.bit_length() + 1)
        self.grain = 1 << doublings
        self.exponent = column.grid_exponent - doublings
        self.width = (high - low) // self.grain
        self.centre = self.width // 2
        self.reach = self.width - self.centre
        self.middle = self.reach**2 // 2
        self.square_reach = self.reach**2 - self.middle

    def estimate(self) -> RowEstimate:
        """Error for an assumed number of values, in the column's unit."""
        unit = -2 * self.exponent
        return variance_estimate(
            reach=ldexp(self.reach, -self.exponent),
            middle=ldexp(self.middle, unit),
            spread=ldexp(self.width**2 / 4, unit),
        )

    def figure(self, count: NoisySteps, total: NoisySteps, squares: NoisySteps) -> Estimate:
        n = max(count.steps, 1)
        value = self._value(Fraction(1, n), squares.steps, total.steps**2)
        if count.low < 1:  # there may be no value at all: only the bounds are certain
            return Estimate(
                value, self._clamped(Fraction(0)), self._clamped(Fraction(self.width**2))
            )
        # With y = 1/N the variance is k + Q y - T^2 y^2. It grows with Q, falls with |T|, and is
        # concave in y. So it is least in a corner and largest in a corner or where its slope is
        # zero.
        ends = Fraction(1, count.high), Fraction(1, count.low)
        far = max(total.low**2, total.high**2)
        near = 0 if total.low <= 0 <= total.high else min(total.low**2, total.high**2)
        tops = list(ends)
        if near:
            tops.append(min(max(Fraction(squares.high, 2 * near), ends[0]), ends[1]))
        return Estimate(
            value,
            min(self._value(y, squares.low, far) for y in ends),
            max(self._value(y, squares.high, near) for y in tops),
        )

    def _value(self, y: Fraction, squares: int, total_squared: int) -> float:
        return self._clamped(self.middle + squares * y - total_squared * y * y)

    def _clamped(self, steps: Fraction) -> float:
        largest = Fraction(self.width**2, 4)
        return float(min(max(steps, Fraction(0)), largest) / Fraction(4) ** self.exponent)
