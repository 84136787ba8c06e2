"""Regression features: each row as a vector of public range, in integers.

A declared column becomes one term, a category one for each value but the first, and an intercept is
1 in every row. The value of a term in a row is `whole` / `reach`, a fraction from -1 to 1. An
engine computes `whole` exactly: for a number its bucket on a grid between the bounds, counted from
the middle; for a boolean, and for a category's value, 0 or 1. A row in which a column of the
regression is missing counts nowhere, so one row adds one such vector or nothing.

Bounds and categories are the card's: nothing is centred or scaled by the data.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import declared
from app.queries.tally import CentredBucket, EqualsValue, Factor

TERMS_MAX = 64
STEPS_MAX = 1 << 16  # products of two buckets stay below 2^30

Features = Annotated[tuple[str, ...], Field(min_length=1, max_length=TERMS_MAX)]


@dataclass(frozen=True, slots=True)
class Intercept:
    """1 in every row."""

    @property
    def reach(self) -> int:
        return 1

    def label(self) -> str:
        return "(intercept)"


@dataclass(frozen=True, slots=True)
class BucketTerm:
    """(steps - low) // grain - centre: from -centre to reach, for a value between the bounds.

    A value x of the column is near middle + half_width * whole / reach, so a coefficient of the
    term, over half_width, is one of the column."""

    column: str
    low: int
    grain: int
    centre: int
    reach: int
    middle: float
    half_width: float

    def label(self) -> str:
        return self.column


@dataclass(frozen=True, slots=True)
class Indicator:
    """1 where the column has the value, else 0."""

    column: str
    value: str | bool

    @property
    def reach(self) -> int:
        return 1

    def label(self) -> str:
        return self.column if self.value is True else f"{self.column}={self.value}"


Term = Intercept | BucketTerm | Indicator


def feature_terms(names: Features, card: Card, at: str, *, intercept: bool) -> tuple[Term, ...]:
    """Terms of the features, the intercept first. Raises Invalid with the field."""
    if len(set(names)) != len(names):
        raise Invalid.field(at, "each feature may appear only once")
    terms: list[Term] = [Intercept()] if intercept else []
    for i, name in enumerate(names):
        column = declared(card, name, f"{at}/{i}")
        match column:
            case IntegerColumn() | NumberColumn():
                terms.append(place(column))
            case BooleanColumn():
                terms.append(Indicator(name, True))
            case CategoryColumn():
                if len(column.values) > TERMS_MAX:
                    raise Invalid.field(
                        f"{at}/{i}", f"must be a category of at most {TERMS_MAX} values"
                    )
                terms.extend(Indicator(name, value) for value in column.values[1:])
            case _:
                raise Invalid.field(
                    f"{at}/{i}", "must be an integer, number, boolean or category column"
                )
    if len(terms) > TERMS_MAX:
        raise Invalid.field(
            at, f"may make at most {TERMS_MAX} terms, one for each value of a category"
        )
    if not terms:
        raise Invalid.field(at, "must contain a feature with more than one value")
    return tuple(terms)


def place(column: IntegerColumn | NumberColumn) -> BucketTerm:
    low, high = column.steps
    doublings = max(0, (high - low).bit_length() - STEPS_MAX.bit_length() + 1)
    grain = 1 << doublings
    width = (high - low) // grain
    centre = width // 2
    reach = max(width - centre, 1)  # bounds within one step of the grid leave one bucket, 0
    step = grain * 2.0**-column.grid_exponent
    middle = (low + grain * centre) * 2.0**-column.grid_exponent
    return BucketTerm(column.name, low, grain, centre, reach, middle, step * reach)


def factor(term: Indicator | BucketTerm) -> Factor:
    """The integer `whole`, as engines compute it."""
    if isinstance(term, Indicator):
        return EqualsValue(term.column, term.value)
    return CentredBucket(term.column, term.low, term.grain, term.centre)
