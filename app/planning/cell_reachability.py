"""A condition evaluated for whole cells at once: where it can hold, and where it must.

`can` holds the cells in which some row could meet the condition, and is never too small; `must`
those in which every row does, and is never too large. Negation exchanges them. Both are exact for
one comparison with the cell column; of another column nothing is known; `AllOf` may keep a cell
whose rows meet each part but not all together. Whatever is said of every row of a cell that nobody
can be in is true, so such cells are in no `can` and in every `must`.
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
    """Where a condition holds, in the cells that `partition` makes of `column`."""
    every, empty = partition.every, partition.empty
    match condition:
        case AllOf():
            can, must = every & ~empty, every
            for part in condition.parts:
                each = reach(part, column, partition)
                can, must = can & each.possible, must & each.certain
            return CellReachability(can, must)
        case AnyOf():
            can, must = 0, empty
            for part in condition.parts:
                each = reach(part, column, partition)
                can, must = can | each.possible, must | each.certain
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
    """Never true of a missing value, so the last cell is in neither set."""
    if sign == "==":
        return _one_of((value,), partition)
    present = partition.every & ~partition.missing & ~partition.empty
    if sign == "!=":
        equal = _one_of((value,), partition)
        return CellReachability(
            present & ~equal.certain, (present & ~equal.possible) | partition.empty
        )
    if not partition.ordered:  # no filter asks for the order of categories: nothing is claimed
        return CellReachability(present, partition.empty)
    compared = _ORDER[sign]
    can, must = 0, partition.empty
    for i, values in enumerate(partition.cells):
        if values is not None:  # between least and greatest the comparison turns at most once
            ends = compared(values.least, value), compared(values.greatest, value)
            can |= any(ends) << i
            must |= all(ends) << i
    return CellReachability(can, must)


def _one_of(listed: tuple[Scalar, ...], partition: Partition) -> CellReachability:
    places = (partition.place(value) for value in set(listed))
    found = Counter(place for place in places if place is not None)
    filled = (place for place, count in found.items() if count == _count(partition, place))
    return CellReachability(as_set(found), as_set(filled) | partition.empty)


def _count(partition: Partition, place: int) -> int | None:
    values = partition.cells[place]
    return None if values is None else values.count
