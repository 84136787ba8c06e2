"""Selection queries: a selection of rows, and scored public outcomes.

R, the score range, bounds the difference by which one person can move two scores: over all
neighbouring tables x and x', the largest over outcomes of score(x) - score(x') less the smallest.
Adding the same number to every score changes no choice, so selection pays for R (Dong, Durfee and
Rogers 2020). R is at most twice the largest change of one score, and often less.

R is subadditive along a chain of tables, so a person of m rows has at most m times the R of one
row. Under replace_one a filter or a missing value lets a replaced row count before and not after.
So R is then at least that of an added row. Each kind proves its R, and a test finds the largest
over all neighbours of small tables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.queries.candidates import CandidatesOrIntervals
from app.queries.filters import POINTER, Filter, resolve
from app.queries.shapes.ranks.rank import RankRule
from app.queries.shapes.ranks.shape import RankShape, order_shape
from app.queries.tally import Condition, CountRows, Exact, Grouping, Tally


@dataclass(frozen=True, slots=True)
class SelectionShape:
    """One tally to request from the engine, and the scores of public outcomes computed from it."""

    tally: Tally
    outcomes: Sequence[Any]
    scores: Callable[[Exact, int], list[int]]  # maps the tally and the target rank to the scores
    score_range: int  # R, in integer steps of the score
    steps: Fraction = Fraction(1)  # score steps per unit of the reported error
    error: Literal["regret", "rank_error"] = "regret"  # meaning of a score below the best
    picks: int | None = None  # number of outcomes, chosen in turn; None for a single outcome
    # Maps the error in steps that the noise leaves to the target rank; None where there is none.
    rank: Callable[[float], int] | None = None
    # other shapes of the same query, by the values at ranks
    alternatives: tuple[RankShape, ...] = ()


class Choice(BaseModel):
    """The rows a choice is based on."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    where: Filter | None = None

    def tally(self, card: Card, grouping: Grouping) -> Tally:
        return Tally(self.condition(card), (grouping,), (CountRows(),))

    def condition(self, card: Card) -> Condition | None:
        return resolve(self.where, card, f"{POINTER}/where")


class RankChoice(Choice):
    """A choice by rank; the value at the rank is an alternative.

    Where missing values count as a value, the alternative is the only way: candidates are scored
    by the present values."""

    column: str
    missing: int | float | None = None
    candidates: CandidatesOrIntervals | None = None

    def by_value(self, card: Card, rank: RankRule) -> tuple[RankShape, ...]:
        """The alternative by value; none for dates, and none within one step of a grid."""
        column = card.column(self.column)
        if (
            not isinstance(column, IntegerColumn | NumberColumn)
            or column.steps[0] == column.steps[1]
        ):
            return ()
        return (self.value_shape(card, rank),)

    def value_shape(self, card: Card, rank: RankRule) -> RankShape:
        return order_shape(
            card,
            self.column,
            self.condition(card),
            "rank",
            (rank,),
            self.missing,
            candidates=self.candidates is not None,
        )
