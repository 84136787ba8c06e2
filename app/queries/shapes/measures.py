"""Integer measures that a query releases, and the sensitivity of each to one person.

One row's contribution to a measure lies between `low` and `high` when the row counts. It is 0 when
the row does not count (filtered out, value missing, in no group). A person has at most m rows. So
over all groups, with r = max(|low|, |high|):

                           in the L1 norm                        in the L2 norm
    add_remove             m rows appear or vanish: m r          all in one group: m r
    replace_one, no groups each row moves between two points of  the same
                           [min(low, 0), max(high, 0)]:
                           m (max(high, 0) - min(low, 0))
    replace_one, groups    each row leaves one group and enters  all leave one and enter one
                           another: 2 m r                        other, or all stay and move as
                                                                 without groups: the larger of
                                                                 sqrt(2) m r and that

Rows that partly stay and partly leave move less in L2: the square is convex in their number.

Brute-force tests check these over all neighbours of small tables.
"""

from dataclasses import dataclass
from fractions import Fraction

from app.data.card import Card

AggregateTerms = tuple[tuple[int, int], ...]  # (coefficient, index of the aggregate in the tally)


@dataclass(frozen=True, slots=True)
class Measure:
    """An integer vector over the groups, exact = sum of coefficient * aggregate.

    With `more_vectors` it is several such vectors of one grid, concatenated. Changes are those
    of the long vector, and noise of one scale goes on all of it.

    `sensitivity`, `sensitivity_squared` and `share` together state which part of the loss this
    measure takes. If neighbours change measure i by d_i in L1 and e_i in L2, then sum over i of
    share_i * d_i / sensitivity_i <= 1 and of share_i * e_i^2 / sensitivity_squared_i <= 1."""

    name: str
    terms: AggregateTerms
    sensitivity: int
    share: Fraction
    grid_exponent: int  # one step is worth 2^-grid_exponent
    sensitivity_l2_squared: int = 0  # 0 stands for sensitivity^2, which always holds
    single_cell: bool = False  # true if a person moves only one number
    more_vectors: tuple[AggregateTerms, ...] = ()

    @property
    def vectors(self) -> tuple[AggregateTerms, ...]:
        return (self.terms, *self.more_vectors)

    @property
    def sensitivity_squared(self) -> int:
        return self.sensitivity_l2_squared or self.sensitivity**2


def sensitivity_l1(card: Card, *, low: int, high: int, grouped: bool) -> int:
    reach = max(abs(low), abs(high))
    rows = card.person.rows_max
    if card.neighbours == "add_remove":
        return rows * reach
    if grouped:
        return 2 * rows * reach
    return rows * (max(high, 0) - min(low, 0))


def row_measure(
    card: Card, name: str, *, low: int, high: int, grouped: bool, grid_exponent: int
) -> Measure:
    """Measure of a single aggregate: a count of rows, or the sum of a column."""
    sensitivity = sensitivity_l1(card, low=low, high=high, grouped=grouped)
    moving = grouped and card.neighbours == "replace_one"
    square = sensitivity**2
    if moving:
        staying = sensitivity_l1(card, low=low, high=high, grouped=False)
        square = max(sensitivity**2 // 2, staying**2)
    in_one = not grouped or (card.person.rows_max == 1 and not moving)
    return Measure(name, ((1, 0),), sensitivity, Fraction(1), grid_exponent, square, in_one)
