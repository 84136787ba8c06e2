"""Mean of the present values, as one number whose sensitivity falls with their number.

With n values between low and high, W apart, the mean is their sum over n, and without values the
middle of the bounds. A person of m rows removes up to q <= m values and adds p <= m, under either
relation and for any filter: n' = n + p - q. Let u be the mean of the c values that stay, in units
of W from low. Before, the mean is (c u + removed values) / n, afterwards (c u + added values) / n'.
If n' >= n, the worst case removes q ones and adds p zeros, or the reverse, with u at an end: the
mean moves by max(q / n, p / n'); the same if n' < n. For n >= m both are at most m / n, so

    a person moves the mean by at most W m / n,    for n >= m,

and by at most W in any case. Some table of n rows attains it: m values at one bound are removed,
and all others are at the other. A mean by Laplace or Gaussian noise on sum and number (`mean.py`)
moves as little but pays for two numbers, and cannot promise its width.
"""

from dataclasses import dataclass

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.queries.shapes.ranks.window import Span
from app.queries.tally import Condition, CountPresent, SumSteps, Tally


@dataclass(frozen=True, slots=True)
class MeanShape:
    """The sum of a column and its number of values."""

    tally: Tally  # the sum in steps, and the number of values
    grid_exponent: int
    bounds: Span  # bounds of the column, in steps
    rows: int  # m: largest number of values one person removes, and adds
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
