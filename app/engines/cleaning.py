"""The SELECT that makes every value fit the card: in bounds, in the list, or NULL.

Each value becomes what it is by itself, and each person's rows are chosen by that person's rows
alone: nothing here lets one person's row change another's. Only generated names and the numbers
and dates of the card are written into the text; a card's texts are joined from tables.
"""

import datetime
from collections.abc import Sequence

from app.datasets import (
    TEXT_GAPS,
    BooleanColumn,
    Card,
    CategoryColumn,
    Column,
    ColumnPerson,
    DateColumn,
    IntegerColumn,
    NumberColumn,
    RowPerson,
    TextColumn,
)
from app.engines.edges import Edge
from app.engines.layout import EPOCH, PERSON, persons_are_told_apart
from app.engines.sources import SourceTable

_GAPS = "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in TEXT_GAPS)
_WHOLE_TEXT = r"^([+-]?[0-9]+)(\.0*)?$"  # "3" and "3.0" are whole, "3.7" and "1e3" are missing


def category_table(i: int) -> str:
    """The temporary table (value, code) of category column i."""
    return f"categories{i}"


def cleaned_rows(card: Card, tables: Sequence[SourceTable]) -> str:
    """One SELECT over the source and the epochs after it. Its parameters are the version's seed, as
    often as `seeds` says, and the path of each."""
    stored = [name for i, column in enumerate(card.columns) for name in _stored(i, column)]
    rows = _fitted(card, tables[0])
    if len(tables) > 1:
        numbered = [
            f"SELECT *, {epoch:d} AS {EPOCH} FROM ({_fitted(card, table)})"  # noqa: S608
            for epoch, table in enumerate(tables, 1)
        ]
        rows = " UNION ALL ".join(numbered)
        stored.append(EPOCH)
    if not isinstance(card.person, RowPerson):
        rows = _bounded(card, rows, card.person.rows_max, stored)
    if persons_are_told_apart(card):
        stored.append(PERSON)
    return f"SELECT {', '.join(stored)} FROM ({rows})"  # noqa: S608 - generated names


def _stored(i: int, column: Column) -> list[str]:
    return [f"c{i}", f"s{i}"] if isinstance(column, NumberColumn) else [f"c{i}"]


def _fitted(card: Card, table: SourceTable) -> str:
    """The rows of one file, every value as it is stored."""
    read, clamped, stepped, joins = [], [], [], []
    edge = Edge.of(card)
    for i, column in enumerate(card.columns):
        position = table.position(column.name)
        assert position is not None, "the card was checked against the file"
        if isinstance(column, CategoryColumn):
            read.append(f"{category_table(i)}.code AS v{i}")
            match = f"CAST(k{position} AS VARCHAR) = {category_table(i)}.value"
            joins.append(f"LEFT JOIN {category_table(i)} ON {match}")
        else:
            read.append(f"{_read(column, f'k{position}', table.types[position])} AS v{i}")
        end = None if edge is None else edge.ends.get(i)
        clamped.append(f"{end or _clamp(column, f'v{i}')} AS c{i}")
        if isinstance(column, NumberColumn):
            factor = _double(2.0**column.grid_exponent)
            stepped.append(f"CAST(floor(c{i} * {factor}) AS BIGINT) AS s{i}")
    if isinstance(card.person, ColumnPerson):
        position = table.position(card.person.column)
        assert position is not None, "the card was checked against the file"
        read.append(f"NULLIF(CAST(k{position} AS VARCHAR), '') AS person")
        clamped.append("person")
    if edge is not None:
        clamped.append(f"{edge.name} AS person")
    rows = f"SELECT {', '.join(read)} FROM {table.relation} {' '.join(joins)}"  # noqa: S608
    rows = f"SELECT {', '.join(clamped)} FROM ({rows})"  # noqa: S608 - generated names
    return f"SELECT {', '.join(['*', *stepped])} FROM ({rows})"  # noqa: S608 - generated names


def seeds(card: Card) -> int:
    """How many parameters of the SELECT are the version's seed."""
    return (not isinstance(card.person, RowPerson)) + persons_are_told_apart(card)


def _bounded(card: Card, rows: str, rows_max: int, stored: list[str]) -> str:
    """At most rows_max rows of each person.

    The choice is by a seeded hash of what the row says, then by every stored column, so that rows
    still tied are rows no question can tell apart, and every server keeps the same ones. Doubles
    enter the hash as their whole steps, because the text of a double is the engine's own; texts as
    they are, and where two rows differ only in how they share a "|" the columns decide.

    Rows of earlier epochs come first: a row that is kept stays, whatever arrives later, and of all
    epochs together a person has at most rows_max.
    """
    hashed = [
        f"s{i}" if isinstance(column, NumberColumn) else f"c{i}"
        for i, column in enumerate(card.columns)
    ]
    texts = ", '|', ".join(f"coalesce(CAST({name} AS VARCHAR), '~')" for name in hashed)
    order = ", ".join(f"{name} NULLS LAST" for name in stored)
    first = f"{EPOCH}, " if EPOCH in stored else ""
    ranked = (
        f"row_number() OVER (PARTITION BY person ORDER BY {first}"
        f"md5(concat(CAST(? AS VARCHAR), '|', {texts}, '|', person)), {order}) AS place"
    )
    told = "*"
    if persons_are_told_apart(card):
        number = "md5_number(concat('person|', CAST(? AS VARCHAR), '|', person))"
        told = f"* REPLACE ({number} AS {PERSON})"
    ranked = f"SELECT *, {ranked} FROM ({rows}) WHERE person IS NOT NULL"  # noqa: S608
    return f"SELECT {told} FROM ({ranked}) WHERE place <= {rows_max:d}"  # noqa: S608


def _read(column: Column, name: str, stored_type: str) -> str:
    """The value in its declared type, or NULL."""
    if stored_type == "VARCHAR" and not isinstance(column, TextColumn):
        # Not only for the spaces: DuckDB 2.0 moves a TRY_CAST of a bare CSV column into the reader,
        # where it becomes a CAST, and one bad field fails the whole file.
        name = f"trim({name})"
    match column:
        case IntegerColumn():
            if stored_type == "VARCHAR":
                name = f"regexp_extract({name}, '{_WHOLE_TEXT}', 1)"
            return f"TRY_CAST({name} AS HUGEINT)"
        case NumberColumn():
            return f"TRY_CAST({name} AS DOUBLE)"
        case BooleanColumn():
            if stored_type == "BOOLEAN":
                return name
            text = f"lower(CAST({name} AS VARCHAR))"
            return (
                f"CASE WHEN {text} IN ('true', 't', '1', 'yes') THEN true "
                f"WHEN {text} IN ('false', 'f', '0', 'no') THEN false END"
            )
        case DateColumn():
            return f"TRY_CAST({name} AS DATE)"
        case TextColumn():
            text = f"CAST({name} AS VARCHAR)"
            return f"trim(regexp_replace({text}, '[{_GAPS}]+', ' ', 'g'), ' ')"
        case CategoryColumn():
            raise AssertionError("categories are joined")


def _clamp(column: Column, name: str) -> str:
    """The value in its bounds. NaN is tested first: it compares above everything."""
    match column:
        case IntegerColumn():
            return f"CAST({_between(name, f'{column.low:d}', f'{column.high:d}')} AS BIGINT)"
        case NumberColumn():
            inside = _between(name, _double(column.low), _double(column.high))
            return f"CASE WHEN isnan({name}) THEN NULL ELSE {inside} END"
        case DateColumn():
            return _between(name, _date(column.low), _date(column.high))
        case TextColumn():
            return f"CASE WHEN length({name}) BETWEEN 1 AND {column.length_max:d} THEN {name} END"
        case CategoryColumn() | BooleanColumn():
            return name


def _between(name: str, low: str, high: str) -> str:
    return f"CASE WHEN {name} < {low} THEN {low} WHEN {name} > {high} THEN {high} ELSE {name} END"


def _double(value: float) -> str:
    # From text, which is read exactly; a bare literal would be a DECIMAL.
    return f"CAST('{value!r}' AS DOUBLE)"


def _date(value: datetime.date) -> str:
    return f"DATE '{value.isoformat()}'"
