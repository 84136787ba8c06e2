"""How a prepared version holds a card's columns: physical names and the meaning of stored values.

Column i of the card is stored as "c<i>", whatever its declared name: whole numbers as they are,
real numbers as doubles, categories as their position in the card's list, booleans, dates and texts
as such. A `number` column has a second one, "s<i>", its whole steps, which is what sums add up.

Where a person may have several rows there are "person", by which rows of one person are known to
be so, and "own_place", that of the row in the person's own order (`cleaning.py`). A stored version
knows nobody: there a person is the number of one of their rows. Elsewhere it is what the source
tells persons apart by, which never leaves the statement. Either way two persons are never held for
one: what a person can change is proved without a word about hashes. Beside it there is "lot", a
keyed hash of who the person is, which decides the block of all their rows (`blocks.py`): the number
of a row would not do, as it changes with whoever stands before. Two persons may have the same lot.

A version to which epochs were appended has "epoch", the number of the one that a row came with.
"""

from typing import Any

from sqlalchemy import FromClause, Select, table

from app.data.card import Card
from app.data.columns import CategoryColumn, Column, IntegerColumn, NumberColumn
from app.engines.sql.dialects import DUCKDB, Dialect, Statement, written

TABLE = "rows"
PERSON = "person"
PLACE = "own_place"  # lists that rows are joined with have places too
BLOCK_HASH = "lot"
EPOCH = "epoch"


def has_person_column(card: Card) -> bool:
    """May a person have several rows? Otherwise each row is one, and rows are what is counted."""
    return card.person.rows_max > 1


class Layout:
    """Where each declared column of one card is, and in whose SQL it is asked for; compared by
    identity, so that it keys caches. `rows` are the clean rows: a prepared table, or, where nothing
    can be prepared, the SELECT that cleans them."""

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
        """The stored number of each category."""
        return self._codes[name]
