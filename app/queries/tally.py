"""Small vocabulary of exact statistics that engines render.

A query asks an engine for one Tally: which rows, in which public groups, counted or added up how.
The engine returns integers, one for each aggregate and group; other modules add noise later. Where
the groups are not public the request is a KeyCountsRequest, and even the set of returned keys is
private. Conditions are two-valued: a comparison with a missing value is false, and `Negation` turns
it into true.
"""

import datetime
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, Literal, NamedTuple

import numpy as np
from typing_extensions import override

Scalar = bool | int | float | str | datetime.date
ComparisonSign = Literal["==", "!=", "<", "<=", ">", ">="]
PRODUCT_SIZE = 3  # memory of one product, relative to one value


@dataclass(frozen=True, slots=True)
class Compare:
    column: str
    sign: ComparisonSign
    value: Scalar


@dataclass(frozen=True, slots=True)
class OneOf:
    column: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class IsMissing:
    column: str


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Negation:
    part: "Condition"


Condition = Compare | OneOf | IsMissing | AllOf | AnyOf | Negation


@dataclass(frozen=True, slots=True)
class ByValues:
    """One group for each public value, in the card's order.

    Other rows are in no group, unless missing values form a last group of their own."""

    column: str
    values: tuple[str, ...] | tuple[bool, ...]
    missing: bool = False

    @property
    def count(self) -> int:
        return len(self.values) + self.missing

    def labels(self) -> list[Any]:
        return [*self.values, None] if self.missing else list(self.values)


@dataclass(frozen=True, slots=True)
class ByEdges:
    """One group for each interval [edge, next edge); the last one includes its upper edge."""

    column: str
    edges: tuple[float, ...] | tuple[datetime.date, ...]

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    def labels(self) -> list[Any]:
        plain = [e.isoformat() if isinstance(e, datetime.date) else e for e in self.edges]
        return [{"from": low, "to": high} for low, high in pairwise(plain)]


Grouping = ByValues | ByEdges


@dataclass(frozen=True, slots=True)
class CountRows:
    """Number of rows."""


@dataclass(frozen=True, slots=True)
class CountPresent:
    """Number of rows in which the column is not missing."""

    column: str


@dataclass(frozen=True, slots=True)
class SumSteps:
    """Sum of the column in integer steps of its grid; a missing value adds nothing."""

    column: str


@dataclass(frozen=True, slots=True)
class CountWhere:
    """Number of rows that meet one more condition."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class CentredBucket:
    """(steps - low) // grain - centre, where `low` is the column's low bound in steps."""

    column: str
    low: int
    grain: int
    centre: int


@dataclass(frozen=True, slots=True)
class EqualsValue:
    """1 where the column has the value, else 0."""

    column: str
    value: str | bool


Factor = CentredBucket | EqualsValue


@dataclass(frozen=True, slots=True)
class Product:
    """Sum over rows of one integer or of the product of two.

    A row in which one of them is missing adds nothing. The planner ensures that nothing
    overflows."""

    factors: tuple[Factor] | tuple[Factor, Factor]


@dataclass(frozen=True, slots=True)
class Persons:
    """Number of persons with a row; if a column is named, it must not be missing in that row."""

    column: str | None = None


@dataclass(frozen=True, slots=True)
class PersonTotal:
    """Sum over persons of their clamped totals.

    A person's total is the sum of the column over the person's rows in the group, in integer
    steps, clamped to [low, high]. A person without a value adds nothing."""

    column: str
    low: int
    high: int


OfPersons = Persons | PersonTotal
Aggregate = CountRows | CountPresent | SumSteps | CountWhere | Product | OfPersons


@dataclass(frozen=True, slots=True)
class Split:
    """One group for each listed set of conditions that a row meets.

    A set is an integer whose bit i stands for condition i. A row that meets another set is in no
    group, so no row is in two."""

    conditions: tuple[Condition, ...]
    signatures: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Aggregates over the rows that meet a condition, for each public group.

    The groups are the product of the groupings, the last one varying fastest, or those of a
    split. Without either there is one group, the whole selection. A group with no rows is
    present and counts zero.

    Aggregates of persons are never combined with others or with a split, and use at most one
    column.

    With `groups_max` a person is in at most that many groups: those of the first counted rows,
    in the person's own order (`engines/sql/cleaning.py`), which is independent of all other
    persons."""

    where: Condition | None
    groups: tuple[Grouping, ...]
    aggregates: tuple[Aggregate, ...]
    split: Split | None = None
    groups_max: int | None = None
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    @override
    def __hash__(self) -> int:
        """Hash, computed once: caches look up the tallies of every query in a plan."""
        if self._hash is None:
            parts = (self.where, self.groups, self.aggregates, self.split, self.groups_max)
            object.__setattr__(self, "_hash", hash(parts))
            assert self._hash is not None
        return self._hash

    def group_count(self) -> int:
        if self.split is not None:
            return len(self.split.signatures)
        count = 1
        for grouping in self.groups:
            count *= grouping.count
        return count

    def leaves(self) -> int:
        """Number of comparisons in its conditions, over all aggregates and groups."""
        met = sum(listed(one.condition) for one in self.aggregates if isinstance(one, CountWhere))
        split = 0 if self.split is None else sum(map(listed, self.split.conditions))
        return met + split + (0 if self.where is None else listed(self.where))

    def conditional_counts(self) -> int:
        return sum(isinstance(aggregate, CountWhere) for aggregate in self.aggregates)

    def edges(self) -> int:
        """Number of bin edges in its groups."""
        return sum(len(one.edges) for one in self.groups if isinstance(one, ByEdges))

    def size(self) -> int:
        """Number of values it lists; caches do not keep large tallies."""
        products = sum(isinstance(one, Product) for one in self.aggregates)
        signatures = 0 if self.split is None else len(self.split.signatures)
        return self.edges() + self.leaves() + PRODUCT_SIZE * products + signatures

    def group_labels(self) -> list[dict[str, Any]]:
        names = [grouping.column for grouping in self.groups]
        labels = [grouping.labels() for grouping in self.groups]
        return [dict(zip(names, combined, strict=True)) for combined in product(*labels)]


def listed(condition: Condition) -> int:
    """Number of comparisons and listed values."""
    match condition:
        case OneOf():
            return len(condition.values)
        case AllOf() | AnyOf():
            return sum(map(listed, condition.parts))
        case Negation():
            return listed(condition.part)
        case _:
            return 1


Exact = tuple[tuple[int, ...], ...]  # for each aggregate, one integer for each group


@dataclass(frozen=True, slots=True)
class StepHistogram:
    """Histogram of a column in bins of 2^shift steps, counted from `low`, over rows that meet a
    condition.

    Only values within one of the ranges count, both ends included, in integer steps of the
    column's grid. Ranges are disjoint, in order, and none begins below `low`. A missing value is
    in none. Only nonempty bins are returned; the set of returned bins is private."""

    where: Condition | None
    column: str
    low: int
    shift: int
    ranges: tuple[tuple[int, int], ...]


StepCounts = list[tuple[int, int]]  # index of the bin, and its number of rows; in order


@dataclass(frozen=True, slots=True)
class GraphCountsRequest:
    """Request for counts of the graph whose edges are the rows that meet a condition.

    `ends` are the columns of the edges' nodes."""

    where: Condition | None
    ends: tuple[str, str]

    @property
    def tally(self) -> Tally:
        """Number of edges."""
        return Tally(self.where, (), (CountRows(),))


class GraphCounts(NamedTuple):
    triangles: int
    common: int  # largest number of common neighbours of any two nodes, joined or not


@dataclass(frozen=True, slots=True)
class CategoryIndex:
    """Index of the value among the card's; for a boolean 0 for false and 1 for true."""

    column: str


@dataclass(frozen=True, slots=True)
class Records:
    """Integers of each row that meets a condition and has no missing column, in no order.

    They serve computations that run row by row, outside the engine."""

    where: Condition | None
    columns: tuple[CentredBucket | CategoryIndex, ...]


# of records: a matrix row for each row, a matrix column for each column
Matrix = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class KeyCountsRequest:
    """Request for the number of rows, or persons, with each text of a column, in each public group.

    The rows and public groups are those of `tally`. A missing text does not count."""

    tally: Tally
    column: str
    persons: bool = False


# One entry per key: index of the public group, text, and count. Each key occurs once.
KeyBatch = list[tuple[int, str, int]]
