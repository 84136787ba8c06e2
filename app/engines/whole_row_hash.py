"""A hash of whole rows, with the names of their columns and the declared cell of each row.

Names of one book may share cells only if every person is in the same cell under each of them.
`content_hash.py` cannot show that. It hashes each column by itself and ignores column names, so it
misses swapped headers and values that moved to other rows. Here each row is hashed as one text,
with columns in the order of their names, the exact text of its person, and its cell.

The hash does not depend on the order of rows or columns, nor on the source: CSV, Parquet or a
database. Numbers enter as integers, computed by exact steps of binary arithmetic. Numbers of 2^42
and above, and everything else, enter as text. If engines write a value differently, equal rows get
different hashes. Then a second name with cells is refused, which is safe.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    FromClause,
    Select,
    String,
    Subquery,
    case,
    cast,
    column,
    func,
    null,
    select,
)

from app.data.card import Card
from app.engines.content_hash import is_number, trimmed_text, word_text
from app.engines.hash_functions import FIRST_DIGITS, OTHER_DIGITS, hash_number
from app.engines.sql.cell_number import cell_number
from app.engines.sql.cleaning import RawRows, fitted_rows
from app.engines.sql.dialects import ExactSum, IsNaN, exact_double, quoted
from app.engines.sql.layout import PERSON
from app.engines.table import Table

STEPS = 2.0**20  # steps in one, as in `content_hash.py`
REST_STEPS = 2.0**52  # parts of one step: together they hold every bit of a double above 2^-20
LARGE = 2.0**42  # from here on, steps would not fit 64 bits
ARGUMENTS_MAX = 50  # of one function; PostgreSQL allows 100
MISSING = "~"
Element = ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Rows of a table with one more column: the text of the whole row."""

    rows: FromClause
    text: Element


def whole_rows_statement(card: Card, raw: RawRows, row_text: Element) -> Select[*tuple[Any, ...]]:
    """Statement with one row: the number of rows, and two sums of their hashes.

    The card must declare cells, and `raw` must hold values of `named_rows`.
    """
    texts = [row_text]
    if raw.person is not None:
        texts.append(_fixed_length(raw.person))
    # The text of the row replaces the person, which cleaning does not change.
    rows = fitted_rows(card, replace(raw, person=_joined(texts))).subquery("fitted")
    whole = func.concat(column(PERSON), quoted(" "), cast(cell_number(card), String()))
    sums = [ExactSum(hash_number(whole, digits)) for digits in (FIRST_DIGITS, OTHER_DIGITS)]
    return select(func.count(), *sums).select_from(rows)


def whole_rows_of(table: Table, row: Sequence[int]) -> str:
    known = [sorted(table.names), [str(number) for number in row]]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def named_rows(table: Table) -> NamedRows:
    """Add the text of each row, in steps that are separate subqueries.

    With one expression for each column, DuckDB takes minutes to plan a table of 300 columns.
    """
    prefix = "x"
    while any(name.lower().startswith(prefix) for name in table.called):
        prefix += "x"
    places = sorted(range(len(table.names)), key=lambda index: (table.names[index], index))
    kept: list[Element] = [column(name) for name in table.called]

    def called(kind: str, index: int) -> Element:
        return column(f"{prefix}_{kind}_{index}")

    def step(rows: FromClause, kind: str, expressions: dict[int, Element]) -> Subquery:
        made = [
            expression.label(f"{prefix}_{kind}_{index}")
            for index, expression in expressions.items()
        ]
        step_rows = select(*kept, *made).select_from(rows).subquery(f"{prefix}_{kind}")
        kept.extend(column(expression.name) for expression in made)
        return step_rows

    texts = {index: trimmed_text(table, index) for index in places}
    rows = step(table.rows, "text", texts)
    numbers = {index: _number(table, index, called("text", index)) for index in places}
    rows = step(rows, "number", numbers)
    scaled = {index: _scaled(called("number", index)) for index in places}
    rows = step(rows, "scaled", scaled)
    exact = {
        index: _fixed_length(
            _exact_text(called("text", index), called("number", index), called("scaled", index))
        )
        for index in places
    }
    rows = step(rows, "exact", exact)
    whole = _joined([called("exact", index) for index in places]).label(f"{prefix}_row")
    sources: list[Element] = [column(name) for name in table.called]
    result = select(*sources, whole).select_from(rows).subquery("named")
    return NamedRows(result, column(f"{prefix}_row"))


def _fixed_length(text: Element) -> Element:
    """Hash of a text, so that the boundary between two joined texts is never ambiguous."""
    return func.coalesce(func.md5(text), quoted(MISSING))


def _joined(texts: list[Element]) -> Element:
    while len(texts) > 1:
        starts = range(0, len(texts), ARGUMENTS_MAX)
        texts = [func.concat(*texts[start : start + ARGUMENTS_MAX]) for start in starts]
    return texts[0]


def _number(table: Table, place: int, text: Element) -> Element:
    """The value as a double; NULL if it is no number."""
    if table.types[place] in ("FLOAT", "DOUBLE"):
        number = table.double(place)
        return case((IsNaN(number), null()), else_=number)
    return cast(case((is_number(text), text), else_=null()), Double())


def _scaled(number: Element) -> Element:
    """The number in steps; NULL if it has too many of them."""
    return case((func.abs(number) < exact_double(LARGE), number * exact_double(STEPS)))


def _exact_text(text: Element, number: Element, scaled: Element) -> Element:
    """Integer steps and remainder of a number; the text itself if it is large or no number."""
    steps = func.floor(scaled)
    rest = func.floor((scaled - steps) * exact_double(REST_STEPS))
    first, second = (cast(cast(part, BigInteger()), String()) for part in (steps, rest))
    return case(
        (scaled.is_not(None), func.concat(first, quoted(":"), second)),
        (number.is_not(None), text),
        else_=word_text(text),
    )
