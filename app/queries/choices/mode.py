"""Most frequent category, and the k most frequent ones in turn.

The score of a category is its number of rows. An added row adds one to one score, R = 1. A changed
row adds one to one score and takes one from another, R = 2. For m rows per person R is m times as
large.

A missing value, or a category that is not on the card, counts nowhere. For an empty selection all
categories have equal scores. `top_k` chooses k times, each time among the categories that are left.
Their scores are the same, so each round has the same R, and the rounds share the query's cost.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn
from app.errors import Invalid
from app.queries.filters import POINTER, declared
from app.queries.shapes.selection import Choice, SelectionShape
from app.queries.tally import ByValues, Exact

WORK_MAX = 10_000_000  # limit on rounds times categories


class Mode(Choice):
    """`{"kind": "mode", "column": ..., "where": ...}`"""

    kind: Literal["mode"]
    column: str

    def shape(self, card: Card) -> SelectionShape:
        column = declared(card, self.column, f"{POINTER}/column")
        if not isinstance(column, CategoryColumn | BooleanColumn):
            raise Invalid.field(f"{POINTER}/column", "must be a category or boolean column")
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
            raise Invalid.field(f"{POINTER}/column", "must be a category column")
        if self.k > len(column.values):
            raise Invalid.field(
                f"{POINTER}/k", "must be at most the number of the column's categories"
            )
        if self.k * len(column.values) > WORK_MAX:
            raise Invalid.field(
                f"{POINTER}/k",
                f"too large: k times the number of categories must be at most {WORK_MAX}",
            )
        return _most_frequent(self, card, ByValues(column.name, column.values), self.k)


def _most_frequent(
    query: Choice, card: Card, values: ByValues, picks: int | None = None
) -> SelectionShape:
    return SelectionShape(
        tally=query.tally(card, values),
        outcomes=values.values,
        scores=_counts,
        score_range=card.person.rows_max * (2 if card.neighbours == "replace_one" else 1),
        picks=picks,
    )


def _counts(exact: Exact, _: int) -> list[Any]:
    return list(exact[0])
