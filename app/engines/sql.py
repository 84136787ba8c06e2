"""A Tally as one SQL statement with bound parameters, over a prepared version.

Every identifier is quoted and every value bound. Each grouping is one whole number in the result,
its place among the groups, so that a result is small and says nothing but numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    and_,
    bindparam,
    cast,
    column,
    func,
    select,
    table,
)
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import IdentifierPreparer
from sqlalchemy.sql.selectable import FromClause
from typing_extensions import override

from app.engines.bins import binned
from app.engines.conditions import condition_sql, stored_column
from app.engines.layout import TABLE, Layout
from app.queries.statistics import (
    Aggregate,
    ByEdges,
    ByValues,
    Grouping,
    Meeting,
    Power,
    Rows,
    Tally,
    Total,
    Values,
)

KEPT_SIZE_MAX = 1000


class QuotingPreparer(IdentifierPreparer):
    @override
    def _requires_quotes(self, value: str) -> bool:
        return True


class DuckDBDialect(DefaultDialect):
    """Enough of a dialect to compile for DuckDB; statements are run by duckdb itself."""

    name = "duckdb"
    default_paramstyle = "qmark"
    supports_native_boolean = True
    supports_statement_cache = True
    preparer = QuotingPreparer


@dataclass(frozen=True, slots=True)
class Rendered:
    """The statement, and how to read its rows: a number for each grouping, then the aggregates."""

    text: str
    parameters: tuple[Any, ...]
    # For each grouping: the place among its groups of each number in the result.
    places: tuple[Mapping[int, int] | range, ...]
    group_counts: tuple[int, ...]


def render(layout: Layout, tally: Tally) -> Rendered:
    """Compiling costs near a millisecond, so statements of small tallies are kept."""
    return _rendered(layout, tally) if tally.size() <= KEPT_SIZE_MAX else _render(layout, tally)


@lru_cache(maxsize=1024)
def _rendered(layout: Layout, tally: Tally) -> Rendered:
    return _render(layout, tally)


def _render(layout: Layout, tally: Tally) -> Rendered:
    rows: FromClause = table(TABLE)
    codes: list[ColumnElement[int]] = []
    conditions: list[ColumnElement[bool]] = []
    places: list[Mapping[int, int] | range] = []
    for number, grouping in enumerate(tally.groups):
        if isinstance(grouping, ByEdges):
            rows, code, inside = binned(rows, grouping, layout, number)
        else:
            code = cast(stored_column(layout, grouping.column), Integer())
            inside = stored_column(layout, grouping.column).is_not(None)
        codes.append(code.label(f"g{number}"))
        conditions.append(inside)
        places.append(_places(grouping, layout))
    if tally.where is not None:
        conditions.append(condition_sql(tally.where, layout))
    statement = select(*codes, *(_aggregate(each, layout) for each in tally.aggregates))
    statement = statement.select_from(rows)
    if conditions:
        statement = statement.where(and_(*conditions))
    if codes:
        statement = statement.group_by(*(column(f"g{i}") for i in range(len(codes))))
    compiled = statement.compile(
        dialect=DuckDBDialect(), compile_kwargs={"render_postcompile": True}
    )
    values = compiled.params
    return Rendered(
        str(compiled),
        tuple(values[name] for name in compiled.positiontup or ()),
        tuple(places),
        tuple(len(grouping.labels()) for grouping in tally.groups),
    )


def _places(grouping: Grouping, layout: Layout) -> Mapping[int, int] | range:
    """From the number in the result to the place among the groups."""
    if isinstance(grouping, ByEdges):
        return range(len(grouping.edges) - 1)
    return _value_places(grouping, layout)


def _value_places(grouping: ByValues, layout: Layout) -> dict[int, int]:
    places: dict[int, int] = {}
    values: tuple[str | bool, ...] = grouping.values
    for place, value in enumerate(values):
        if isinstance(value, bool):
            places[int(value)] = place
        else:
            code = layout.codes(grouping.column).get(value)
            if code is not None:
                places[code] = place
    return places


def _aggregate(aggregate: Aggregate, layout: Layout) -> ColumnElement[Any]:
    match aggregate:
        case Rows():
            return func.count()
        case Values():
            return func.count(stored_column(layout, aggregate.column))
        case Total():
            # Whole steps: the sum of BIGINT is a HUGEINT, exact and past every overflow.
            return func.coalesce(func.sum(column(layout.steps(aggregate.column))), 0)
        case Meeting():
            return func.count().filter(condition_sql(aggregate.condition, layout))
        case Power():
            return func.coalesce(func.sum(_powered(aggregate, layout)), 0)


def _powered(power: Power, layout: Layout) -> ColumnElement[Any]:
    """Steps are never below their low bound, so that the division is of no negative number; the
    planner keeps squares far within BIGINT, and their sum is a HUGEINT."""
    above = cast(column(layout.steps(power.column), BigInteger()) - _whole(power.low), BigInteger())
    coarse = above.op("//")(_whole(power.grain))
    centred = cast(coarse, BigInteger()) - _whole(power.centre)
    return centred if power.power == 1 else centred * centred


def _whole(number: int) -> ColumnElement[Any]:
    return cast(bindparam(None, number, unique=True), BigInteger())
