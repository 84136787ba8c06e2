"""Aggregates of persons: first one row for each person and group, then these are counted or added.

A person's rows in a group become one number here, and of a person's groups the first ones are kept,
by the least place that a row in each has in the person's own order. No two of them have the same:
each row is in one group, and rows that could change places say the same. So both are decided by
the person's own rows, and alike by every engine. All in whole numbers: totals of a person are wide,
and clamped before they are added up.
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
    """Of rows that are in a group and count, if they meet the conditions."""
    (name,) = {each.column for each in tally.aggregates if isinstance(each, OfPersons)}
    names = [code.name for code in codes]
    entry: list[ColumnElement[Any]] = [*codes, column(PERSON).label(PERSON)]
    if name is not None:
        conditions = [*conditions, column(layout.value(name)).is_not(None)]
    if any(isinstance(each, PersonTotal) for each in tally.aggregates):
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
        place = func.row_number().over(partition_by=column(PERSON), order_by=column("first"))
        kept: list[ColumnElement[Any]] = [
            column(each.name) for each in entry if isinstance(each, Label)
        ]
        entries = select(*kept, place.label("nth")).select_from(entries).subquery("ordered")
    groups: list[ColumnElement[Any]] = [column(each) for each in names]
    made = [_aggregate(each, column("total", Wide())) for each in tally.aggregates]
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
