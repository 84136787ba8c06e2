"""Aggregates of persons: one row for each person and group first, then these are counted or added.

A person's rows in a group become one number. The first n groups of a person are kept, ordered by
the smallest index of their rows in the person's own order. These indexes differ, because each row
is in one group, and tied rows are equal. So the person's own rows decide both, and every engine
decides alike. All numbers are integers: totals of a person are Wide, and are clamped before they
are added.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, case, cast, column, func, select
from sqlalchemy.sql.elements import Label
from sqlalchemy.sql.selectable import FromClause

from app.engines.sql.dialects import ExactSum, Wide, constant
from app.engines.sql.layout import PERSON, PLACE, Layout
from app.queries.tally import OfPersons, Persons, PersonTotal, Tally


def of_persons(
    layout: Layout,
    tally: Tally,
    rows: FromClause,
    codes: list[Label[int]],
    conditions: list[ColumnElement[bool]],
) -> Select[*tuple[Any, ...]]:
    """Statement for rows that are in a group and meet the conditions."""
    (name,) = {
        aggregate.column for aggregate in tally.aggregates if isinstance(aggregate, OfPersons)
    }
    names = [code.name for code in codes]
    entry: list[ColumnElement[Any]] = [*codes, column(PERSON).label(PERSON)]
    if name is not None:
        conditions = [*conditions, column(layout.value(name)).is_not(None)]
    if any(isinstance(aggregate, PersonTotal) for aggregate in tally.aggregates):
        assert name is not None
        entry.append(ExactSum(column(layout.steps(name))).label("total"))
    if tally.groups_max is not None:
        entry.append(func.min(column(PLACE)).label("first"))
    statement = select(*entry).select_from(rows)
    if conditions:
        statement = statement.where(and_(*conditions))
    statement = statement.group_by(*(constant(i + 1) for i in range(len(codes) + 1)))
    entries: FromClause = statement.subquery("entries")
    if tally.groups_max is not None:
        nth = func.row_number().over(partition_by=column(PERSON), order_by=column("first"))
        kept: list[ColumnElement[Any]] = [
            column(label.name) for label in entry if isinstance(label, Label)
        ]
        entries = select(*kept, nth.label("nth")).select_from(entries).subquery("ordered")
    groups: list[ColumnElement[Any]] = [column(code_name) for code_name in names]
    made = [_aggregate(aggregate, column("total", Wide())) for aggregate in tally.aggregates]
    result = select(*groups, *made).select_from(entries)
    if tally.groups_max is not None:
        result = result.where(column("nth") <= constant(tally.groups_max))
    if groups:
        result = result.group_by(*(constant(i + 1) for i in range(len(groups))))
    return result


def _aggregate(aggregate: Any, total: ColumnElement[Any]) -> ColumnElement[Any]:
    if isinstance(aggregate, Persons):
        return func.count()
    assert isinstance(aggregate, PersonTotal), "aggregates of persons stand by themselves"
    return ExactSum(clamped(total, aggregate))


def clamped(total: ColumnElement[Any], wanted: PersonTotal) -> ColumnElement[Any]:
    low, high = (cast(constant(bound), Wide()) for bound in (wanted.low, wanted.high))
    wide = cast(total, Wide())
    return cast(case((wide < low, low), (wide > high, high), else_=wide), BigInteger())
