"""Logistic regression: the odds of a boolean outcome as a function of other columns.

ln(p / (1 - p)) = intercept + sum of coefficient * value, p the probability that the outcome is
true. There is no closed form, so it is fitted by noisy gradient descent
(`mechanisms/learning/gradient_descent.py`). A row in which the outcome or a feature is missing
counts nowhere. For an empty selection, or a constant outcome, noise and step size alone determine
the weights.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from app.data.card import Card
from app.data.columns import BooleanColumn
from app.errors import Invalid
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.shapes.features import Features, Indicator, feature_terms
from app.queries.shapes.learning import LearningShape, gradient_shape


class LogisticRegression(BaseModel):
    """`{"kind": "logistic_regression", "outcome": ..., "features": [...], "intercept": true,
    "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["logistic_regression"]
    outcome: str
    features: Features
    intercept: bool = True
    where: Filter | None = None

    @field_validator("features", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def shape(self, card: Card) -> LearningShape:
        outcome = declared(card, self.outcome, f"{POINTER}/outcome")
        if not isinstance(outcome, BooleanColumn):
            raise Invalid.field(f"{POINTER}/outcome", "must be a boolean column")
        terms = feature_terms(self.features, card, f"{POINTER}/features", intercept=self.intercept)
        if self.outcome in self.features:
            at = f"{POINTER}/features/{self.features.index(self.outcome)}"
            raise Invalid.field(at, "must not contain the outcome column")
        where = resolve(self.where, card, f"{POINTER}/where")
        return gradient_shape(terms, Indicator(outcome.name, True), where, card, model="logistic")
