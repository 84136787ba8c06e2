"""A hash of rows that is the same in every engine, for any names and order of columns.

As in `whole_row_hash.py`, each column is a multiset of canonical texts, and columns are sorted.
Every engine writes the same texts. Numbers are integer steps of 2^-20, or integers if they are
large, never the text of a double. Days have no midnight. So the same table in a file and in a
database has the same fingerprint, and its earlier loss is found.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    ColumnElement,
    Double,
    Select,
    String,
    case,
    cast,
    column,
    func,
    null,
    select,
    union_all,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.engines.hash_functions import FIRST_DIGITS, OTHER_DIGITS, hash_number
from app.engines.sql.dialects import ExactSum, IsNaN, constant, exact_double, quoted
from app.engines.table import Table

STEP_BITS = 20
NUMBER = r"^[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9][0-9]?)?$"
NUMBER_LENGTH_MAX = 40  # characters; such a text never overflows or underflows a double
MIDNIGHT = " 00:00:00"
_NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("UBIGINT", "UHUGEINT", "DECIMAL", "FLOAT", "DOUBLE"),
)


class Matches(FunctionElement[bool]):
    """True if a text matches a regular expression."""

    name = "matches"
    inherit_cache = True


@compiles(Matches)
def _matches(element: Matches, compiler: SQLCompiler, **options: Any) -> str:
    value, pattern = (compiler.process(part, **options) for part in element.clauses)
    return f"regexp_matches({value}, {pattern})"


@compiles(Matches, "postgresql")
def _matches_postgresql(element: Matches, compiler: SQLCompiler, **options: Any) -> str:
    value, pattern = (compiler.process(part, **options) for part in element.clauses)
    return f"({value} ~ {pattern})"


@compiles(Matches, "spark")
def _matches_spark(element: Matches, compiler: SQLCompiler, **options: Any) -> str:
    value, pattern = (compiler.process(part, **options) for part in element.clauses)
    return f"({value} RLIKE {pattern})"


class TrimmedText(FunctionElement[str]):
    """A text without spaces at its ends. Engines disagree about other white space, so it stays."""

    name = "trimmed"
    type = String()
    inherit_cache = True


@compiles(TrimmedText)
def _trimmed(element: TrimmedText, compiler: SQLCompiler, **options: Any) -> str:
    (value,) = (compiler.process(part, **options) for part in element.clauses)
    return f"trim({value}, ' ')"


@compiles(TrimmedText, "postgresql")
@compiles(TrimmedText, "spark")
def _trimmed_both(element: TrimmedText, compiler: SQLCompiler, **options: Any) -> str:
    (value,) = (compiler.process(part, **options) for part in element.clauses)
    return f"trim(BOTH ' ' FROM {value})"


def content_statement(tables: Sequence[Table]) -> Select[*tuple[Any, ...]]:
    """Statement with one row: the number of rows, and three numbers for each column."""
    names = tables[0].names
    parts = [
        select(
            *(_canonical(each, name).label(f"t{i}") for i, name in enumerate(names))
        ).select_from(each.rows)
        for each in tables
    ]
    rows = (parts[0] if len(parts) == 1 else union_all(*parts)).subquery("texts")
    numbers: list[ColumnElement[Any]] = []
    for i in range(len(names)):
        text: ColumnElement[Any] = column(f"t{i}")
        halves = (hash_number(text, digits) for digits in (FIRST_DIGITS, OTHER_DIGITS))
        sums = [ExactSum(case((text.is_not(None), half))) for half in halves]
        numbers += [func.count(text), *sums]
    return select(func.count(), *numbers).select_from(rows)


def content_of(row: Sequence[int]) -> str:
    count, *parts = row
    columns = sorted(f"{parts[i]}:{parts[i + 1]}:{parts[i + 2]}" for i in range(0, len(parts), 3))
    digest = hashlib.sha256("\n".join([f"rows {count}", *columns]).encode()).hexdigest()
    return f"anywhere {digest}"


def _canonical(table: Table, name: str) -> ColumnElement[Any]:
    position = table.names.index(name)
    if table.types[position].partition("(")[0] in _NUMBERS:
        return _number_text(table.double(position))
    text = trimmed_text(table, position)
    number: ColumnElement[Any] = cast(case((is_number(text), text), else_=null()), Double())
    return case((is_number(text), _number_text(number)), else_=word_text(text))


def trimmed_text(table: Table, place: int) -> ColumnElement[Any]:
    """A value as its engine writes it; NULL for an empty text."""
    raw = table.column(place)
    if table.types[place] == "TIMESTAMP WITH TIME ZONE" and table.dialect.name != "spark":
        raw = cast(raw, TIMESTAMP())  # the session is in UTC; Spark's texts have no zone
    return func.nullif(TrimmedText(cast(raw, String())), quoted(""))


def is_number(text: ColumnElement[Any]) -> ColumnElement[bool]:
    """True if a text is a number that a double can hold."""
    return (func.length(text) <= constant(NUMBER_LENGTH_MAX)) & Matches(text, quoted(NUMBER))


def word_text(text: ColumnElement[Any]) -> ColumnElement[Any]:
    """A text that is no number: booleans in lower case, days without their midnight."""
    lowered = func.lower(text)
    return case((lowered.in_([quoted("true"), quoted("false")]), lowered), else_=_day_text(text))


def _day_text(text: ColumnElement[Any]) -> ColumnElement[Any]:
    """A day with midnight becomes the day."""
    at_midnight = func.right(text, constant(len(MIDNIGHT))) == quoted(MIDNIGHT)
    return case((at_midnight, func.substr(text, constant(1), constant(10))), else_=text)


def _number_text(number: ColumnElement[Any]) -> ColumnElement[Any]:
    """Text of a double. It is converted to an integer only in the branch that its size allows."""
    fine, large = exact_double(2.0**42), exact_double(2.0**62)
    size = func.abs(number)
    small = case((size < fine, number), else_=exact_double(0.0))
    whole = case((size < large, number), else_=exact_double(0.0))
    steps = cast(func.floor(small * exact_double(2.0**STEP_BITS)), BigInteger())
    return case(
        (number.is_(None), null()),
        (IsNaN(number), quoted("nan")),
        (size < fine, cast(steps, String())),
        (
            size < large,
            func.concat(cast(cast(func.floor(whole), BigInteger()), String()), quoted("w")),
        ),
        else_=quoted("large"),
    )
