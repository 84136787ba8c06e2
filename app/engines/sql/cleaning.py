"""The SELECT that makes every value fit the card: within bounds, in the list, or NULL.

It means the same for every engine. Each engine reads a source's values in their declared types
(`RawRows`); this module defines how they are cleaned. A prepared version is the stored result of
this SELECT. If nothing can be prepared, queries select from it.

Each value is cleaned by itself, and each person's rows are selected by that person's rows alone. So
one person's row never changes another's. Only generated names, and numbers and dates of the card,
are written into the SQL; texts are bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Label,
    Select,
    String,
    Subquery,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    null,
    select,
    union_all,
)

from app.data.card import Card, EdgePerson, RowPerson
from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    EpochColumn,
    IntegerColumn,
    NumberColumn,
    TextColumn,
)
from app.engines.hash_functions import HashBitsHigh, HashBitsLow
from app.engines.sql.cell_number import CELL, cell_number
from app.engines.sql.derived_columns import derived_value
from app.engines.sql.dialects import (
    ByBytes,
    Dialect,
    IsNaN,
    constant,
    day,
    exact_double,
    quoted,
    scaled,
)
from app.engines.sql.layout import BLOCK_HASH, EPOCH, PERSON, PLACE, Layout, has_person_column

NUMBER = "number"
DRAWN = "drawn"
OWN_CELL = "own_cell"
Element = ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class Edge:
    """Edge of a graph row: its two ends, the smaller first, by the index of their columns.

    `name` identifies the edge. It is NULL if an end is no node or both ends are the same. `v<i>` is
    the value of column i as read, or NULL. Rows of one edge belong to one person, and only one of
    them is kept. So one row of a clean table is one edge. Neighbouring graphs, which differ in an
    edge, differ in one row.
    """

    ends: dict[int, ColumnElement[Any]]
    name: ColumnElement[Any]

    @classmethod
    def of(cls, card: Card) -> Self | None:
        if not isinstance(card.person, EdgePerson):
            return None
        places = {part.name: i for i, part in enumerate(card.columns)}
        one, other = (places[name] for name in card.person.ends)
        declared = card.columns[one]
        assert isinstance(declared, IntegerColumn), "the card was checked"
        values: list[ColumnElement[Any]] = [column(f"v{index}") for index in (one, other)]
        nodes = [part.between(constant(declared.low), constant(declared.high)) for part in values]
        there = and_(*nodes, values[0] != values[1])
        # Numbers that are no nodes are removed with their row, before they could overflow.
        low, high = (case((there, cut(*values))) for cut in (func.least, func.greatest))
        texts = (cast(part, String()) for part in (low, high))
        first, second = texts
        name = case((there, func.concat(first, quoted("-"), second)))
        return cls({one: cast(low, BigInteger()), other: cast(high, BigInteger())}, name)


@dataclass(frozen=True, slots=True)
class RawRows:
    """Rows of one source.

    `values`: for each column of the card its value as read, in the declared type but not clamped;
    a category's code; or NULL. `person`: text that identifies the person.
    """

    dialect: Dialect
    rows: FromClause
    values: tuple[Element, ...]
    person: Element | None = None


def cleaned_rows(card: Card, sources: Sequence[RawRows], seed: str) -> Select[*tuple[Any, ...]]:
    """Clean rows of the source and its epochs."""
    stored = [name for i, declared in enumerate(card.columns) for name in _stored(i, declared)]
    if len(sources) > 1:
        stored.append(EPOCH)
    parts = [_fitted(card, source, epoch, stored) for epoch, source in enumerate(sources, 1)]
    rows = parts[0] if len(parts) == 1 else union_all(*parts)
    names: list[Element] = [column(name) for name in stored]
    if isinstance(card.person, RowPerson):
        return rows if isinstance(rows, Select) else select(*names).select_from(rows.subquery("e"))
    kept = _bounded(card, rows.subquery("fitted"), stored, seed, sources[0].dialect)
    if has_person_column(card):
        names += [column(BLOCK_HASH), column(PERSON), column(PLACE)]
    result = select(*names).select_from(kept).where(column(PLACE) <= card.person.rows_max)
    return result.where(column(CELL) == column(OWN_CELL)) if _one_cell(card) else result


def fitted_rows(card: Card, source: RawRows) -> Select[*tuple[Any, ...]]:
    """All rows of one source with every value as stored; persons keep all their rows."""
    return _fitted(card, source, 1, [])


def _stored(i: int, declared: Column) -> list[str]:
    return [f"c{i}", f"s{i}"] if isinstance(declared, NumberColumn) else [f"c{i}"]


def _fitted(card: Card, source: RawRows, epoch: int, stored: list[str]) -> Select[*tuple[Any, ...]]:
    """Rows of one source, with every value as stored."""
    edge = Edge.of(card)
    sourced = {i: declared for i, declared in enumerate(card.columns) if declared.derived is None}
    derived = {
        i: declared for i, declared in enumerate(card.columns) if declared.derived is not None
    }
    read: list[Label[Any]] = []
    for i, declared in sourced.items():
        value = constant(epoch) if isinstance(declared, EpochColumn) else source.values[i]
        read.append(value.label(f"v{i}"))
    person: list[Label[Any]] = []
    if source.person is not None:
        read.append(source.person.label(PERSON))
        person = [column(PERSON).label(PERSON)]
    clamped: list[Label[Any]] = []
    for i, declared in sourced.items():
        end = None if edge is None else edge.ends.get(i)
        clamped.append((_clamp(declared, column(f"v{i}")) if end is None else end).label(f"c{i}"))
    if edge is not None:
        person = [edge.name.label(PERSON)]
    within = select(*clamped, *person).select_from(_named(select(*read), source.rows, "read"))
    rows = _stepped(sourced, [], within.subquery("clamped"), person)
    if derived:
        layout = Layout(card, source.dialect)
        made = [derived_value(declared, layout).label(f"v{i}") for i, declared in derived.items()]
        kept: list[Element] = [
            column(name) for i, declared in sourced.items() for name in _stored(i, declared)
        ]
        whole = select(*kept, *made, *_person_again(person)).select_from(rows.subquery("sourced"))
        bound = [
            _clamp(declared, column(f"v{i}")).label(f"c{i}") for i, declared in derived.items()
        ]
        fitted = select(*kept, *bound, *_person_again(person)).select_from(whole.subquery("made"))
        rows = _stepped(derived, kept, fitted.subquery("derived"), person)
    names: list[Element] = [
        column(name) for i, declared in enumerate(card.columns) for name in _stored(i, declared)
    ]
    if EPOCH in stored:
        names.append(constant(epoch).label(EPOCH))
    return select(*names, *_person_again(person)).select_from(rows.subquery("stepped"))


def _person_again(person: list[Label[Any]]) -> list[Element]:
    return [column(PERSON)] if person else []


def _stepped(
    columns: dict[int, Column], kept: list[Element], rows: Subquery, person: list[Label[Any]]
) -> Select[*tuple[Any, ...]]:
    """Add a second column for the integer steps of each number."""
    stepped: list[Element] = [*kept]
    for i, declared in columns.items():
        stepped.append(column(f"c{i}"))
        if isinstance(declared, NumberColumn):
            steps = func.floor(scaled(column(f"c{i}"), exact_double, 2.0**declared.grid_exponent))
            stepped.append(cast(steps, BigInteger()).label(f"s{i}"))
    return select(*stepped, *_person_again(person)).select_from(rows)


def _named(selected: Select[*tuple[Any, ...]], rows: FromClause, name: str) -> Subquery:
    return selected.select_from(rows).subquery(name)


def _bounded(
    card: Card, rows: Subquery, stored: list[str], seed: str, dialect: Dialect
) -> Subquery:
    """Number the rows of each person: the first rows_max are kept.

    Stored rows do not contain who a person is, but they distinguish persons with certainty: by the
    number of the person's first row among all rows of the source. A hash could confuse two persons,
    and one of them could then change more than the proof allows.

    A person's lot selects the block of all their rows. It is the other half of their first row's
    hash. The order of rows uses only the first half, so it reveals nothing about the lot.

    If the card promises one cell for each person, rows of the person's own cell come first and
    others are left out. The own cell is that of their earliest epoch, and there the first in the
    card's order. It depends on no seed, so the same rows under another name are in the same cell,
    and it stays when later rows arrive. A person who keeps the promise loses no rows.
    """
    hashed, sorted_by = _hashed_row(card, seed), _order_of_rows(card, stored)
    names: list[Element] = [column(name) for name in stored]
    person: Element = column(PERSON)
    known = select(*names, person, HashBitsLow(hashed).label(DRAWN))
    known = known.select_from(rows).where(person.is_not(None))

    def of_first(name: str) -> Element:
        return func.first_value(column(name)).over(partition_by=person, order_by=sorted_by)

    place = func.row_number().over(partition_by=person, order_by=sorted_by).label(PLACE)
    placed = select(*names, place)
    if has_person_column(card):
        known = known.add_columns(HashBitsHigh(hashed).label(BLOCK_HASH))
        who = person
        if dialect.name == "duckdb":
            known = known.add_columns(func.row_number().over().label(NUMBER))
            who = of_first(NUMBER)
        placed = placed.add_columns(who.label(PERSON), of_first(BLOCK_HASH).label(BLOCK_HASH))
    if _one_cell(card):
        known = known.add_columns(cell_number(card).label(CELL))
        placed = placed.add_columns(column(CELL), of_first(CELL).label(OWN_CELL))
    return placed.select_from(known.subquery("known")).subquery("placed")


def _hashed_row(card: Card, seed: str) -> Element:
    """The text whose hash draws a row.

    Doubles enter it as integer steps, because engines write doubles differently. Texts enter
    unchanged; if two rows differ only in how they split a "|", the columns decide their order.
    """
    texts: list[Element] = []
    for i, declared in enumerate(card.columns):
        name = f"s{i}" if isinstance(declared, NumberColumn) else f"c{i}"
        texts += [func.coalesce(cast(column(name), String()), quoted("~")), quoted("|")]
    return func.concat(_seed(seed), quoted("|"), *texts, column(PERSON))


def _order_of_rows(card: Card, stored: list[str]) -> list[Element]:
    """A seeded hash of the row's values, then every stored column.

    Rows that are still tied are equal for every query, so every server and engine keeps the same
    ones. Rows of earlier epochs come first. So a kept row stays when later rows arrive, and a
    person has at most rows_max rows in all epochs together.
    """
    sorted_by: list[Element] = [column(DRAWN)]
    textual = {
        f"c{i}" for i, declared in enumerate(card.columns) if isinstance(declared, TextColumn)
    }
    for name in stored:
        value: Element = ByBytes(column(name)) if name in textual else column(name)
        sorted_by.append(value.nulls_last())
    if _one_cell(card):
        sorted_by.insert(0, column(CELL))
    if EPOCH in stored:
        sorted_by.insert(0, column(EPOCH))
    return sorted_by


def _one_cell(card: Card) -> bool:
    return card.cells is not None and card.cells.one_per_person


def _seed(seed: str) -> Element:
    return cast(bindparam("seed", seed, unique=True), String())


def _clamp(declared: Column, value: Element) -> Element:
    """The value clamped to its bounds. NaN is tested first: it compares above everything."""
    match declared:
        case IntegerColumn():
            return cast(
                _between(value, constant(declared.low), constant(declared.high)), BigInteger()
            )
        case NumberColumn():
            inside = _between(value, exact_double(declared.low), exact_double(declared.high))
            return case((IsNaN(value), null()), else_=inside)
        case DateColumn():
            return _between(value, day(declared.low), day(declared.high))
        case TextColumn():
            fits = func.length(value).between(constant(1), constant(declared.length_max))
            return case((fits, value))
        case CategoryColumn() | BooleanColumn():
            return value


def _between(value: Element, low: Element, high: Element) -> Element:
    return case((value < low, low), (value > high, high), else_=value)
