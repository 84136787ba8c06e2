"""How a prepared version stores a card's columns: physical names and the meaning of stored values.

Column i of the card is stored as "c<i>", independent of its declared name. Integers, booleans,
dates and texts are stored directly, real numbers as doubles, categories as their index in the
card's list. A `number` column has a second one, "s<i>": its integer steps, which sums add up.

If a person may have several rows, there are three more columns (`cleaning.py`):

- "person" is the same for all rows of one person. In a stored version it is the number of one of
  the person's rows. Elsewhere it is the source's identifier, which never leaves the statement. Two
  persons are never confused, so the bound on one person's influence does not rely on hashes.
- "own_place" is the index of a row in the person's own order.
- "lot" is a keyed hash of the person, which selects the block of all their rows (`blocks.py`). Row
  numbers would shift when earlier rows change. Collisions do not affect the proof.

A version with appended epochs has "epoch", the number of the epoch that a row came with.
"""

from typing import Any

from sqlalchemy import FromClause, Select, table

from app.data.card import Card
from app.data.columns import CategoryColumn, Column, IntegerColumn, NumberColumn
from app.engines.sql.dialects import DUCKDB, Dialect, Statement, written

TABLE = "rows"
PERSON = "person"
PLACE = "own_place"  # not "place", which lists that rows are joined with have too
BLOCK_HASH = "lot"
EPOCH = "epoch"


def has_person_column(card: Card) -> bool:
    """True if a person may have several rows; otherwise each row is a person."""
    return card.person.rows_max > 1


class Layout:
    """Physical columns of one card in one SQL dialect.

    Layouts are compared by identity, so that they can key caches. `rows`: the clean rows, a
    prepared table, or the SELECT that cleans them if nothing can be prepared.
    """

    def __init__(
        self, card: Card, dialect: Dialect = DUCKDB, rows: FromClause | None = None
    ) -> None:
        self.card = card
        self.dialect = dialect
        self.rows: FromClause = table(TABLE) if rows is None else rows
        self._places = {column.name: i for i, column in enumerate(card.columns)}
        self._codes = {
            column.name: {value: code for code, value in enumerate(column.values)}
            for column in card.columns
            if isinstance(column, CategoryColumn)
        }

    def written(self, statement: Select[*tuple[Any, ...]]) -> Statement:
        return written(statement, self.dialect)

    def column(self, name: str) -> Column:
        return self.card.columns[self._places[name]]

    def value(self, name: str) -> str:
        return f"c{self._places[name]}"

    def steps(self, name: str) -> str:
        match self.column(name):
            case IntegerColumn():
                return f"c{self._places[name]}"
            case NumberColumn():
                return f"s{self._places[name]}"
            case _:
                raise TypeError("only integer and number columns have a total")

    def codes(self, name: str) -> dict[str, int]:
        """Stored code of each category."""
        return self._codes[name]
