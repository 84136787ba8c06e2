"""The mean of the values that are there, as one number whose sensitivity falls with their number.

With n values between low and high, W apart, the mean is their sum over n, and of none the middle of
the bounds. A person of m rows takes up to q <= m values away and brings p <= m, under either
relation, whatever the filter does: n' = n + p - q. Of the c values that stay let u be the mean, in
units of W from low. Before, the mean is (c u + what goes) / n, afterwards (c u + what comes) / n'.
If n' >= n, what goes are q ones and what comes p zeros at worst, or the other way round, and u at
an end: the mean moves by max(q / n, p / n'); the same if n' < n. For n >= m both are at most m / n,
so that

    a person moves the mean by at most W m / n,    for n >= m,

and by W at most in any case. Some table of n rows attains it: m values at one bound go, and all
others are at the other. Of n values, a mean by Laplace or Gaussian noise on sum and number
(`mean.py`) moves as little but pays for two numbers, and cannot promise its width.
"""

from dataclasses import dataclass

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.queries.shapes.ranks.window import Span
from app.queries.tally import Condition, CountPresent, SumSteps, Tally


@dataclass(frozen=True, slots=True)
class MeanShape:
    """The sum of a column and how many values there are."""

    tally: Tally  # the sum in steps, and the number
    grid_exponent: int
    bounds: Span  # of the column, in steps
    rows: int  # m: so many values one person may take away, and bring
    alternatives: tuple["MeanShape", ...] = ()

    @property
    def width(self) -> int:
        return self.bounds[1] - self.bounds[0]


def mean_shape(
    card: Card, column: IntegerColumn | NumberColumn, where: Condition | None
) -> MeanShape:
    return MeanShape(
        tally=Tally(where, (), (SumSteps(column.name), CountPresent(column.name))),
        grid_exponent=column.grid_exponent,
        bounds=column.steps,
        rows=card.person.rows_max,
    )
