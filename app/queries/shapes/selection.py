"""What questions that choose have in common: a selection of rows, and scored public outcomes.

R, the score range, bounds how differently one person can move two scores: over all neighbouring
tables x and x', the largest over outcomes of score(x) - score(x') less the smallest. Adding the
same number to every score changes no choice, so R is what selection pays for (Dong, Durfee and
Rogers 2020); it is at most twice the largest change of one score, and often less.

R is subadditive along a chain of tables, so a person of m rows has at most m times the R of one
row. Under replace_one a filter or a missing value lets a replaced row count before and not after: R
then is at least that of a row that appears. Each kind proves its R, and a test finds the largest
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
    """One tally to ask the engine for, and the scores of public outcomes made of it."""

    tally: Tally
    outcomes: Sequence[Any]
    scores: Callable[[Exact, int], list[int]]  # of the tally and the rank that is aimed at
    score_range: int  # R, in whole steps of the score
    steps: Fraction = Fraction(1)  # how many steps of the score make one of what is told
    error: Literal["regret", "rank_error"] = "regret"  # what a score below the best means
    picks: int | None = None  # so many outcomes, one after the other; None for one alone
    # The rank to aim at if the noise leaves an error of so many steps; None where there is none.
    rank: Callable[[float], int] | None = None
    alternatives: tuple[RankShape, ...] = ()  # other ways to the same, by the values at ranks


class Choice(BaseModel):
    """The rows a choice is made by."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    where: Filter | None = None

    def tally(self, card: Card, grouping: Grouping) -> Tally:
        return Tally(self.condition(card), (grouping,), (CountRows(),))

    def condition(self, card: Card) -> Condition | None:
        return resolve(self.where, card, f"{POINTER}/where")


class RankChoice(Choice):
    """A choice by rank, of which the value at the rank is another way. Where missing values count
    as a value, it is the only one: candidates are chosen by the values that there are."""

    column: str
    missing: int | float | None = None
    candidates: CandidatesOrIntervals | None = None

    def by_value(self, card: Card, rank: RankRule) -> tuple[RankShape, ...]:
        """The other way; there is none for days, and none within one step of a grid."""
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
