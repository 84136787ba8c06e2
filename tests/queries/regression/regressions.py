"""Small regressions, and their rows as integers in plain Python."""

from typing import Any

import numpy as np

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, IntegerColumn, NumberColumn
from app.mechanisms.learning.gradient_descent import GradientRelease
from app.planning.plan import make_plan
from app.planning.request import Question
from app.queries.shapes.features import BucketTerm, Indicator, feature_terms, place
from app.queries.shapes.learning import LearningShape, ModelKind, gradient_shape
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
    model: ModelKind = "logistic",
    intercept: bool = True,
) -> LearningShape:
    terms = feature_terms(features, made, "/query/features", intercept=intercept)
    column = made.column(outcome)
    assert column is not None
    outcome_term: BucketTerm | Indicator
    if isinstance(column, BooleanColumn):
        outcome_term = Indicator(outcome, True)
    else:
        assert isinstance(column, IntegerColumn | NumberColumn)
        outcome_term = place(column)
    return gradient_shape(terms, outcome_term, None, made, model=model)


def regression_question(
    query: dict[str, Any], privacy: dict[str, Any], **mechanism: Any
) -> Question:
    body: dict[str, Any] = {"dataset": "people", "query": query, "privacy": privacy}
    if mechanism:
        body["mechanism"] = {"kind": "noisy_gradient_descent", **mechanism}
    return Question.model_validate(body)


def release_of(
    made: Card, privacy: dict[str, Any], query: dict[str, Any] = LOGISTIC, **mechanism: Any
) -> GradientRelease:
    release = make_plan(regression_question(query, privacy, **mechanism), made).release
    assert isinstance(release, GradientRelease)
    return release


def recorded(made: Card, request: Records, rows: list[Row]) -> Matrix:
    """Integers of the rows that count."""
    lines = []
    for row in rows:
        if not holds(request.where, row) or any(row[c.column] is None for c in request.columns):
            continue
        line = []
        for source in request.columns:
            value = row[source.column]
            if isinstance(source, CentredBucket):
                line.append((in_steps(made, source.column, value) - source.low) // source.grain)
                line[-1] -= source.centre
            else:
                column = made.column(source.column)
                values: tuple[Any, ...] = (False, True)
                if isinstance(column, CategoryColumn):
                    values = column.values
                line.append(values.index(value))
        lines.append(line)
    return np.array(lines, dtype=np.int64).reshape(len(lines), len(request.columns))
