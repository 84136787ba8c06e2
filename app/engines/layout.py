"""How a prepared version holds a card's columns: physical names and the meaning of stored values.

Column i of the card is stored as "c<i>", whatever its declared name: whole numbers as they are,
real numbers as doubles, categories as their position in the card's list, booleans and dates as
such. A `number` column has a second one, "s<i>", its whole steps, which is what sums add up.
"""

from app.datasets import Card, CategoryColumn, Column, IntegerColumn, NumberColumn

TABLE = "rows"


class Layout:
    """Where each declared column of one card is; compared by identity, so that it keys caches."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self._places = {column.name: i for i, column in enumerate(card.columns)}
        self._codes = {
            column.name: {value: code for code, value in enumerate(column.values)}
            for column in card.columns
            if isinstance(column, CategoryColumn)
        }

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
