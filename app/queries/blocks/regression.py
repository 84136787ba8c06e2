"""One coefficient of the least-squares fit to a block's rows, as an exact fraction.

Terms, buckets and counted rows are those of `linear_regression`, and the fit is its exact one,
without noise and without a ridge. Let X be the matrix of the terms and y the outcome, both in
integer steps of their grids. The coefficients b solve (X^T X) b = X^T y. Both sides come from the
block's sums of products in integers: a bucket w stands for low + grain (centre + w) steps. The
elimination takes the requested coefficient last, which is then one quotient. Where X^T X is
singular (fewer rows than terms, a constant or collinear column) the rows do not determine the
coefficients, and the result is None.
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

TERMS_MAX = 16  # a block has one sum per product of terms, and a fit takes cubic time


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
            raise Invalid.field(at, "must not contain the outcome column")
        terms = self._terms(card)
        requested = terms[-1]
        outcome = place(column)
        unit = step(column) / (
            step(numeric(card, requested.column)) if isinstance(requested, BucketTerm) else 1
        )
        readings = tuple(
            factor(term) for term in (*terms, outcome) if not isinstance(term, Intercept)
        )
        pairs = [(i, j) for i in range(len(readings)) for j in range(i, len(readings))]
        fit = _Fit((*terms, outcome))

        def value(numbers: Sequence[int]) -> Fraction | None:
            coefficient = fit.last(numbers)
            return None if coefficient is None else unit * coefficient

        return BlockValue(
            readings,
            Added((*((i,) for i in range(len(readings))), *pairs)),
            value,
            present=tuple(Negation(IsMissing(name)) for name in (*self.features, self.outcome)),
            work=len(terms) ** 3,
        )

    def _terms(self, card: Card) -> tuple[Term, ...]:
        """Terms of the fit, with the requested coefficient last."""
        terms = feature_terms(self.features, card, f"{HERE}/features", intercept=self.intercept)
        if len(terms) > TERMS_MAX:
            rule = f"a fit may have at most {TERMS_MAX} terms, one for each value of a category"
            raise Invalid.field(f"{HERE}/features", rule)
        matching = [term for term in terms if term.label() == self.coefficient]
        if len(matching) != 1:
            rule = "must be a term of the fit: a feature, `feature=value`, or (intercept)"
            raise Invalid.field(f"{HERE}/coefficient", rule)
        return (*(term for term in terms if term is not matching[0]), matching[0])


class _Fit:
    """The matrix [X^T X, X^T y], from a block's n and sums in the order of the request."""

    def __init__(self, columns: Sequence[Term]) -> None:
        """Columns of the fit, the outcome last.

        Column i is a + b z for (a, b, index of z among 1 and the readings)."""
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

    def last(self, sums: Sequence[int]) -> Fraction | None:
        """The last coefficient; None if the rows do not determine it."""
        moments = self._moments(sums)
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

    def _moments(self, sums: Sequence[int]) -> list[list[int]]:
        """Moments of 1 and the readings."""
        size = self._readings + 1
        moments = [[0] * size for _ in range(size)]
        remaining = iter(sums)
        for i in range(size):
            for j in range(i, size):
                moments[i][j] = moments[j][i] = next(remaining)
        return moments
