"""The most frequent category, and the k most frequent ones, one after the other.

The score of a category is how many rows have it. A row that appears adds one to one score, R = 1;
one that changes adds one to one and takes one from another, R = 2; m rows m times as much.
A missing value, or a category that is not on the card, counts nowhere. Of an empty selection every
category is as good. `top_k` chooses k times, each time among those that are left; the scores of
these are the same, so each round has the same R and the rounds share what the question costs.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn
from app.errors import Invalid
from app.queries.filters import POINTER, declared
from app.queries.shapes.selection import Choice, SelectionShape
from app.queries.tally import ByValues, Exact

WORK_MAX = 10_000_000  # rounds times categories


class Mode(Choice):
    """`{"kind": "mode", "column": ..., "where": ...}`"""

    kind: Literal["mode"]
    column: str

    def shape(self, card: Card) -> SelectionShape:
        column = declared(card, self.column, f"{POINTER}/column")
        if not isinstance(column, CategoryColumn | BooleanColumn):
            raise Invalid.field(f"{POINTER}/column", "a category or boolean column")
        values = column.values if isinstance(column, CategoryColumn) else (False, True)
        return _most_frequent(self, card, ByValues(column.name, values))


class TopK(Choice):
    """`{"kind": "top_k", "column": ..., "k": 3, "where": ...}`"""

    kind: Literal["top_k"]
    column: str
    k: Annotated[int, Field(ge=1)]

    def shape(self, card: Card) -> SelectionShape:
        column = declared(card, self.column, f"{POINTER}/column")
        if not isinstance(column, CategoryColumn):
            raise Invalid.field(f"{POINTER}/column", "a category column")
        if self.k > len(column.values):
            raise Invalid.field(f"{POINTER}/k", "no more than the column has categories")
        if self.k * len(column.values) > WORK_MAX:
            raise Invalid.field(f"{POINTER}/k", f"k times the categories is at most {WORK_MAX}")
        return _most_frequent(self, card, ByValues(column.name, column.values), self.k)


def _most_frequent(
    asked: Choice, card: Card, values: ByValues, picks: int | None = None
) -> SelectionShape:
    return SelectionShape(
        tally=asked.tally(card, values),
        outcomes=values.values,
        scores=_counts,
        score_range=card.person.rows_max * (2 if card.neighbours == "replace_one" else 1),
        picks=picks,
    )


def _counts(exact: Exact, _: int) -> list[Any]:
    return list(exact[0])
