"""The small vocabulary of exact statistics that engines render.

A query is asked of an engine as one Tally: which rows, in which public groups, counted or added up
how. What comes back is whole numbers, one for each aggregate and group; noise comes later and
elsewhere. Where the groups are not public it is a KeyTally, and what comes back is private even in
which keys there are. Conditions are two-valued: a comparison with a missing value is false, and
`Negation` turns it into true.
"""

import datetime
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, Literal, NamedTuple

import numpy as np
from typing_extensions import override

Scalar = bool | int | float | str | datetime.date
ComparisonSign = Literal["==", "!=", "<", "<=", ">", ">="]
PRODUCT_SIZE = 3  # what one product takes of memory, and what is measured of it, beside a value


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
    """One group for each public value, in the card's order; other rows are in no group, unless
    those that are missing are a last group of their own."""

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
    """One group for each interval [edge, next edge); the last one holds its upper edge too."""

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
    """How many rows."""


@dataclass(frozen=True, slots=True)
class CountPresent:
    """How many rows in which the column is not missing."""

    column: str


@dataclass(frozen=True, slots=True)
class SumSteps:
    """The sum of the column in whole steps of its grid; a missing value adds nothing."""

    column: str


@dataclass(frozen=True, slots=True)
class CountWhere:
    """How many rows meet one more condition."""

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
    """The sum over rows of one whole number or of the product of two; a row in which one of them is
    missing adds nothing. The planner sees to it that nothing overflows."""

    factors: tuple[Factor] | tuple[Factor, Factor]


@dataclass(frozen=True, slots=True)
class Persons:
    """How many persons have a row, in which the column, if one is named, is not missing."""

    column: str | None = None


@dataclass(frozen=True, slots=True)
class PersonTotal:
    """The sum over persons of what each has: the total of the column over the person's rows in the
    group, in whole steps, clamped to [low, high]. Who has no value adds nothing."""

    column: str
    low: int
    high: int


OfPersons = Persons | PersonTotal
Aggregate = CountRows | CountPresent | SumSteps | CountWhere | Product | OfPersons


@dataclass(frozen=True, slots=True)
class Split:
    """One group for each listed set of conditions that a row meets, as a whole number whose bit i
    stands for condition i. A row that meets another set is in no group, so none is in two."""

    conditions: tuple[Condition, ...]
    signatures: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Aggregates over the rows that meet a condition, for each public group.

    The groups are the product of the groupings, the last one turning fastest, or those of a split;
    with none there is one group, the whole selection. A group with no rows counts zero and is
    present all the same.

    Aggregates of persons stand by themselves, without a split, and are about one column or none.
    With `groups_max` a person is in so many groups at most: those of the first of the rows that
    count, in the person's own order (`engines/sql/cleaning.py`), which no other person has a part
    in.
    """

    where: Condition | None
    groups: tuple[Grouping, ...]
    aggregates: tuple[Aggregate, ...]
    split: Split | None = None
    groups_max: int | None = None
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    @override
    def __hash__(self) -> int:
        """Worked out once: what is at hand is looked up by it with every question of a plan."""
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
        """How many comparisons its conditions have, over all aggregates and groups."""
        met = sum(
            _listed(each.condition) for each in self.aggregates if isinstance(each, CountWhere)
        )
        split = 0 if self.split is None else sum(map(_listed, self.split.conditions))
        return met + split + (0 if self.where is None else _listed(self.where))

    def edges(self) -> int:
        """How many bin edges its groups have."""
        return sum(len(each.edges) for each in self.groups if isinstance(each, ByEdges))

    def size(self) -> int:
        """How many values it lists: large ones are not kept in memory."""
        products = sum(isinstance(each, Product) for each in self.aggregates)
        signatures = 0 if self.split is None else len(self.split.signatures)
        return self.edges() + self.leaves() + PRODUCT_SIZE * products + signatures

    def group_labels(self) -> list[dict[str, Any]]:
        names = [grouping.column for grouping in self.groups]
        labels = [grouping.labels() for grouping in self.groups]
        return [dict(zip(names, combined, strict=True)) for combined in product(*labels)]


def _listed(condition: Condition) -> int:
    match condition:
        case OneOf():
            return len(condition.values)
        case AllOf() | AnyOf():
            return sum(map(_listed, condition.parts))
        case Negation():
            return _listed(condition.part)
        case _:
            return 1


Exact = tuple[tuple[int, ...], ...]  # for each aggregate, one whole number for each group


@dataclass(frozen=True, slots=True)
class StepHistogram:
    """How many rows meet a condition and have a value of a column within one of several ranges,
    both ends included, in whole steps of its grid: for each stretch of 2^shift steps, counted from
    `low`, that any row is in. Ranges are apart from each other, in order, and none begins below
    `low`. A missing value is in none. Which stretches come back is private."""

    where: Condition | None
    column: str
    low: int
    shift: int
    ranges: tuple[tuple[int, int], ...]


StepCounts = list[tuple[int, int]]  # the place of the stretch, and how many rows; in order


@dataclass(frozen=True, slots=True)
class GraphCountsRequest:
    """What is counted of the graph whose edges are the rows that meet a condition: `ends` are the
    columns of their nodes."""

    where: Condition | None
    ends: tuple[str, str]

    @property
    def tally(self) -> Tally:
        """How many edges."""
        return Tally(self.where, (), (CountRows(),))


class GraphCounts(NamedTuple):
    triangles: int
    common: int  # the most neighbours that two nodes have in common, be they joined or not


@dataclass(frozen=True, slots=True)
class CategoryIndex:
    """Where the value stands among the card's; of a boolean 0 for false and 1 for true."""

    column: str


@dataclass(frozen=True, slots=True)
class Records:
    """Whole numbers of each row that meets a condition and in which no column is missing, in no
    order: for what is computed row by row and not by the engine."""

    where: Condition | None
    columns: tuple[CentredBucket | CategoryIndex, ...]


Matrix = np.ndarray[Any, np.dtype[np.int64]]  # of records: a line for each row, a column for each


@dataclass(frozen=True, slots=True)
class KeyCountsRequest:
    """How many rows, or persons, have each text of a column that any row has, in each of the public
    groups of `tally`, whose rows are those that count. A missing text is none."""

    tally: Tally
    column: str
    persons: bool = False


# For so many keys: the place of the public group, the text, and how many. Each key comes once.
KeyBatch = list[tuple[int, str, int]]
