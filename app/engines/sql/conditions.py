"""Conditions as SQL over a prepared version: two-valued, so that negation is plain NOT.

A comparison is rendered as "present AND compared", which is false for a missing value and never
NULL. Values are bound in the stored column's own type. An integer column is compared only with
integers, computed here, so that no engine decides how 17 compares with 17.5.
"""

import datetime
import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Date,
    Double,
    Integer,
    String,
    and_,
    bindparam,
    cast,
    column,
    false,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.sql.elements import ColumnClause, ColumnElement
from sqlalchemy.types import TypeEngine

from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    IntegerColumn,
    NumberColumn,
    TextColumn,
)
from app.engines.sql.layout import Layout
from app.engines.sql.lists import kind_of, listed
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

SPELLED_OUT_MAX = 50  # longer lists are bound as one parameter
_BEYOND = 1 << 62  # outside every integer column (2^53) and inside BIGINT


@dataclass(frozen=True, slots=True)
class Opened(Compare):
    """A comparison with a named parameter, in a statement that is cached for all values."""

    value: str


def opened(condition: Condition, layout: Layout, values: dict[str, Scalar]) -> Condition:
    """The condition with parameters in place of the numbers and days it compares with.

    The bound values are added to `values`, by the names of the parameters.
    """
    match condition:
        case Compare():
            stored = _compared(condition, layout)
            kind = layout.column(condition.column)
            if stored is None or isinstance(kind, BooleanColumn | CategoryColumn):
                return condition
            name = f"value{len(values)}"
            values[name] = stored
            return Opened(condition.column, condition.sign, name)
        case AllOf():
            return AllOf(tuple(opened(part, layout, values) for part in condition.parts))
        case AnyOf():
            return AnyOf(tuple(opened(part, layout, values) for part in condition.parts))
        case Negation():
            return Negation(opened(condition.part, layout, values))
        case _:
            return condition


def condition_sql(condition: Condition, layout: Layout) -> ColumnElement[bool]:
    """SQL that is true or false for every row."""
    match condition:
        case Compare():
            return _compare(condition, layout)
        case OneOf():
            return _one_of(condition, layout)
        case IsMissing():
            return stored_column(layout, condition.column).is_(None)
        case AllOf():
            return and_(true(), *(condition_sql(part, layout) for part in condition.parts))
        case AnyOf():
            return or_(false(), *(condition_sql(part, layout) for part in condition.parts))
        case Negation():
            return not_(condition_sql(condition.part, layout).self_group())


def stored_column(layout: Layout, name: str) -> ColumnClause[Any]:
    return column(layout.value(name), stored_type(layout, name))


def stored_type(layout: Layout, name: str) -> TypeEngine[Any]:
    match layout.column(name):
        case IntegerColumn():
            return BigInteger()
        case NumberColumn():
            return Double()
        case CategoryColumn():
            return Integer()
        case BooleanColumn():
            return Boolean()
        case DateColumn():
            return Date()
        case TextColumn():
            return String()


def _compare(condition: Compare, layout: Layout) -> ColumnElement[bool]:
    stored = stored_column(layout, condition.column)
    sign = condition.sign
    if isinstance(condition, Opened):
        bound = cast(bindparam(condition.value, None, type_=stored.type), stored.type)
    else:
        value = _compared(condition, layout)
        if value is None:  # no stored value equals it
            return stored.is_not(None) if sign == "!=" else false()
        bound = cast(bindparam(None, value, unique=True), stored.type)
    compared: ColumnElement[bool] = {
        "==": stored.__eq__,
        "!=": stored.__ne__,
        "<": stored.__lt__,
        "<=": stored.__le__,
        ">": stored.__gt__,
        ">=": stored.__ge__,
    }[sign](bound)
    return and_(stored.is_not(None), compared)


def _compared(condition: Compare, layout: Layout) -> Scalar | None:
    """Value to compare stored values with, or None if no stored value equals it."""
    if isinstance(layout.column(condition.column), IntegerColumn):
        return _whole(condition.sign, condition.value)
    return _stored_value(layout, condition.column, condition.value)


def _whole(sign: ComparisonSign, value: Scalar) -> int | None:
    """Integer to compare integers with, equivalent to comparing with any number."""
    assert isinstance(value, int | float)
    if sign in ("==", "!="):
        return int(value) if value == math.floor(value) and abs(value) < _BEYOND else None
    # x < 17.5 and x >= 17.5 switch at 18; x <= 17.5 and x > 17.5 switch at 17.
    bound = math.ceil(value) if sign in ("<", ">=") else math.floor(value)
    return max(-_BEYOND, min(_BEYOND, bound))


def _one_of(condition: OneOf, layout: Layout) -> ColumnElement[bool]:
    stored = stored_column(layout, condition.column)
    values = [_stored_value(layout, condition.column, value) for value in condition.values]
    stored_values = list(dict.fromkeys(value for value in values if value is not None))
    if not stored_values:
        return false()
    if len(stored_values) <= SPELLED_OUT_MAX:
        return and_(stored.is_not(None), stored.in_(stored_values))
    among = listed(layout.dialect, "among", item=(kind_of(stored.type), stored_values))
    return and_(stored.is_not(None), stored.in_(select(among.c.item)))


def _stored_value(layout: Layout, name: str, value: Scalar) -> Scalar | None:
    """The value as stored, or None if it cannot be stored."""
    match layout.column(name):
        case IntegerColumn():
            return _whole("==", value)
        case NumberColumn():
            assert isinstance(value, int | float)
            return float(value)
        case CategoryColumn():
            assert isinstance(value, str)
            return layout.codes(name).get(value)
        case BooleanColumn():
            assert isinstance(value, bool)
            return value
        case DateColumn():
            assert isinstance(value, datetime.date)
            return value
        case TextColumn():
            assert isinstance(value, str)
            return value
