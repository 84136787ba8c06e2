"""Small regressions, and their rows as whole numbers in plain Python."""

from typing import Any

import numpy as np

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, IntegerColumn, NumberColumn
from app.mechanisms.learning.gradient_descent import GradientRelease
from app.planning.plan import make_plan
from app.planning.request import Question
from app.queries.shapes.features import BucketTerm, Indicator, feature_terms, place
from app.queries.shapes.learning import LearningShape, Model, gradient_shape
from app.queries.tally import CentredBucket, Matrix, Records
from tests.queries.reference import Row, holds, in_steps

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": 0, "high": 3},
    {"name": "z", "type": "number", "low": -0.5, "high": 2.0},
    {"name": "group", "type": "category", "values": ["a", "b", "c"]},
    {"name": "kept", "type": "boolean"},
    {"name": "yes", "type": "boolean"},
]
LOGISTIC: dict[str, Any] = {
    "kind": "logistic_regression",
    "outcome": "yes",
    "features": ["x", "group"],
}
BY_RHO = {"rho": "0.5"}
BY_DELTA = {"epsilon": "1", "delta": "1e-6"}


def regression_shape(
    made: Card,
    features: tuple[str, ...],
    outcome: str,
    *,
    model: Model = "logistic",
    intercept: bool = True,
) -> LearningShape:
    terms = feature_terms(features, made, "/query/features", intercept=intercept)
    column = made.column(outcome)
    assert column is not None
    wanted: BucketTerm | Indicator
    if isinstance(column, BooleanColumn):
        wanted = Indicator(outcome, True)
    else:
        assert isinstance(column, IntegerColumn | NumberColumn)
        wanted = place(column)
    return gradient_shape(terms, wanted, None, made, model=model)


def asked(query: dict[str, Any], privacy: dict[str, Any], **mechanism: Any) -> Question:
    body: dict[str, Any] = {"dataset": "people", "query": query, "privacy": privacy}
    if mechanism:
        body["mechanism"] = {"kind": "noisy_gradient_descent", **mechanism}
    return Question.model_validate(body)


def release_of(
    made: Card, privacy: dict[str, Any], query: dict[str, Any] = LOGISTIC, **mechanism: Any
) -> GradientRelease:
    release = make_plan(asked(query, privacy, **mechanism), made).release
    assert isinstance(release, GradientRelease)
    return release


def recorded(made: Card, wanted: Records, rows: list[Row]) -> Matrix:
    """The whole numbers of the rows that count."""
    lines = []
    for row in rows:
        if not holds(wanted.where, row) or any(row[c.column] is None for c in wanted.columns):
            continue
        line = []
        for each in wanted.columns:
            value = row[each.column]
            if isinstance(each, CentredBucket):
                line.append((in_steps(made, each.column, value) - each.low) // each.grain)
                line[-1] -= each.centre
            else:
                column = made.column(each.column)
                values: tuple[Any, ...] = (False, True)
                if isinstance(column, CategoryColumn):
                    values = column.values
                line.append(values.index(value))
        lines.append(line)
    return np.array(lines, dtype=np.int64).reshape(len(lines), len(wanted.columns))
