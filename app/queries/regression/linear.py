"""Linear regression by noisy sufficient statistics: one query, one charge, all moments.

The moments of `queries/shapes/moments.py` receive noise. Coefficients, standard errors and
intervals are computed from them alone (`mechanisms/noise/linear_fit.py`). So they are free, and any
other fit to the same moments would be too. Features and the outcome are clamped to the card's
bounds and placed on a grid of at most 2^16 steps. A row in which one of their columns is missing is
left out.
"""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.shapes.features import BucketTerm, Features, feature_terms, place
from app.queries.shapes.learning import LearningShape, gradient_shape
from app.queries.shapes.moments import Moments, moments_of
from app.queries.shapes.sums import DEPENDS, SumShape
from app.queries.tally import AllOf, IsMissing, Negation, Tally

RIDGE_MAX = 1e12
UNPROMISED = f"{DEPENDS}, by how near the features are to depending on each other"


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class LinearRegression(BaseModel):
    """`{"kind": "linear_regression", "outcome": ..., "features": [...], "intercept": true,
    "ridge": 0, "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["linear_regression"]
    outcome: str
    features: Features
    intercept: bool = True
    ridge: Annotated[
        float, BeforeValidator(_as_float), Field(ge=0, le=RIDGE_MAX, allow_inf_nan=False)
    ] = 0.0
    where: Filter | None = None

    @field_validator("features", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def shape(self, card: Card) -> SumShape:
        moments = self.moments(card)
        aggregates, measure = moments.measured(card)
        where = resolve(self.where, card, f"{POINTER}/where")
        present = [Negation(IsMissing(name)) for name in (*self.features, self.outcome)]
        complete = AllOf(tuple(present if where is None else [where, *present]))
        return SumShape(
            Tally(complete, (), aggregates),
            (measure,),
            no_half_width_reason=UNPROMISED,
            moments=moments,
            alternatives=(self._by_steps(card),),
        )

    def _by_steps(self, card: Card) -> LearningShape:
        """The same regression, for gradient descent."""
        terms = feature_terms(self.features, card, f"{POINTER}/features", intercept=self.intercept)
        where = resolve(self.where, card, f"{POINTER}/where")
        shape = gradient_shape(terms, self._outcome(card), where, card, model="squares")
        return replace(shape, ridged=self.ridge > 0)

    def moments(self, card: Card) -> Moments:
        """Moments of the regression. Raises Invalid with the field."""
        outcome = self._outcome(card)
        if self.outcome in self.features:
            at = f"{POINTER}/features/{self.features.index(self.outcome)}"
            raise Invalid.field(at, "must not contain the outcome column")
        terms = feature_terms(self.features, card, f"{POINTER}/features", intercept=self.intercept)
        return moments_of(terms, outcome)

    def _outcome(self, card: Card) -> BucketTerm:
        column = declared(card, self.outcome, f"{POINTER}/outcome")
        if not isinstance(column, IntegerColumn | NumberColumn):
            raise Invalid.field(f"{POINTER}/outcome", "must be an integer or number column")
        return place(column)
