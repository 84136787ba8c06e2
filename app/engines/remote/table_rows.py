"""Values of a database table, read in their declared types.

Tables have types, so nothing is parsed: text is never read as a number. Some values of a type do
not fit a double or a day, such as NaN, infinities and long digits of NUMERIC. They are clamped, or
count as missing, before they are used: an error that depends on a value would reveal it.
"""

from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Date,
    Integer,
    String,
    case,
    cast,
    func,
    null,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.data.card import Card, ColumnPerson
from app.data.columns import (
    TEXT_GAPS,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    IntegerColumn,
    NumberColumn,
    TextColumn,
)
from app.engines.content_hash import TrimmedText
from app.engines.sql.cleaning import RawRows
from app.engines.sql.dialects import ByBytes, Dialect, IsNaN, constant, quoted
from app.engines.sql.lists import among
from app.engines.table import Table
from app.engines.text_values import boolean_from_text


class PlaceOf(FunctionElement[int]):
    """Index of a text in a list, from 0; NULL if it is not in the list."""

    name = "place_of"
    type = Integer()
    inherit_cache = True


@compiles(PlaceOf, "postgresql")
def _place_of_postgresql(element: PlaceOf, compiler: SQLCompiler, **options: Any) -> str:
    values, sought = (compiler.process(part, **options) for part in element.clauses)
    return f"(array_position({values}, {sought}) - 1)"


@compiles(PlaceOf, "spark")
def _place_of_spark(element: PlaceOf, compiler: SQLCompiler, **options: Any) -> str:
    values, sought = (compiler.process(part, **options) for part in element.clauses)
    return f"CAST(nullif(array_position({values}, {sought}), 0) - 1 AS INTEGER)"


class Ungapped(FunctionElement[str]):
    """A text with every run of white space as one space, and none at its ends."""

    name = "ungapped"
    type = String()
    inherit_cache = True


# A text of these engines never contains the character 0.
_GAPS = "".join(rf"\u{max(low, 1):04x}-\u{high:04x}" for low, high in TEXT_GAPS)


@compiles(Ungapped, "postgresql")
def _ungapped_postgresql(element: Ungapped, compiler: SQLCompiler, **options: Any) -> str:
    (value,) = (compiler.process(part, **options) for part in element.clauses)
    return f"trim(both ' ' from regexp_replace({value}, '[{_GAPS}]+', ' ', 'g'))"


@compiles(Ungapped, "spark")
def _ungapped_spark(element: Ungapped, compiler: SQLCompiler, **options: Any) -> str:
    (value,) = (compiler.process(part, **options) for part in element.clauses)
    gaps = "".join(rf"\\x{{{max(low, 1):x}}}-\\x{{{high:x}}}" for low, high in TEXT_GAPS)
    return f"trim(BOTH ' ' FROM regexp_replace({value}, '[{gaps}]+', ' '))"


def table_rows(card: Card, table: Table) -> RawRows:
    values = [_value(each, table, i) for i, each in enumerate(card.columns)]
    person = None
    if isinstance(card.person, ColumnPerson):
        position = table.names.index(card.person.column)
        raw = table.column(position)
        if table.types[position] == "DECIMAL":  # each value has its own scale: 1 and 1.0 are equal
            raw = func.trim_scale(raw)
        # Compare bytes: a collation may treat texts as equal that have different hashes.
        person = func.nullif(ByBytes(cast(raw, String())), quoted(""))
    return RawRows(table.dialect, table.rows, tuple(values), person)


def _value(declared: Column, table: Table, i: int) -> ColumnElement[Any]:
    if not declared.sourced:
        return null()
    dialect, position = table.dialect, table.names.index(declared.name)
    raw, stored = table.column(position), table.types[position]
    match declared:
        case IntegerColumn():
            return _finite(raw, dialect) if stored.startswith("DECIMAL") else raw
        case NumberColumn():
            return table.double(position)
        case BooleanColumn():
            if stored == "BOOLEAN":
                return cast(raw, Boolean())
            return boolean_from_text(TrimmedText(raw) if stored == "VARCHAR" else raw)
        case DateColumn():
            return cast(raw, Date())
        case TextColumn():
            return Ungapped(cast(raw, String()))
        case CategoryColumn():
            texts = declared.texts()
            among_texts = among(dialect, f"values{i}", "text", texts)
            found = PlaceOf(among_texts, cast(raw, String()))
            if len(texts) == len(declared.values):
                return found
            return cast(func.mod(found, constant(len(declared.values))), Integer())


def _finite(raw: ColumnElement[Any], dialect: Dialect) -> ColumnElement[Any]:
    return case((IsNaN(raw), null()), else_=raw) if dialect.name == "postgresql" else raw
