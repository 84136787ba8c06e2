"""What gradient descent needs to know of a regression: all of it public.

A row is a vector of terms, each between -1 and 1 (`features.py`), and an outcome; the prediction is
the sum of weight times term. With an intercept a number's term is its distance from the middle of
the bounds, over their half width. Without one that would move the origin, so there it is the value
itself, over the larger bound. Weights found for the terms are turned back into the columns' own
units at the end: free, as all that follows noise.

One row adds one gradient to a sum, or nothing, so a person moves the sum of gradients of norm 1 by
at most `moves`: of m rows that appear or vanish m, and of m rows that are replaced 2 m.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from app.data.card import Card
from app.data.columns import CategoryColumn
from app.queries.shapes.features import BucketTerm, Indicator, Intercept, Term
from app.queries.tally import (
    AllOf,
    CategoryIndex,
    CentredBucket,
    Condition,
    CountRows,
    IsMissing,
    Negation,
    Records,
    Tally,
)

Model = Literal["squares", "logistic"]
Weights = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Input:
    """A term, or the outcome, as a number made of one column of a row's whole numbers: 1 where the
    column has the code, else 0; or slope * whole + shift."""

    label: str
    column: int | None  # which one; None for what is the same in every row
    code: int | None
    slope: float
    shift: float
    middle: float = 0.0  # the column's value where the term is 0
    unit: float = 1.0  # how much of the column makes 1 of the term


@dataclass(frozen=True, slots=True)
class LearningShape:
    """A regression to be fitted step by step, over the rows in which nothing of it is missing."""

    tally: Tally  # how many such rows
    records: Records
    model: Model
    inputs: tuple[Input, ...]
    outcome: Input
    longest: float  # the largest norm that a row's terms can have
    moves: int
    rows_max: int  # of a person
    replaced: bool
    rows: int | None  # how many there are, if that is public
    ridged: bool = False  # was a ridge asked for, which gradient descent does not have
    alternatives: tuple["LearningShape", ...] = ()  # other ways to the same; there are none

    def in_own_units(self, weights: Weights) -> list[float]:
        """Coefficients of the columns: outcome = intercept + sum of coefficient * value."""
        outcome, found = self.outcome, []
        for weight, term in zip(weights.tolist(), self.inputs, strict=True):
            if term.column is None:
                others = zip(weights.tolist(), self.inputs, strict=True)
                weight -= math.fsum(w * each.middle / each.unit for w, each in others)
                found.append(outcome.middle + outcome.unit * weight)
            else:
                found.append(outcome.unit * weight / term.unit)
        return found


def gradient_shape(
    terms: tuple[Term, ...],
    outcome: BucketTerm | Indicator,
    where: Condition | None,
    card: Card,
    *,
    model: Model,
) -> LearningShape:
    """`terms` as `features.feature_terms` gives them."""
    named = [term.column for term in terms if not isinstance(term, Intercept)]
    columns = list(dict.fromkeys([*named, outcome.column]))
    intercept = any(isinstance(term, Intercept) for term in terms)
    present = tuple(Negation(IsMissing(name)) for name in columns)
    counted = AllOf(present if where is None else (where, *present))
    by_name = {term.column: term for term in terms if not isinstance(term, Intercept)}
    by_name[outcome.column] = outcome
    replaced = card.neighbours == "replace_one"
    return LearningShape(
        tally=Tally(counted, (), (CountRows(),)),
        records=Records(where, tuple(_stored(by_name[name]) for name in columns)),
        model=model,
        inputs=tuple(_input(term, columns, card, centred=intercept) for term in terms),
        outcome=_input(outcome, columns, card, centred=intercept),
        # Of the values of one category at most one is there.
        longest=math.sqrt(intercept + len(set(named))),
        moves=card.person.rows_max * (2 if replaced else 1),
        rows_max=card.person.rows_max,
        replaced=replaced,
        rows=card.rows if where is None else None,
    )


def _stored(term: BucketTerm | Indicator) -> CentredBucket | CategoryIndex:
    if isinstance(term, BucketTerm):
        return CentredBucket(term.column, term.low, term.grain, term.centre)
    return CategoryIndex(term.column)


def _input(term: Term, columns: list[str], card: Card, *, centred: bool) -> Input:
    if isinstance(term, Intercept):
        return Input(term.label(), None, None, 0.0, 1.0)
    label, place = term.label(), columns.index(term.column)
    if isinstance(term, Indicator):
        column = card.column(term.column)
        values = column.values if isinstance(column, CategoryColumn) else (False, True)
        return Input(label, place, values.index(term.value), 0.0, 0.0)
    # Bounds may be so near to each other that all values are in one place.
    reach, half_width = max(term.reach, 1), term.half_width or 1.0
    if centred:
        return Input(label, place, None, 1.0 / reach, 0.0, term.middle, half_width)
    bound = abs(term.middle) + half_width
    return Input(label, place, None, half_width / reach / bound, term.middle / bound, unit=bound)
