"""Public parameters of a regression for gradient descent.

A row is a vector of terms, each between -1 and 1 (`features.py`), and an outcome; the prediction is
the sum of weight times term. With an intercept a number's term is its distance from the middle of
the bounds, over their half width. Without an intercept the term must be 0 where the value is 0. So
it is the value divided by the larger absolute bound. The learned weights are converted to the
columns' own units at the end. This is free, as post-processing of noisy results.

One row adds one gradient to a sum, or nothing. So a person moves the sum of gradients of norm 1 by
at most `moves`: m for m added or removed rows, and 2 m for m replaced rows.
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

ModelKind = Literal["squares", "logistic"]
WeightVector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Input:
    """A term, or the outcome, as a number computed from one column of a row's integers.

    It is 1 where the column has the code, else 0; or slope * whole + shift."""

    label: str
    column: int | None  # index of the column; None for a constant term
    code: int | None
    slope: float
    shift: float
    middle: float = 0.0  # the column's value where the term is 0
    unit: float = 1.0  # change of the column that changes the term by 1


@dataclass(frozen=True, slots=True)
class LearningShape:
    """A regression to fit step by step, over the rows without missing values."""

    tally: Tally  # number of such rows
    records: Records
    model: ModelKind
    inputs: tuple[Input, ...]
    outcome: Input
    norm_max: float  # the largest norm that a row's terms can have
    moves: int
    rows_max: int  # rows per person
    replaced: bool
    rows: int | None  # number of rows, if that is public
    ridged: bool = False  # true if the query has a ridge, which gradient descent does not support
    alternatives: tuple["LearningShape", ...] = ()  # other shapes of the same query; there are none

    def in_own_units(self, weights: WeightVector) -> list[float]:
        """Coefficients of the columns: outcome = intercept + sum of coefficient * value."""
        outcome, coefficients = self.outcome, []
        for weight, term in zip(weights.tolist(), self.inputs, strict=True):
            if term.column is None:
                others = zip(weights.tolist(), self.inputs, strict=True)
                weight -= math.fsum(w * other.middle / other.unit for w, other in others)
                coefficients.append(outcome.middle + outcome.unit * weight)
            else:
                coefficients.append(outcome.unit * weight / term.unit)
        return coefficients


def gradient_shape(
    terms: tuple[Term, ...],
    outcome: BucketTerm | Indicator,
    where: Condition | None,
    card: Card,
    *,
    model: ModelKind,
) -> LearningShape:
    """Shape of the regression; `terms` come from `features.feature_terms`."""
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
        # At most one indicator of a category is 1.
        norm_max=math.sqrt(intercept + len(set(named))),
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
    label, index = term.label(), columns.index(term.column)
    if isinstance(term, Indicator):
        column = card.column(term.column)
        values = column.values if isinstance(column, CategoryColumn) else (False, True)
        return Input(label, index, values.index(term.value), 0.0, 0.0)
    # Bounds may be so near to each other that all values are in one bucket.
    reach, half_width = max(term.reach, 1), term.half_width or 1.0
    if centred:
        return Input(label, index, None, 1.0 / reach, 0.0, term.middle, half_width)
    bound = abs(term.middle) + half_width
    return Input(label, index, None, half_width / reach / bound, term.middle / bound, unit=bound)
