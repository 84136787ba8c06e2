"""What is asked of blocks of rows: which block a row is in, and what is computed of each block.

A row is what is read of it: a few whole numbers, its readings. Rows of the same readings are one as
good as the other, so a block is decided by the readings, the row's number k among those that have
the same ones, and a secret seed. What a block gives is computed of the readings of its rows alone.

Theorem: for every seed and every hash, tables that differ by one row that counts have blocks that
differ in one. Proof: let r be the row's readings, and c the rows that had the same. The table with
it holds (r, 1) to (r, c + 1), the table without it (r, 1) to (r, c), and of all other readings both
hold the same pairs; the block of a pair depends on the pair alone. So blocks differ by one pair.
It must be all that is read: of rows (r, s), blocks by r alone would say which s is the k-th only by
the order that rows are stored in, and one row more could move every s of that r.

Where a person may have several rows, a keyed hash of who they are decides the block of all of them.
Theorem: for every such hash, tables that differ by one person have blocks that differ in one. The
block of a row depends on its person alone, and which of a person's rows there are does not depend
on anybody else; so but for the person's own block all hold what they held. That two persons have
the same hash makes them share a block, and changes nothing of this.
(The number of a person's first row would be no such hash: it is another if somebody before goes.)
"""

from dataclasses import dataclass

from app.queries.tally import CategoryIndex, CentredBucket, Condition, CountRows, EqualsValue, Tally


@dataclass(frozen=True, slots=True)
class Steps:
    """The value in whole steps of its column's grid."""

    column: str


@dataclass(frozen=True, slots=True)
class Meets:
    """1 in a row that meets a condition, else 0."""

    condition: Condition


Reading = Steps | CentredBucket | EqualsValue | CategoryIndex | Meets


@dataclass(frozen=True, slots=True)
class AtRanks:
    """The first reading at ranks, each a share a / b that stands for the rank
    min(n, max(1, ceil(a n / b)))."""

    shares: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Trimmed:
    """n, and the sum of the first reading from rank cut + 1 to n - cut: cut = n a // b for the
    share a / b that is taken away from either end."""

    share: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Added:
    """n, and the sum of each product of readings, which are named by their place; the planner sees
    to it that no product overflows."""

    products: tuple[tuple[int] | tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Commonest:
    """The first reading that most rows have; of several, the least."""


Given = AtRanks | Trimmed | Added | Commonest


@dataclass(frozen=True, slots=True)
class BlockTally:
    """What each block of the rows that meet a condition gives. A row of which a reading is missing
    is in no block, and a block without any row does not come back."""

    where: Condition | None
    blocks: int
    readings: tuple[Reading, ...]
    given: Given
    persons: bool = False  # may they have several rows, so that blocks are of persons

    @property
    def tally(self) -> Tally:
        """How many rows."""
        return Tally(self.where, (), (CountRows(),))


BlockCounts = list[tuple[int, ...]]  # the place of the block first
