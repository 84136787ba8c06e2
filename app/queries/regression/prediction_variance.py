"""Variance factor of a linear regression at a public point: x0^T (X^T X + ridge I)^-1 x0.

Times the variance of the errors this is the variance of the prediction at x0 by a regression on
these features. Rows and the point are vectors of `features.py`: each coordinate within [-1, 1], an
intercept of 1, at most one 1 per category. So |x|^2 <= B^2, the number of columns plus one for the
intercept, without any clipping. A row in which a feature is missing counts nowhere.

One person of m rows changes ln v by at most U = ln(1 + m B^2 / ridge), if added, removed or
replaced.
Proof: let A be X^T X + ridge I without the person, so that A >= ridge I, and P the sum of x x^T
over their rows: 0 <= P <= m B^2 I <= (m B^2 / ridge) A. Hence A <= A + P <= exp(U) A, and
inverting, v of A + P is between exp(-U) times v of A and v of A itself. Two such P are within the
same span. A row x = x0 of length B in an empty table attains the bound. Without the ridge U is
infinite: one row can determine a direction that was undetermined before (decision 0028).

The release is m = floor(ln v / g) with noise, g a power of two: it changes by at most U / g + 1.
Rounding: v is an exact fraction, as all sums are integers and the point is on their grid. The error
of its logarithm is below 1e-40, which moves m by at most one more; U is rounded up.

The figure is exp(m g), so noise is a factor and the interval is one of factors.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, exp, floor, frexp, ldexp
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, field_validator

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.bareiss import eliminate
from app.queries.estimates import Estimate, NoisySteps
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.shapes.features import (
    BucketTerm,
    Features,
    Indicator,
    Intercept,
    Term,
    factor,
    feature_terms,
)
from app.queries.shapes.measures import Measure
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.shapes.sums import SumShape
from app.queries.tally import (
    Aggregate,
    AllOf,
    CountRows,
    Exact,
    IsMissing,
    Negation,
    Product,
    Tally,
)

THEOREM = "Sherman and Morrison 1950 (one row more is a factor of at most 1 + |x|^2 / ridge)"
RIDGE_MIN, RIDGE_MAX = 1e-9, 1e12
RIDGE_NEEDED = (
    f"must be from {RIDGE_MIN:g} to {RIDGE_MAX:g}: without a ridge one row can change the variance "
    "by any factor, and no noise would hide it"
)
UNPROMISED = "none: the noise is a factor of the answer, not a distance from it"
ROUNDED = 1e-12  # more than the relative error of floats
STEP_BITS = 16  # U is about 2^16 steps
_FINE = Context(prec=60, Emax=10**9, Emin=-(10**9))


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class PredictionVariance(BaseModel):
    """`{"kind": "prediction_variance", "features": [...], "point": {...}, "ridge": 1,
    "intercept": true, "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["prediction_variance"]
    features: Features
    point: dict[str, bool | int | float | str]
    ridge: Annotated[float, BeforeValidator(_as_float)] | None = None
    intercept: bool = True
    where: Filter | None = None

    @field_validator("features", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def shape(self, card: Card) -> PostProcessedShape:
        if self.ridge is None or not RIDGE_MIN <= self.ridge <= RIDGE_MAX:
            raise Invalid.field(f"{POINTER}/ridge", RIDGE_NEEDED)
        terms = feature_terms(self.features, card, f"{POINTER}/features", intercept=self.intercept)
        point = self._point(card, terms)
        gram = Gram(terms)
        where = resolve(self.where, card, f"{POINTER}/where")
        present = [Negation(IsMissing(name)) for name in self.features]
        complete = AllOf(tuple(present if where is None else [where, *present]))
        ridge, exponent = self._ridge, self.exponent(card)

        def exact(sums: Exact) -> Exact:
            variance = quadratic_form(gram.matrix(sums), gram.reaches, point, ridge)
            return ((floor(logarithm(variance) * Fraction(2) ** exponent),),)

        moved = ceil(self.moves(card) * Fraction(2) ** exponent) + 2
        measure = Measure("logarithm", ((1, 0),), moved, Fraction(1), exponent, single_cell=True)
        counted = Tally(complete, (), (CountRows(),))
        inner = SumShape(counted, (measure,), no_half_width_reason=UNPROMISED, factor=True)
        tally = Tally(complete, (), gram.aggregates())
        return PostProcessedShape(tally, inner, exact, THEOREM, {"ridge": self.ridge})

    @property
    def _ridge(self) -> Fraction:
        """The exact decimal that was sent."""
        return Fraction(repr(self.ridge))

    def moves(self, card: Card) -> Fraction:
        """U, rounded up."""
        squared = card.person.rows_max * (len(self.features) + self.intercept)
        return logarithm(1 + squared / self._ridge) + Fraction(1, 10**40)

    def exponent(self, card: Card) -> int:
        """g = 2^-exponent."""
        return STEP_BITS - frexp(float(self.moves(card)))[1]

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        """Variance factor, at most that of an empty table."""
        (released,) = noisy[0]
        exponent = self.exponent(card)
        terms = feature_terms(self.features, card, f"{POINTER}/features", intercept=self.intercept)
        point = zip(self._point(card, terms), Gram(terms).reaches, strict=True)
        most = float(sum(Fraction(whole, reach) ** 2 for whole, reach in point) / self._ridge)

        def figure(steps: float) -> float:
            return min(exp(min(ldexp(steps, -exponent), 700.0)), most)

        low, high = figure(released.low - 1), figure(released.high + 2)
        return [Estimate(figure(released.steps + 0.5), low * (1 - ROUNDED), high * (1 + ROUNDED))]

    def _point(self, card: Card, terms: tuple[Term, ...]) -> tuple[int, ...]:
        """The point as integers, on the grid of the rows."""
        at = f"{POINTER}/point"
        if set(self.point) != set(self.features):
            raise Invalid.field(at, "must have a value for each feature, and no other members")
        for name in self.features:
            _must_be_of(card, name, self.point[name], f"{at}/{name}")
        coordinates = tuple(self._whole(card, term) for term in terms)
        if not any(coordinates):
            raise Invalid.field(at, "must be another point: here the variance is 0 for all data")
        return coordinates

    def _whole(self, card: Card, term: Term) -> int:
        match term:
            case Intercept():
                return 1
            case Indicator():
                return int(self.point[term.column] == term.value)
            case BucketTerm():
                column = card.column(term.column)
                assert isinstance(column, IntegerColumn | NumberColumn), (
                    "a bucket term has a numeric column"
                )
                steps = floor(ldexp(float(self.point[term.column]), column.grid_exponent))
                return (steps - term.low) // term.grain - term.centre


def _must_be_of(card: Card, name: str, value: Any, at: str) -> None:
    column = declared(card, name, at)
    match column:
        case IntegerColumn() | NumberColumn():
            if isinstance(value, bool | str) or not column.low <= value <= column.high:
                raise Invalid.field(at, "must be a number within the column's bounds")
            if isinstance(column, IntegerColumn) and value != floor(value):
                raise Invalid.field(at, "must be a whole number, as in the column")
        case BooleanColumn():
            if not isinstance(value, bool):
                raise Invalid.field(at, "must be true or false")
        case CategoryColumn():
            if value not in column.known:
                raise Invalid.field(at, "must be one of the column's values")
        case _:  # features of other types are refused before
            raise Invalid.field(at, "must be an integer, number, boolean or category column")


class Gram:
    """Sums of products of two terms, as integers in units of 1 / their reaches."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self._terms = terms
        self.reaches = tuple(term.reach for term in terms)

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Aggregates of the upper triangle, row by row."""
        size = range(len(self._terms))
        return tuple(_sum_of(self._terms[i], self._terms[j]) for i in size for j in size if i <= j)

    def matrix(self, sums: Exact) -> list[list[int]]:
        size = len(self._terms)
        numbers = iter(sums)
        matrix = [[0] * size for _ in range(size)]
        for i in range(size):
            for j in range(i, size):
                matrix[i][j] = matrix[j][i] = next(numbers)[0]
        return matrix


def _sum_of(one: Term, other: Term) -> Aggregate:
    factors = [factor(term) for term in (one, other) if not isinstance(term, Intercept)]
    if not factors:
        return CountRows()
    return Product(tuple(factors))  # type: ignore[arg-type]


def quadratic_form(
    sums: list[list[int]], reaches: tuple[int, ...], point: tuple[int, ...], ridge: Fraction
) -> Fraction:
    """x0^T (X^T X + ridge I)^-1 x0, exactly.

    With R the reaches, x0 = R^-1 w and X^T X = R^-1 S R^-1, it is w^T (S + ridge R^2)^-1 w. That
    is minus the determinant of this matrix bordered by w, over its own determinant. One
    elimination without fractions gives both (Bareiss 1968); no pivot is 0, as the matrix is
    positive definite."""
    top, below = ridge.numerator, ridge.denominator
    size = len(point)
    rows = [
        [below * sums[i][j] + (top * reaches[i] ** 2 if i == j else 0) for j in range(size)]
        + [point[i]]
        for i in range(size)
    ]
    rows.append([*point, 0])
    eliminate(rows, size)
    return Fraction(-rows[size][size] * below, rows[size - 1][size - 1])


def logarithm(value: Fraction) -> Fraction:
    """Natural logarithm, with an error below 1e-40."""
    with localcontext(_FINE):
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())
