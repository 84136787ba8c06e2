"""Bounds of a derived column, from its expression and the bounds of its columns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from app.data.expressions import (
    Arithmetic,
    Cases,
    ColumnValue,
    Expression,
    Fixed,
    Label,
    Lookup,
    Value,
)

FAR, NEAR = 1e100, 1e-100
ROUNDING = 2.0**-54  # lower bound on the relative difference of two distinct doubles


@dataclass(frozen=True, slots=True)
class Bounds:
    """Range of a result, and the least distance from zero of nonzero results."""

    low: float
    high: float
    near: float

    @property
    def size(self) -> float:
        return max(abs(self.low), abs(self.high))


def leaves(expression: Expression) -> list[Label]:
    """The texts and booleans it can return. Raises ValueError if it can return a number too."""
    match expression:
        case Fixed() if isinstance(expression.value, str | bool):
            return [expression.value]
        case Cases():
            parts = [branch.then for branch in expression.branches]
            parts += [] if expression.otherwise is None else [expression.otherwise]
            return [leaf for part in parts for leaf in leaves(part)]
        case Lookup():
            labels = [value for _, value in expression.table if isinstance(value, str | bool)]
            if len(labels) == len(expression.table):
                return labels
    raise ValueError("a derived category or boolean may use only case, lookup and value")


def bounds(expression: Expression, columns: Mapping[str, Bounds]) -> Bounds:
    """Range of the number it returns. Raises ValueError where engines could disagree."""
    match expression:
        case ColumnValue():
            if expression.column not in columns:
                raise ValueError("arithmetic needs declared integer and number columns")
            return columns[expression.column]
        case Fixed():
            return _of_values([expression.value])
        case Lookup():
            return _of_values([value for _, value in expression.table])
        case Cases():
            parts = [bounds(branch.then, columns) for branch in expression.branches]
            if expression.otherwise is not None:
                parts.append(bounds(expression.otherwise, columns))
            return _hull(parts)
        case Arithmetic():
            result, *others = (bounds(part, columns) for part in expression.parts)
            for other in others:
                result = _held(_combined(expression.sign, result, other))
            return result


def _of_values(values: list[Value]) -> Bounds:
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) < len(values):
        raise ValueError("a derived number may use only numbers")
    near = [abs(number) for number in numbers if number != 0]
    return Bounds(min(numbers), max(numbers), min(near, default=1.0))


def _hull(parts: list[Bounds]) -> Bounds:
    return Bounds(
        min(part.low for part in parts),
        max(part.high for part in parts),
        min(part.near for part in parts),
    )


def _combined(sign: str, one: Bounds, other: Bounds) -> Bounds:
    match sign:
        case "add":
            near = min(one.near, other.near) * ROUNDING
            return Bounds(one.low + other.low, one.high + other.high, near)
        case "subtract":
            near = min(one.near, other.near) * ROUNDING
            return Bounds(one.low - other.high, one.high - other.low, near)
        case "multiply":
            corners = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
            return Bounds(min(corners), max(corners), one.near * other.near / 2)
        case _:
            size = one.size / other.near * 2
            return Bounds(-size, size, one.near / max(other.size, other.near) / 2)


def _held(result: Bounds) -> Bounds:
    if not (math.isfinite(result.size) and result.size <= FAR and result.near >= NEAR):
        raise ValueError("a step of the expression could be too large, or too near to zero")
    return result
