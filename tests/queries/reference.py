"""A reference for tallies and measures in plain Python: slow, exact, and without SQL."""

import math
import operator
from fractions import Fraction
from typing import Any

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.queries.shapes.sums import SumShape
from app.queries.tally import (
    AllOf,
    AnyOf,
    ByEdges,
    Compare,
    Condition,
    CountPresent,
    CountRows,
    CountWhere,
    EqualsValue,
    Exact,
    Factor,
    Grouping,
    IsMissing,
    Negation,
    OneOf,
    Persons,
    PersonTotal,
    Product,
    SumSteps,
    Tally,
)

Row = dict[str, Any]
Vectors = tuple[tuple[int, ...], ...]  # for each measure, one integer per group
SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(condition: Condition | None, row: Row) -> bool:
    match condition:
        case None:
            return True
        case Compare(column, sign, value):
            return row[column] is not None and bool(SIGNS[sign](row[column], value))
        case OneOf(column, values):
            return row[column] is not None and row[column] in values
        case IsMissing(column):
            return row[column] is None
        case AllOf(parts):
            return all(holds(part, row) for part in parts)
        case AnyOf(parts):
            return any(holds(part, row) for part in parts)
        case Negation(part):
            return not holds(part, row)


def group_index(grouping: Grouping, row: Row) -> int | None:
    value = row[grouping.column]
    if value is None:
        kept = not isinstance(grouping, ByEdges) and grouping.missing
        return len(grouping.labels()) - 1 if kept else None
    if not isinstance(grouping, ByEdges):
        return grouping.values.index(value) if value in grouping.values else None
    edges: list[Any] = list(grouping.edges)
    if value == edges[-1]:
        return len(edges) - 2
    inside = [i for i in range(len(edges) - 1) if edges[i] <= value < edges[i + 1]]
    return inside[0] if inside else None


def in_steps(card: Card, name: str, value: Any) -> int:
    column = card.column(name)
    assert isinstance(column, IntegerColumn | NumberColumn)
    return math.floor(Fraction(value) * Fraction(2) ** column.grid_exponent)


def whole(card: Card, factor: Factor, row: Row) -> int:
    value = row[factor.column]
    if isinstance(factor, EqualsValue):
        return int(value == factor.value)
    steps = in_steps(card, factor.column, value)
    return (steps - factor.low) // factor.grain - factor.centre


def tallied(card: Card, tally: Tally, rows: list[Row]) -> Exact:
    """The tally of rows that fit the card."""
    results = [[0] * tally.group_count() for _ in tally.aggregates]
    for row in rows:
        group: int | None = 0
        for grouping in tally.groups:
            inside = group_index(grouping, row)
            if inside is None or group is None:
                group = None
            else:
                group = group * len(grouping.labels()) + inside
        if tally.split is not None:
            met = sum(holds(part, row) << i for i, part in enumerate(tally.split.conditions))
            listed = tally.split.signatures
            group = listed.index(met) if met in listed else None
        if group is None or not holds(tally.where, row):
            continue
        for result, aggregate in zip(results, tally.aggregates, strict=True):
            match aggregate:
                case CountRows():
                    result[group] += 1
                case CountPresent(column):
                    result[group] += row[column] is not None
                case SumSteps(column):
                    if row[column] is not None:
                        result[group] += in_steps(card, column, row[column])
                case Persons() | PersonTotal():
                    raise TypeError("persons are distinguished elsewhere")
                case CountWhere(condition):
                    result[group] += holds(condition, row)
                case Product(factors):
                    if all(row[factor.column] is not None for factor in factors):
                        result[group] += math.prod(whole(card, factor, row) for factor in factors)
    return tuple(map(tuple, results))


def measured(card: Card, shape: SumShape, rows: list[Row]) -> Vectors:
    exact = tallied(card, shape.tally, rows)
    return tuple(
        tuple(
            sum(coefficient * exact[index][group] for coefficient, index in terms)
            for terms in measure.vectors
            for group in range(shape.tally.group_count())
        )
        for measure in shape.measures
    )
