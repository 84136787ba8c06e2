"""A hash of whole rows, with the names of their columns and the declared cell of each row.

Names of one book may share cells only if every person is in the same cell under each of them.
`content_hash.py` cannot show that: it hashes each column by itself and forgets column names, so
swapped headers and values that moved to other rows look the same. Here each row is hashed as one
text, with columns in the order of their names, the exact text of its person, and its cell.

The hash does not depend on the order of rows or columns, nor on whether they come from CSV, Parquet
or a database: numbers enter as whole numbers, made by exact steps of binary arithmetic. Numbers of
2^42 and above, and everything else, enter as text. Where engines write a value differently, equal
rows get different hashes; then a second name with cells is refused, which is the safe side.
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
from app.engines.sql.cell_number import cell_number
from app.engines.sql.cleaning import RawRows, fitted_rows
from app.engines.sql.dialects import (
    FIRST_DIGITS,
    OTHER_DIGITS,
    ExactSum,
    IsNaN,
    exact_double,
    hash_number,
    quoted,
)
from app.engines.sql.layout import PERSON
from app.engines.table import Table

STEPS = 2.0**20  # in one, as in `content_hash.py`
REST_STEPS = 2.0**52  # in one step: together they hold every bit of a double above 2^-20
LARGE = 2.0**42  # from here on steps would not fit 64 bits
ARGUMENTS_MAX = 50  # of one function; PostgreSQL allows 100
MISSING = "~"
Element = ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class NamedRows:
    """The rows of a table with one more column: the text of the whole row."""

    rows: FromClause
    text: Element


def whole_rows_statement(card: Card, raw: RawRows, row_text: Element) -> Select[*tuple[Any, ...]]:
    """One row: how many rows, and two sums of their hashes. The card declares cells, and `raw` are
    values of `named_rows`."""
    texts = [row_text]
    if raw.person is not None:
        texts.append(_fixed_length(raw.person))
    # The text of the row takes the place of the person, which cleaning leaves as it is.
    rows = fitted_rows(card, replace(raw, person=_joined(texts))).subquery("fitted")
    whole = func.concat(column(PERSON), quoted(" "), cast(cell_number(card), String()))
    sums = [ExactSum(hash_number(whole, digits)) for digits in (FIRST_DIGITS, OTHER_DIGITS)]
    return select(func.count(), *sums).select_from(rows)


def whole_rows_of(table: Table, row: Sequence[int]) -> str:
    known = [sorted(table.names), [str(number) for number in row]]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def named_rows(table: Table) -> NamedRows:
    """In steps, each a subquery of its own: written as one expression for each column, a table of
    300 columns takes DuckDB minutes to plan."""
    prefix = "x"
    while any(name.lower().startswith(prefix) for name in table.called):
        prefix += "x"
    places = sorted(range(len(table.names)), key=lambda place: (table.names[place], place))
    kept: list[Element] = [column(name) for name in table.called]

    def called(kind: str, place: int) -> Element:
        return column(f"{prefix}_{kind}_{place}")

    def step(rows: FromClause, kind: str, wanted: dict[int, Element]) -> Subquery:
        made = [each.label(f"{prefix}_{kind}_{place}") for place, each in wanted.items()]
        step_rows = select(*kept, *made).select_from(rows).subquery(f"{prefix}_{kind}")
        kept.extend(column(each.name) for each in made)
        return step_rows

    texts = {place: trimmed_text(table, place) for place in places}
    rows = step(table.rows, "text", texts)
    numbers = {place: _number(table, place, called("text", place)) for place in places}
    rows = step(rows, "number", numbers)
    scaled = {place: _scaled(called("number", place)) for place in places}
    rows = step(rows, "scaled", scaled)
    exact = {
        place: _fixed_length(
            _exact_text(called("text", place), called("number", place), called("scaled", place))
        )
        for place in places
    }
    rows = step(rows, "exact", exact)
    whole = _joined([called("exact", place) for place in places]).label(f"{prefix}_row")
    sources: list[Element] = [column(name) for name in table.called]
    result = select(*sources, whole).select_from(rows).subquery("named")
    return NamedRows(result, column(f"{prefix}_row"))


def _fixed_length(text: Element) -> Element:
    """So that where one text ends and the next begins is never in doubt."""
    return func.coalesce(func.md5(text), quoted(MISSING))


def _joined(texts: list[Element]) -> Element:
    while len(texts) > 1:
        starts = range(0, len(texts), ARGUMENTS_MAX)
        texts = [func.concat(*texts[start : start + ARGUMENTS_MAX]) for start in starts]
    return texts[0]


def _number(table: Table, place: int, text: Element) -> Element:
    """The value as a double; NULL if it is none."""
    if table.types[place] in ("FLOAT", "DOUBLE"):
        number = table.double(place)
        return case((IsNaN(number), null()), else_=number)
    return cast(case((is_number(text), text), else_=null()), Double())


def _scaled(number: Element) -> Element:
    """In steps; NULL for a number that has too many of them."""
    return case((func.abs(number) < exact_double(LARGE), number * exact_double(STEPS)))


def _exact_text(text: Element, number: Element, scaled: Element) -> Element:
    """Whole steps and what is left of them; the text of a number that is large, or of none."""
    steps = func.floor(scaled)
    rest = func.floor((scaled - steps) * exact_double(REST_STEPS))
    first, second = (cast(cast(part, BigInteger()), String()) for part in (steps, rest))
    return case(
        (scaled.is_not(None), func.concat(first, quoted(":"), second)),
        (number.is_not(None), text),
        else_=word_text(text),
    )
