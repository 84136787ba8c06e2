"""A reference for tallies in plain Python: slow, exact, and independent of the SQL."""

import math
import operator
from fractions import Fraction
from typing import Any

from app.data.card import Card
from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    IntegerColumn,
    NumberColumn,
)
from app.data.expressions import evaluate
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
    IsMissing,
    Negation,
    OneOf,
    Persons,
    PersonTotal,
    Product,
    SumSteps,
    Tally,
)

SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def fitted(column: Column, value: Any) -> Any:
    """The value after clamping and type conversion by the card."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    match column:
        case IntegerColumn() | NumberColumn() | DateColumn():
            return min(max(value, column.low), column.high)
        case CategoryColumn():
            return value if value in column.values else None
        case BooleanColumn():
            return value


def fitted_row(card: Card, raw: dict[str, Any]) -> dict[str, Any]:
    """Every column of a row; derived columns are computed from the stored values of the others."""
    row = {
        column.name: fitted(column, raw[column.name])
        for column in card.columns
        if not column.derived
    }
    held = dict(row)
    for column in card.columns:
        if isinstance(column, NumberColumn) and not column.derived and row[column.name] is not None:
            held[column.name] = math.ldexp(steps(column, row[column.name]), -column.grid_exponent)
    for column in card.columns:
        if column.derived:
            value = evaluate(column.derived, held)
            whole = isinstance(column, IntegerColumn) and value is not None
            row[column.name] = fitted(column, math.floor(value) if whole else value)
    return row


def holds(condition: Condition | None, row: dict[str, Any]) -> bool:
    match condition:
        case None:
            return True
        case Compare():
            value = row[condition.column]
            return value is not None and bool(SIGNS[condition.sign](value, condition.value))
        case OneOf():
            value = row[condition.column]
            return value is not None and value in condition.values
        case IsMissing():
            return row[condition.column] is None
        case AllOf():
            return all(holds(part, row) for part in condition.parts)
        case AnyOf():
            return any(holds(part, row) for part in condition.parts)
        case Negation():
            return not holds(condition.part, row)


def groups_of(tally: Tally, row: dict[str, Any]) -> int | None:
    if tally.split is not None:
        met = [holds(condition, row) for condition in tally.split.conditions]
        signature = sum(1 << i for i, each in enumerate(met) if each)
        listed = tally.split.signatures
        return listed.index(signature) if signature in listed else None
    group = 0
    for grouping in tally.groups:
        value = row[grouping.column]
        if isinstance(grouping, ByEdges):
            edges: list[Any] = list(grouping.edges)
            last = len(edges) - 2
            inside = [
                i
                for i in range(last + 1)
                if value is not None
                and (edges[i] <= value < edges[i + 1] or (i == last and value == edges[-1]))
            ]
            count = last + 1
        else:
            inside = [i for i, label in enumerate(grouping.labels()) if value == label]
            count = len(grouping.labels())
        if not inside:
            return None
        group = group * count + inside[0]
    return group


def steps(column: Column, value: Any) -> int:
    assert isinstance(column, IntegerColumn | NumberColumn)
    if isinstance(column, IntegerColumn):
        return int(value)
    return math.floor(Fraction(value) * Fraction(2) ** column.grid_exponent)


def whole(card: Card, factor: Factor, row: dict[str, Any]) -> int:
    if isinstance(factor, EqualsValue):
        return int(row[factor.column] == factor.value)
    column = card.column(factor.column)
    assert column is not None
    return (steps(column, row[factor.column]) - factor.low) // factor.grain - factor.centre


def reference(card: Card, rows: list[dict[str, Any]], tally: Tally) -> Exact:
    results = [[0] * tally.group_count() for _ in tally.aggregates]
    for raw in rows:
        row = fitted_row(card, raw)
        group = groups_of(tally, row)
        if group is None or not holds(tally.where, row):
            continue
        for result, aggregate in zip(results, tally.aggregates, strict=True):
            match aggregate:
                case CountRows():
                    result[group] += 1
                case CountPresent():
                    result[group] += row[aggregate.column] is not None
                case SumSteps():
                    column = card.column(aggregate.column)
                    assert column is not None
                    if row[column.name] is not None:
                        result[group] += steps(column, row[column.name])
                case Persons():  # each row is one person
                    named = aggregate.column
                    result[group] += named is None or row[named] is not None
                case PersonTotal():
                    column = card.column(aggregate.column)
                    assert column is not None
                    if row[column.name] is not None:
                        total = steps(column, row[column.name])
                        result[group] += min(max(total, aggregate.low), aggregate.high)
                case CountWhere():
                    result[group] += holds(aggregate.condition, row)
                case Product():
                    if all(row[factor.column] is not None for factor in aggregate.factors):
                        parts = (whole(card, factor, row) for factor in aggregate.factors)
                        result[group] += math.prod(parts)
    return tuple(tuple(result) for result in results)
