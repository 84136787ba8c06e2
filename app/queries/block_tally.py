"""Blocks of rows: the assignment of rows to blocks, and the statistic of each block.

A row is represented by its readings, a few integers. Rows with equal readings are interchangeable.
So three things select a block: the readings, the row's number k among the rows with the same
readings, and a secret seed. The result of a block is computed from the readings of its rows alone.

Theorem: for every seed and every hash, tables that differ by one counted row have blocks that
differ in one.
Proof: let r be the row's readings, and c the number of rows that had the same. The table with it
holds (r, 1) to (r, c + 1), the table without it (r, 1) to (r, c). For all other readings both hold
the same pairs, and the block of a pair depends on the pair alone. So blocks differ by one pair.

The readings must be everything that is read. For rows (r, s), blocks by r alone would let the
storage order decide which s is the k-th. Then one row more could move every s of that r.

Where a person may have several rows, a keyed hash of the person selects the block of all their
rows.

Theorem: for every such hash, tables that differ by one person have blocks that differ in one. The
block of a row depends on its person alone, and the rows of a person do not depend on anybody else.
So all blocks except the person's own are unchanged. Two persons with the same hash share a block;
the proof still holds.

(The number of a person's first row would be no such hash: it changes if an earlier person is
removed.)
"""

from dataclasses import dataclass

from app.queries.tally import CategoryIndex, CentredBucket, Condition, CountRows, EqualsValue, Tally


@dataclass(frozen=True, slots=True)
class Steps:
    """The value in integer steps of its column's grid."""

    column: str


@dataclass(frozen=True, slots=True)
class Meets:
    """1 in a row that meets a condition, else 0."""

    condition: Condition


RowReading = Steps | CentredBucket | EqualsValue | CategoryIndex | Meets


@dataclass(frozen=True, slots=True)
class AtRanks:
    """The first reading at ranks. A share a / b stands for the rank min(n, max(1, ceil(a n /
    b)))."""

    shares: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Trimmed:
    """n, and the sum of the first reading from rank cut + 1 to n - cut.

    cut = n a // b for the share a / b that is trimmed from either end."""

    share: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Added:
    """n, and the sum of each product of readings, given by their indices.

    The planner ensures that no product overflows."""

    products: tuple[tuple[int] | tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Commonest:
    """The most frequent first reading; in a tie, the least."""


Given = AtRanks | Trimmed | Added | Commonest


@dataclass(frozen=True, slots=True)
class BlockTally:
    """Request for one result per block of the rows that meet a condition.

    A row with a missing reading is in no block, and a block without rows returns nothing."""

    where: Condition | None
    blocks: int
    readings: tuple[RowReading, ...]
    given: Given
    persons: bool = False  # true if a person may have several rows, so that blocks are of persons

    @property
    def tally(self) -> Tally:
        """Number of rows."""
        return Tally(self.where, (), (CountRows(),))


BlockCounts = list[tuple[int, ...]]  # index of the block first
