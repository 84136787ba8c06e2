"""Overlap of conditions: the sets of conditions one row can meet, from the card alone.

Every condition compares single columns with public values. So the values of a column fall into
pieces that no comparison separates: each named category or text, all others together, and the
missing values. An ordered column has the points and gaps between the compared values. Columns are
independent: a row can have any piece of each. So the possible rows are the product of the pieces,
and each member of the product is evaluated at one representative value per piece.

The result is exact, hence never too small. A piece of an ordered column begins at the low bound, at
a compared value or right after one, and its least value represents it. "Right after" is the next
integer, double or day, as rows are stored (`engines/sql/layout.py`).
"""

import datetime
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.data.card import Card
from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    IntegerColumn,
    NumberColumn,
    TextColumn,
)
from app.queries.tally import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    IsMissing,
    Negation,
    OneOf,
    Scalar,
)

Bits = np.ndarray[Any, np.dtype[np.bool_]]
PIECES_MAX = 200_000  # limit on the size of the product
_OTHERS = object()  # represents every category or text that no condition names


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of a column, each by a representative value, in order; the last, None, is missing.

    Those of an ordered column are sorted: each is from its value to below the next."""

    column: Column
    values: tuple[Any, ...]
    places: dict[Any, int]

    @property
    def ordered(self) -> bool:
        return not isinstance(self.column, CategoryColumn | BooleanColumn | TextColumn)

    def place(self, value: Any) -> int | None:
        """Index of the piece of rows with this compared value; None if no row can have it."""
        return self.places.get(value)

    def __len__(self) -> int:
        return len(self.values) + 1


def pieces_of(conditions: Iterable[Condition], card: Card) -> tuple[Pieces, ...]:
    """Pieces of every column that a condition uses, in the card's order."""
    named: dict[str, set[Scalar]] = {}
    for condition in conditions:
        _collect(condition, named)
    columns = [column for column in card.columns if column.name in named]
    all_pieces = []
    for column in columns:
        values = _standing(column, named[column.name])
        all_pieces.append(Pieces(column, values, {value: i for i, value in enumerate(values)}))
    return tuple(all_pieces)


def product_size(pieces: tuple[Pieces, ...]) -> int:
    return math.prod(map(len, pieces))


def met_by(
    conditions: tuple[Condition, ...], pieces: tuple[Pieces, ...], where: Condition | None
) -> Bits:
    """For each condition (first index) and possible row (second): true if it and `where` are
    met."""
    axes = {piece.column.name: (axis, piece) for axis, piece in enumerate(pieces)}
    shape = tuple(map(len, pieces))
    kept = _evaluate(where, axes) if where is not None else np.ones((), dtype=bool)
    met = np.empty((len(conditions), product_size(pieces)), dtype=bool)
    for row, condition in zip(met, conditions, strict=True):
        row[:] = np.broadcast_to(_evaluate(condition, axes) & kept, shape).reshape(-1)
    return met


def distinct(met: Bits) -> Bits:
    """Distinct nonempty sets of conditions that rows can meet: matrix columns, each once."""
    packed = np.ascontiguousarray(np.packbits(met, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    _, first = np.unique(keys, return_index=True)
    chosen = met[:, np.sort(first)]
    return chosen[:, chosen.any(axis=0)]


def _collect(condition: Condition, named: dict[str, set[Scalar]]) -> None:
    match condition:
        case AllOf() | AnyOf():
            for part in condition.parts:
                _collect(part, named)
        case Negation():
            _collect(condition.part, named)
        case Compare():
            named.setdefault(condition.column, set()).add(condition.value)
        case OneOf():
            named.setdefault(condition.column, set()).update(condition.values)
        case IsMissing():
            named.setdefault(condition.column, set())


def _standing(column: Column, named: set[Any]) -> tuple[Any, ...]:
    match column:
        case CategoryColumn():
            listed = tuple(value for value in column.values if value in named)
            return listed if len(listed) == len(column.values) else (*listed, _OTHERS)
        case BooleanColumn():
            return False, True
        case TextColumn():
            return (*sorted(named), _OTHERS)
        case IntegerColumn():
            starts = {
                bound for value in named for bound in (math.ceil(value), math.floor(value) + 1)
            }
        case NumberColumn():
            doubles = map(float, named)  # as they are compared with stored values
            starts = {bound for v in doubles for bound in (v, math.nextafter(v, math.inf))}
        case _:
            last = datetime.date.max
            one = datetime.timedelta(days=1)
            starts = {bound for v in named for bound in (v, v + one if v < last else v)}
    inside = {start for start in starts if column.low <= start <= column.high}
    return tuple(sorted({column.low, *inside}))


def _evaluate(condition: Condition, axes: dict[str, tuple[int, Pieces]]) -> Bits:
    """Result along the axes of the columns it uses, and of length one along the others."""
    match condition:
        case AllOf():
            return _folded(np.logical_and, True, condition.parts, axes)
        case AnyOf():
            return _folded(np.logical_or, False, condition.parts, axes)
        case Negation():
            return np.logical_not(_evaluate(condition.part, axes))
        case _:
            axis, pieces = axes[condition.column]
            along = np.zeros(len(pieces), dtype=bool)
            _compare(condition, pieces, along)
            return along.reshape([-1 if i == axis else 1 for i in range(len(axes))])


def _folded(
    combine: Any, nothing: bool, parts: tuple[Condition, ...], axes: dict[str, tuple[int, Pieces]]
) -> Bits:
    result: Bits = np.full([1] * len(axes), nothing)
    for part in parts:
        result = combine(result, _evaluate(part, axes))
    return result


def _compare(condition: Compare | OneOf | IsMissing, pieces: Pieces, along: Bits) -> None:
    """Mark the pieces in which the condition is met.

    A missing value meets no condition except IsMissing."""
    values = pieces.values
    match condition:
        case IsMissing():
            along[-1] = True
        case OneOf():
            for value in condition.values:
                _mark_equal(value, pieces, along)
        case Compare(sign="=="):
            _mark_equal(condition.value, pieces, along)
        case Compare(sign="!="):
            _mark_equal(condition.value, pieces, along)
            along[:-1] = ~along[:-1]
        case Compare():
            value = _stored(condition.value, pieces)
            below, through = bisect_left(values, value), bisect_right(values, value)
            match condition.sign:
                case "<":
                    along[:below] = True
                case "<=":
                    along[:through] = True
                case ">":
                    along[through : len(values)] = True
                case _:
                    along[below : len(values)] = True


def _mark_equal(value: Scalar, pieces: Pieces, along: Bits) -> None:
    """Mark the piece of a compared value, if such a value can be stored at all."""
    index = pieces.place(_stored(value, pieces))
    if index is not None:
        along[index] = True


def _stored(value: Scalar, pieces: Pieces) -> Any:
    return float(value) if isinstance(pieces.column, NumberColumn) else value  # type: ignore[arg-type]
