"""Conditions evaluated for whole cells: the cells where a condition can hold, and where it must.

`possible` holds the cells in which some row could meet the condition, and is never too small.
`certain` holds those in which every row does, and is never too large. Negation exchanges them. Both
are exact for one comparison with the cell column; for another column nothing is known. `AllOf` may
keep a cell whose rows meet each part but not all together. Every statement about all rows of an
empty cell is true. So cells that no row can be in are in no `possible` and in every `certain`.
"""

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.planning.partition import Partition, as_set
from app.queries.tally import (
    AllOf,
    AnyOf,
    Compare,
    ComparisonSign,
    Condition,
    IsMissing,
    Negation,
    OneOf,
    Scalar,
)

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class CellReachability:
    possible: int
    certain: int


def reach(condition: Condition, column: str, partition: Partition) -> CellReachability:
    """Cells where a condition can and must hold, in the partition of `column`."""
    every, empty = partition.every, partition.empty
    match condition:
        case AllOf():
            can, must = every & ~empty, every
            for part in condition.parts:
                inner = reach(part, column, partition)
                can, must = can & inner.possible, must & inner.certain
            return CellReachability(can, must)
        case AnyOf():
            can, must = 0, empty
            for part in condition.parts:
                inner = reach(part, column, partition)
                can, must = can | inner.possible, must | inner.certain
            return CellReachability(can, must)
        case Negation():
            inner = reach(condition.part, column, partition)
            return CellReachability(
                possible=every & ~inner.certain, certain=every & ~inner.possible
            )
        case _ if condition.column != column:
            return CellReachability(every & ~empty, empty)
        case Compare():
            return _compare(condition.sign, condition.value, partition)
        case OneOf():
            return _one_of(condition.values, partition)
        case IsMissing():
            return CellReachability(partition.missing, partition.missing | empty)


def _compare(sign: ComparisonSign, value: Scalar, partition: Partition) -> CellReachability:
    """Cells for one comparison, which is false for a missing value: the last cell is in neither
    set."""
    if sign == "==":
        return _one_of((value,), partition)
    present = partition.every & ~partition.missing & ~partition.empty
    if sign == "!=":
        equal = _one_of((value,), partition)
        return CellReachability(
            present & ~equal.certain, (present & ~equal.possible) | partition.empty
        )
    if not partition.ordered:  # no filter compares the order of categories: claim nothing
        return CellReachability(present, partition.empty)
    compared = _ORDER[sign]
    can, must = 0, partition.empty
    for i, values in enumerate(partition.cells):
        if values is not None:  # between least and greatest the comparison changes at most once
            ends = compared(values.least, value), compared(values.greatest, value)
            can |= any(ends) << i
            must |= all(ends) << i
    return CellReachability(can, must)


def _one_of(listed: tuple[Scalar, ...], partition: Partition) -> CellReachability:
    places = (partition.place(value) for value in set(listed))
    counts = Counter(cell for cell in places if cell is not None)
    filled = (cell for cell, count in counts.items() if count == _count(partition, cell))
    return CellReachability(as_set(counts), as_set(filled) | partition.empty)


def _count(partition: Partition, cell: int) -> int | None:
    values = partition.cells[cell]
    return None if values is None else values.count
