"""What a query releases: whole-number measures, and how far one person can move each of them.

One row's contribution to a measure lies between `low` and `high` when the row counts and is 0 when
it does not (filtered out, value missing, in no group). A person has at most m rows. So, in the L1
norm over all groups:

    add_remove             m rows appear or vanish, each by at most max(|low|, |high|):
                           m * max(|low|, |high|)
    replace_one, no groups each of m rows moves between two points of [min(low, 0), max(high, 0)]:
                           m * (max(high, 0) - min(low, 0))
    replace_one, groups    each of m rows leaves one group and enters another:
                           2 * m * max(|low|, |high|)

These are tested by brute force over all neighbours of small tables.
"""

from dataclasses import dataclass
from fractions import Fraction

from app.datasets import Card


@dataclass(frozen=True, slots=True)
class Measure:
    """A whole-number vector over the groups, exact = sum of coefficient * aggregate.

    `sensitivity` and `share` say together how much of the loss this measure takes: if neighbours
    change measure i by d_i in L1, then sum over i of share_i * d_i / sensitivity_i <= 1.
    """

    name: str
    terms: tuple[tuple[int, int], ...]  # (coefficient, index of the aggregate in the tally)
    sensitivity: int
    share: Fraction
    grid_exponent: int  # one step is worth 2^-grid_exponent


def sensitivity_l1(card: Card, *, low: int, high: int, grouped: bool) -> int:
    reach = max(abs(low), abs(high))
    rows = card.person.rows_max
    if card.neighbours == "add_remove":
        return rows * reach
    if grouped:
        return 2 * rows * reach
    return rows * (max(high, 0) - min(low, 0))
