"""One coefficient of the least-squares fit to a block's rows: an exact fraction.

Terms, places and rows that count are those of `linear_regression`, and the fit is its exact one,
without noise and without a ridge. With X the columns of the terms in whole steps of their grids and
y the outcome's, coefficients solve (X^T X) b = X^T y; both sides come from the block's sums of
products by whole numbers: a place w stands for low + grain (centre + w) steps. The elimination
takes the wanted coefficient last, which is then one quotient. Where X^T X is singular (fewer rows
than terms, a constant or collinear column) rows do not decide the coefficients, and there is none.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from app.data.card import Card
from app.errors import Invalid
from app.queries.bareiss import eliminate
from app.queries.block_tally import Added
from app.queries.blocks.value import HERE, BlockValue, step
from app.queries.shapes.features import (
    BucketTerm,
    Features,
    Intercept,
    Term,
    factor,
    feature_terms,
    place,
)
from app.queries.shapes.sums import numeric
from app.queries.tally import IsMissing, Negation

TERMS_MAX = 16  # a block's sums are as many as their products, and a fit takes the cube of them


class BlockRegression(BaseModel):
    """`{"kind": "linear_regression", "outcome": ..., "features": [...], "intercept": true,
    "coefficient": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["linear_regression"]
    outcome: str
    features: Features
    intercept: bool = True
    coefficient: str

    @field_validator("features", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def computed(self, card: Card) -> BlockValue:
        column = numeric(card, self.outcome, f"{HERE}/outcome")
        if self.outcome in self.features:
            at = f"{HERE}/features/{self.features.index(self.outcome)}"
            raise Invalid.field(at, "another column than the outcome")
        terms = self._terms(card)
        wanted = terms[-1]
        outcome = place(column)
        unit = step(column) / (
            step(numeric(card, wanted.column)) if isinstance(wanted, BucketTerm) else 1
        )
        readings = tuple(
            factor(each) for each in (*terms, outcome) if not isinstance(each, Intercept)
        )
        pairs = [(i, j) for i in range(len(readings)) for j in range(i, len(readings))]
        fit = _Fit((*terms, outcome))

        def value(found: Sequence[int]) -> Fraction | None:
            coefficient = fit.last(found)
            return None if coefficient is None else unit * coefficient

        return BlockValue(
            readings,
            Added((*((i,) for i in range(len(readings))), *pairs)),
            value,
            present=tuple(Negation(IsMissing(name)) for name in (*self.features, self.outcome)),
            work=len(terms) ** 3,
        )

    def _terms(self, card: Card) -> tuple[Term, ...]:
        """The one whose coefficient is wanted last."""
        terms = feature_terms(self.features, card, f"{HERE}/features", intercept=self.intercept)
        if len(terms) > TERMS_MAX:
            rule = f"at most {TERMS_MAX} terms, one for each value of a category"
            raise Invalid.field(f"{HERE}/features", rule)
        found = [term for term in terms if term.label() == self.coefficient]
        if len(found) != 1:
            rule = "a term of the fit: a feature, `feature=value` of a category, or (intercept)"
            raise Invalid.field(f"{HERE}/coefficient", rule)
        return (*(term for term in terms if term is not found[0]), found[0])


class _Fit:
    """Of a block's n and sums, as they are asked for above, the matrix [X^T X, X^T y]."""

    def __init__(self, columns: Sequence[Term]) -> None:
        """The outcome last. Column i is a + b z for (a, b, place of z among 1 and the readings)."""
        self._columns: list[tuple[int, int, int]] = []
        self._readings = 0
        for column in columns:
            if isinstance(column, Intercept):
                self._columns.append((1, 0, 0))
                continue
            self._readings += 1
            if isinstance(column, BucketTerm):
                first = column.low + column.grain * column.centre
                self._columns.append((first, column.grain, self._readings))
            else:
                self._columns.append((0, 1, self._readings))

    def last(self, found: Sequence[int]) -> Fraction | None:
        """The last coefficient; None if rows do not decide it."""
        moments = self._moments(found)
        rows = [
            [
                a * c * moments[0][0]
                + a * d * moments[0][s]
                + b * c * moments[0][r]
                + b * d * moments[r][s]
                for c, d, s in self._columns
            ]
            for a, b, r in self._columns[:-1]
        ]
        if not eliminate(rows, len(rows) - 1) or rows[-1][-2] == 0:
            return None
        return Fraction(rows[-1][-1], rows[-1][-2])

    def _moments(self, found: Sequence[int]) -> list[list[int]]:
        """Of 1 and the readings."""
        size = self._readings + 1
        moments = [[0] * size for _ in range(size)]
        numbers = iter(found)
        for i in range(size):
            for j in range(i, size):
                moments[i][j] = moments[j][i] = next(numbers)
        return moments
