"""Counts of source values by how they fit the card: missing, unreadable, clamped.

The counts are exact and private. They are for the owner of the data, at a terminal: no route, log
or table may contain them (`cli/check_dataset.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, case, column, func, select, union_all

from app.data.card import Card, ColumnPerson, Dataset
from app.data.columns import Column, DateColumn, IntegerColumn, NumberColumn, TextColumn
from app.engines.content_hash import TrimmedText
from app.engines.sql.cleaning import RawRows
from app.engines.sql.dialects import ExactSum, IsNaN, constant, day, exact_double, quoted
from app.engines.sql.layout import PERSON
from app.engines.table import Table

Element = ColumnElement[Any]
RowReader = Callable[
    [Select[*tuple[Any, ...]]], Sequence[Any]
]  # returns the one row of a statement


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """Counts for one column: values that are missing, unreadable and clamped.

    Unreadable values do not have the declared type, or are not listed for a category.
    """

    name: str
    type: str
    missing: int
    unreadable: int
    below: int
    above: int


@dataclass(frozen=True, slots=True)
class PersonFigures:
    """Counts of persons.

    `nameless`: rows without a person. `rows_most`: most rows of one person. `beyond`: persons with
    more than rows_max rows. `rows_left_out`: rows of those persons that are not kept.
    """

    nameless: int
    persons: int
    rows_most: int
    beyond: int
    rows_left_out: int


@dataclass(frozen=True, slots=True)
class Figures:
    rows: int
    columns: tuple[ColumnFigures, ...]
    persons: PersonFigures | None


def figures(
    dataset: Dataset, tables: Sequence[Table], sources: Sequence[RawRows], ask: RowReader
) -> Figures:
    """Figures of the source and its epochs together; `sources`: values read from `tables`."""
    card = dataset.card
    sourced = {i: declared for i, declared in enumerate(card.columns) if declared.sourced}
    totals: list[int] = []
    for table, source in zip(tables, sources, strict=True):
        counts_of_table = list(ask(_counts(sourced, table, source)))
        totals = (
            [a + b for a, b in zip(totals, counts_of_table, strict=True)]
            if totals
            else counts_of_table
        )
    rows, *counts = totals
    columns = [
        _column_figures(declared, rows, *counts[4 * place : 4 * place + 4])
        for place, declared in enumerate(sourced.values())
    ]
    return Figures(rows, tuple(columns), _persons(card, sources, ask))


def _counts(sourced: dict[int, Column], table: Table, source: RawRows) -> Select[*tuple[Any, ...]]:
    """Statement for the number of rows, and for four counts of each column.

    The counts are of values present, of readable ones, and of those below and above the bounds.
    """
    read: list[Element] = []
    for i, declared in sourced.items():
        position = table.names.index(declared.name)
        raw: Element = table.column(position)
        if table.types[position] == "VARCHAR":
            raw = func.nullif(TrimmedText(raw), quoted(""))
        read += [raw.label(f"r{i}"), source.values[i].label(f"v{i}")]
    rows = select(*read).select_from(source.rows).subquery("read")
    counts: list[Element] = []
    for i, declared in sourced.items():
        value: Element = column(f"v{i}")
        low, high = _bounds(declared)
        readable = _readable(declared, value)
        counts += [func.count(column(f"r{i}")), _how_many(readable)]
        counts.append(constant(0) if low is None else _how_many(readable & (value < low)))
        counts.append(constant(0) if high is None else _how_many(readable & (value > high)))
    return select(func.count(), *counts).select_from(rows)


def _how_many(condition: Element) -> Element:
    return func.count(case((condition, constant(1))))


def _bounds(declared: Column) -> tuple[Element | None, Element | None]:
    match declared:
        case NumberColumn():
            return exact_double(declared.low), exact_double(declared.high)
        case IntegerColumn():
            return constant(declared.low), constant(declared.high)
        case DateColumn():
            return day(declared.low), day(declared.high)
        case _:
            return None, None


def _readable(declared: Column, value: Element) -> Element:
    there: Element = value.is_not(None)
    if isinstance(declared, NumberColumn):
        return there & ~IsNaN(value)
    if isinstance(declared, TextColumn):
        return there & func.length(value).between(constant(1), constant(declared.length_max))
    return there


def _column_figures(
    declared: Column, rows: int, there: int, readable: int, below: int, above: int
) -> ColumnFigures:
    return ColumnFigures(declared.name, declared.type, rows - there, there - readable, below, above)


def _persons(card: Card, sources: Sequence[RawRows], ask: RowReader) -> PersonFigures | None:
    if not isinstance(card.person, ColumnPerson):
        return None
    named = []
    for source in sources:
        assert source.person is not None
        named.append(select(source.person.label(PERSON)).select_from(source.rows))
    everybody = (named[0] if len(named) == 1 else union_all(*named)).subquery("named")
    person: Element = column(PERSON)
    size = func.count().label("size")
    of_each = select(person, size).select_from(everybody).group_by(person).subquery("of_each")
    rows: Element = column("size")
    most = constant(card.person.rows_max)
    known = person.is_not(None)
    beyond = known & (rows > most)
    statement = select(
        ExactSum(case((~known, rows), else_=constant(0))),
        _how_many(known),
        func.coalesce(func.max(case((known, rows))), constant(0)),
        _how_many(beyond),
        ExactSum(case((beyond, rows - most), else_=constant(0))),
    ).select_from(of_each)
    return PersonFigures(*map(int, ask(statement)))
