"""A Tally as one SQL statement with bound parameters, over a prepared version.

Every identifier is quoted and every value bound. A result row begins with one integer for each
grouping, the code of the row's group. So a result is small and contains only numbers.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Label,
    Select,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.sql.selectable import FromClause

from app.caches import owned_cache
from app.engines.sql.bins import binned
from app.engines.sql.conditions import condition_sql, opened, stored_column
from app.engines.sql.dialects import ExactSum, Quotient, Statement, constant
from app.engines.sql.layout import Layout, has_person_column
from app.engines.sql.person_aggregates import clamped, of_persons
from app.queries.tally import (
    Aggregate,
    ByEdges,
    ByValues,
    Compare,
    CountPresent,
    CountRows,
    CountWhere,
    EqualsValue,
    Factor,
    Grouping,
    OfPersons,
    Persons,
    PersonTotal,
    Product,
    Split,
    SumSteps,
    Tally,
)

KEPT_SIZE_MAX = 1000
MISSING = -1  # code of a missing value where that is a group
BITS = 62  # conditions of a split in one BIGINT
Codes = list[Label[int]]
SqlConditions = list[ColumnElement[bool]]
CodeIndices = list[Mapping[int, int] | range]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The statement, and how to read its rows: a number for each grouping, then the aggregates."""

    statement: Statement
    # For each grouping: group index by number in the result.
    places: tuple[Mapping[int, int] | range, ...]
    group_counts: tuple[int, ...]
    # For a split: group index by the conditions that a row meets, as bits in the leading columns.
    signatures: Mapping[tuple[int, ...], int] | None = None

    @property
    def key_count(self) -> int:
        """Number of leading columns in a result row that identify its group."""
        if self.signatures is None:
            return len(self.group_counts)
        return len(next(iter(self.signatures)))

    def place(self, key: tuple[int, ...]) -> int | None:
        """Index of the group, or None if it was not requested."""
        if self.signatures is not None:
            return self.signatures.get(key)
        index = 0
        for number, places, count in zip(key, self.places, self.group_counts, strict=True):
            if number not in places:
                return None
            index = index * count + places[number]
        return index


def render(layout: Layout, tally: Tally) -> Rendered:
    """The statement of a tally. Compiling takes nearly a millisecond, so small ones are cached.

    Filters that differ only in the numbers and days that they compare with share one statement.
    """
    if tally.size() > KEPT_SIZE_MAX:
        return _render(layout, tally)
    values: dict[str, Any] = {}
    where = None if tally.where is None else opened(tally.where, layout, values)
    kept = _rendered(layout, replace(tally, where=where))
    if not values:
        return kept
    statement = replace(kept.statement, values={**kept.statement.values, **values})
    return replace(kept, statement=statement)


@owned_cache(maxsize=1024)
def _rendered(layout: Layout, tally: Tally) -> Rendered:
    return _render(layout, tally)


def _render(layout: Layout, tally: Tally) -> Rendered:
    factors = _factors(tally)
    rows, codes, conditions, places = grouped_rows(layout, tally, _with_factors(factors, layout))
    if tally.split is not None:
        codes += [code.label(f"g{i}") for i, code in enumerate(_bits(tally.split, layout))]
    if tally.where is not None:
        conditions.append(condition_sql(tally.where, layout))
    counted = any(isinstance(aggregate, OfPersons) for aggregate in tally.aggregates)
    if counted and has_person_column(layout.card):
        statement = of_persons(layout, tally, rows, codes, conditions)
        return compiled(layout, statement, tally, places)
    statement = select(
        *codes, *(_aggregate(aggregate, layout, factors) for aggregate in tally.aggregates)
    )
    statement = statement.select_from(rows)
    if conditions:
        statement = statement.where(and_(*conditions))
    if codes:
        statement = statement.group_by(*(constant(i + 1) for i in range(len(codes))))
    return compiled(layout, statement, tally, places)


def grouped_rows(
    layout: Layout, tally: Tally, rows: FromClause
) -> tuple[FromClause, Codes, SqlConditions, CodeIndices]:
    """Rows to select from, and the parts of a statement that groups them.

    The parts are the code of each grouping (g0, g1, ...), the conditions to be in a group, and the
    group index of each code.
    """
    codes: Codes = []
    conditions: SqlConditions = []
    places: CodeIndices = []
    for number, grouping in enumerate(tally.groups):
        if isinstance(grouping, ByEdges):
            rows, code, inside = binned(rows, grouping, layout, number)
        else:
            code = cast(stored_column(layout, grouping.column), Integer())
            inside = stored_column(layout, grouping.column).is_not(None)
            if grouping.missing:
                code, inside = func.coalesce(code, MISSING), true()
        codes.append(code.label(f"g{number}"))
        conditions.append(inside)
        places.append(_places(grouping, layout))
    return rows, codes, conditions, places


def compiled(
    layout: Layout, statement: Select[*tuple[Any, ...]], tally: Tally, places: CodeIndices
) -> Rendered:
    return Rendered(
        layout.written(statement),
        tuple(places),
        tuple(grouping.count for grouping in tally.groups),
        None if tally.split is None else _signature_places(tally.split),
    )


def _bits(split: Split, layout: Layout) -> list[ColumnElement[int]]:
    """Conditions that a row meets, as the bits of a few integers."""
    codes: list[ColumnElement[int]] = []
    for start in range(0, len(split.conditions), BITS):
        code: ColumnElement[int] = literal_column("0", BigInteger())
        for bit, condition in enumerate(split.conditions[start : start + BITS]):
            value = literal_column(str(1 << bit), BigInteger())
            code = code + case((condition_sql(condition, layout), value), else_=0)
        codes.append(cast(code, BigInteger()))
    return codes


def _signature_places(split: Split) -> dict[tuple[int, ...], int]:
    starts = range(0, len(split.conditions), BITS)
    return {
        tuple(signature >> start & (1 << BITS) - 1 for start in starts): index
        for index, signature in enumerate(split.signatures)
    }


def _places(grouping: Grouping, layout: Layout) -> Mapping[int, int] | range:
    """Group index by number in the result."""
    if isinstance(grouping, ByEdges):
        return range(grouping.count)
    return _value_places(grouping, layout)


def _value_places(grouping: ByValues, layout: Layout) -> dict[int, int]:
    places: dict[int, int] = {}
    values: tuple[str | bool, ...] = grouping.values
    for index, value in enumerate(values):
        if isinstance(value, bool):
            places[int(value)] = index
        else:
            code = layout.codes(grouping.column).get(value)
            if code is not None:
                places[code] = index
    if grouping.missing:
        places[MISSING] = len(values)
    return places


Factors = Mapping[Factor, str]  # name of the column that holds each factor


def _factors(tally: Tally) -> Factors:
    products = [product for product in tally.aggregates if isinstance(product, Product)]
    different = dict.fromkeys(factor for product in products for factor in product.factors)
    return {factor: f"f{i}" for i, factor in enumerate(different)}


def _with_factors(factors: Factors, layout: Layout) -> FromClause:
    """The rows with a further column for each factor, computed once for all products."""
    rows = layout.rows
    if not factors:
        return rows
    made = (factor_sql(factor, layout).label(name) for factor, name in factors.items())
    return select(literal_column("*"), *made).select_from(rows).subquery("factored")


def _aggregate(aggregate: Aggregate, layout: Layout, factors: Factors) -> ColumnElement[Any]:
    match aggregate:
        case CountRows():
            return func.count()
        case CountPresent():
            return func.count(stored_column(layout, aggregate.column))
        case SumSteps():
            return ExactSum(column(layout.steps(aggregate.column)))
        case Persons():  # each row is one person
            named = aggregate.column
            return func.count() if named is None else func.count(stored_column(layout, named))
        case PersonTotal():
            return ExactSum(clamped(column(layout.steps(aggregate.column)), aggregate))
        case CountWhere():
            return func.count().filter(condition_sql(aggregate.condition, layout))
        case Product():
            # The planner keeps products well within BIGINT.
            names = (column(factors[factor], BigInteger()) for factor in aggregate.factors)
            return ExactSum(reduce(operator.mul, names))


def factor_sql(factor: Factor, layout: Layout) -> ColumnElement[Any]:
    """SQL of a factor. Steps are never below their low bound, so the quotient is never negative."""
    if isinstance(factor, EqualsValue):
        marked = condition_sql(Compare(factor.column, "==", factor.value), layout)
        return cast(case((marked, _whole(1)), else_=_whole(0)), BigInteger())
    steps = column(layout.steps(factor.column), BigInteger())
    above = cast(steps - _whole(factor.low), BigInteger())
    coarse = Quotient(above, _whole(factor.grain))
    return cast(coarse, BigInteger()) - _whole(factor.centre)


def _whole(number: int) -> ColumnElement[Any]:
    return cast(bindparam(None, number, unique=True), BigInteger())
