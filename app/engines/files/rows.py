"""Values of a CSV or Parquet file, read in their declared types by DuckDB.

A CSV field is text; a text that is no value of the declared type is missing. The SQL contains only
generated names; texts of a card are joined from tables.
"""

from typing import Any

from sqlalchemy import (
    BindParameter,
    Date,
    Double,
    FromClause,
    String,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    null,
    table,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

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
from app.engines.files.sources import SourceTable
from app.engines.sql.cleaning import RawRows
from app.engines.sql.dialects import DUCKDB, Wide, quoted
from app.engines.table import Table
from app.engines.text_values import boolean_from_text

_GAPS = "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in TEXT_GAPS)
_WHOLE_TEXT = r"^([+-]?[0-9]+)(\.0*)?$"  # "3" and "3.0" are integers, "3.7" and "1e3" are missing


class TryCast(FunctionElement[Any]):
    """The value in another type, or NULL."""

    inherit_cache = False

    def __init__(self, value: ColumnElement[Any], wanted: TypeEngine[Any]) -> None:
        super().__init__(value)
        self.type = wanted


@compiles(TryCast)
def _try_cast(element: TryCast, compiler: SQLCompiler, **options: Any) -> str:
    (value,) = (compiler.process(part, **options) for part in element.clauses)
    wanted = compiler.dialect.type_compiler_instance.process(element.type)
    return f"TRY_CAST({value} AS {wanted})"


def category_table(i: int) -> str:
    """Name of the temporary table (value, code) of category column i."""
    return f"categories{i}"


def file_table(source: SourceTable) -> Table:
    """The file as a table of columns k0, k1, ..."""
    relation = source.relation.replace("?", ":path")
    path: BindParameter[list[str]] = bindparam("path", source.paths, unique=True)
    read = text(f"SELECT * FROM {relation}").bindparams(path)  # noqa: S608 - generated names
    called = tuple(f"k{i}" for i in range(len(source.names)))
    rows = read.columns(*map(column, called)).subquery("source")
    return Table(DUCKDB, rows, source.names, source.types, called)


def file_rows(card: Card, source: SourceTable, rows: FromClause | None = None) -> RawRows:
    """Values of the file itself, or of rows that have its columns and more."""
    rows = file_table(source).rows if rows is None else rows
    values: list[ColumnElement[Any]] = []
    for i, declared in enumerate(card.columns):
        if not declared.sourced:
            values.append(null())
            continue
        position = source.position(declared.name)
        assert position is not None, "the card was checked against the file"
        raw: ColumnElement[Any] = column(f"k{position}")
        if isinstance(declared, CategoryColumn):
            listed = table(category_table(i), column("value"), column("code"))
            rows = rows.outerjoin(listed, cast(raw, String()) == listed.c.value)
            values.append(listed.c.code)
        else:
            values.append(_read(declared, raw, source.types[position]))
    person = None
    if isinstance(card.person, ColumnPerson):
        position = source.position(card.person.column)
        assert position is not None, "the card was checked against the file"
        person = func.nullif(cast(column(f"k{position}"), String()), quoted(""))
    return RawRows(DUCKDB, rows, tuple(values), person)


def _read(declared: Column, raw: ColumnElement[Any], stored_type: str) -> ColumnElement[Any]:
    """The value in its declared type, or NULL."""
    if stored_type == "VARCHAR" and not isinstance(declared, TextColumn):
        # Trimming also works around DuckDB 2.0. It moves a TRY_CAST of a bare CSV column into the
        # reader as a CAST, and one bad field then fails the whole file.
        raw = func.trim(raw)
    match declared:
        case IntegerColumn():
            if stored_type == "VARCHAR":
                raw = func.regexp_extract(raw, quoted(_WHOLE_TEXT), literal_column("1"))
            return TryCast(raw, Wide())
        case NumberColumn():
            return TryCast(raw, Double())
        case BooleanColumn():
            return raw if stored_type == "BOOLEAN" else boolean_from_text(raw)
        case DateColumn():
            return TryCast(raw, Date())
        case TextColumn():
            gaps = quoted(f"[{_GAPS}]+")
            one = func.regexp_replace(cast(raw, String()), gaps, quoted(" "), quoted("g"))
            return func.trim(one, quoted(" "))
        case CategoryColumn():
            raise AssertionError("categories are joined")
