"""The values of a table in a database, read in their declared types.

Tables have types, so nothing is parsed: a column of text is no number. What a type can hold and a
double or a day cannot (NaN and infinities of NUMERIC, more digits than there are) is brought within
reach first, because an error that depends on a value would tell of it.
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

from app.data.card import WITH_FRACTIONS, Card, ColumnPerson
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
from app.engines.files.rows import truth
from app.engines.sql.cleaning import RawRows
from app.engines.sql.dialects import ByBytes, Dialect, IsNaN, constant, quoted
from app.engines.sql.lists import among
from app.engines.table import Table


class PlaceOf(FunctionElement[int]):
    """The place of a text in a list, from 0; NULL if it is not there."""

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
    """A text with every run of gaps as one space, and none at its ends."""

    name = "ungapped"
    type = String()
    inherit_cache = True


# A text of these engines never holds the letter 0.
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


def table_rows(card: Card, table: Table, reading: int) -> RawRows:
    values = [_value(each, table, i, reading) for i, each in enumerate(card.columns)]
    person = None
    if isinstance(card.person, ColumnPerson):
        place = table.names.index(card.person.column)
        raw = table.column(place)
        if table.types[place] == "DECIMAL":  # each value has a scale of its own: 1 and 1.0 are one
            raw = func.trim_scale(raw)
        # By its bytes: a column may hold texts for equal that the hash of a lot tells apart.
        person = func.nullif(ByBytes(cast(raw, String())), quoted(""))
    return RawRows(table.dialect, table.rows, tuple(values), person)


def _value(each: Column, table: Table, i: int, reading: int) -> ColumnElement[Any]:
    if not each.sourced:
        return null()
    dialect, place = table.dialect, table.names.index(each.name)
    raw, stored = table.column(place), table.types[place]
    match each:
        case IntegerColumn():
            return _finite(raw, dialect) if stored.startswith("DECIMAL") else raw
        case NumberColumn():
            return table.double(place)
        case BooleanColumn():
            if stored == "BOOLEAN":
                return cast(raw, Boolean())
            return truth(TrimmedText(raw) if stored == "VARCHAR" else raw, reading)
        case DateColumn():
            return cast(raw, Date())
        case TextColumn():
            return Ungapped(cast(raw, String()))
        case CategoryColumn():
            texts = each.texts(fractions=reading >= WITH_FRACTIONS)
            among_texts = among(dialect, f"values{i}", "text", texts)
            found = PlaceOf(among_texts, cast(raw, String()))
            if len(texts) == len(each.values):
                return found
            return cast(func.mod(found, constant(len(each.values))), Integer())


def _finite(raw: ColumnElement[Any], dialect: Dialect) -> ColumnElement[Any]:
    return case((IsNaN(raw), null()), else_=raw) if dialect.name == "postgresql" else raw
