"""Input of a gradient descent for a regression: bounded terms, and coefficients in original
units.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from app.data.card import Card
from app.errors import Invalid
from app.planning.cells import cells_to_charge
from app.queries.shapes.learning import LearningShape
from tests.queries.cards import card, question
from tests.queries.reference import Row
from tests.queries.regression.regressions import COLUMNS, LOGISTIC, recorded, regression_shape

ROWS: list[Row] = [
    {"x": x, "z": z, "group": group, "kept": kept, "yes": yes}
    for x, z, group, kept, yes in product(
        (0, 1, 3), (-0.5, 0.1, 2.0), ("a", "b", "c"), (False, True), (False, True)
    )
]


def terms_of(shape: LearningShape, made: Card, rows: list[Row]) -> np.ndarray:
    matrix = recorded(made, shape.records, rows)
    terms: list[Any] = []
    for term in shape.inputs:
        if term.column is None:
            terms.append(np.ones(len(matrix)))
        elif term.code is not None:
            terms.append((matrix[:, term.column] == term.code) * 1.0)
        else:
            terms.append(matrix[:, term.column] * term.slope + term.shift)
    return np.column_stack(terms)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", [("x",), ("z", "group"), ("x", "z", "group", "kept")])
def test_terms_are_between_minus_one_and_one_and_no_row_exceeds_the_norm_bound(
    intercept: bool, features: tuple[str, ...]
) -> None:
    made = card(COLUMNS)
    shape = regression_shape(made, features, "yes", intercept=intercept)
    terms = terms_of(shape, made, ROWS)
    assert np.all(np.abs(terms) <= 1.0)
    longest = float(np.max(np.linalg.norm(terms, axis=1)))
    assert longest <= shape.norm_max * (1 + 1e-12)
    assert longest > 0.99 * shape.norm_max
    assert shape.norm_max == math.sqrt(len(features) + intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("model", ["logistic", "squares"])
def test_coefficients_in_original_units_predict_the_same_as_the_terms(
    intercept: bool, model: str
) -> None:
    made = card(COLUMNS)
    features, outcome = ("x", "z", "group"), "yes"
    if model == "squares":
        features, outcome = ("x", "group", "kept"), "z"
    shape = regression_shape(made, features, outcome, model=model, intercept=intercept)  # type: ignore[arg-type]
    weights = np.array([(-1) ** i * (0.2 + i / 3) for i in range(len(shape.inputs))])
    scaled = terms_of(shape, made, ROWS) @ weights
    predicted = shape.outcome.middle + shape.outcome.unit * scaled
    own = dict(zip((t.label for t in shape.inputs), shape.in_own_units(weights), strict=True))
    for row, expected in zip(ROWS, predicted, strict=True):
        prediction = own.get("(intercept)", 0.0)
        for name in features:
            if name == "group":
                prediction += own.get(f"group={row['group']}", 0.0)
            else:
                prediction += own[name] * float(row[name])
        # A number is known up to its bucket on a grid of up to 2^16.
        assert prediction == pytest.approx(expected, abs=1e-4)


def test_bounds_so_close_that_all_values_share_a_bucket_break_nothing() -> None:
    columns = [{"name": "x", "type": "number", "low": 1.0, "high": 1.0 + 1e-15}, COLUMNS[4]]
    for intercept in (True, False):
        made = card(columns)
        shape = regression_shape(made, ("x",), "yes", intercept=intercept)
        terms = terms_of(shape, made, [{"x": 1.0, "yes": True}])
        assert np.all(np.abs(terms) <= 1.0)
        assert all(map(math.isfinite, shape.in_own_units(np.ones(len(shape.inputs)))))


@pytest.mark.parametrize(
    ("neighbours", "rows_max", "moves"),
    [
        ("add_remove", None, 1),
        ("add_remove", 4, 4),
        ("replace_one", None, 2),
        ("replace_one", 4, 8),
    ],
)
def test_a_person_moves_at_most_the_stated_number_of_gradients(
    neighbours: str, rows_max: int | None, moves: int
) -> None:
    made = card(COLUMNS, neighbours=neighbours, rows_max=rows_max)
    assert regression_shape(made, ("x",), "yes").moves == moves


def test_a_column_with_several_terms_is_read_once() -> None:
    shape = regression_shape(card(COLUMNS), ("group", "x"), "yes")
    assert [each.column for each in shape.records.columns] == ["group", "x", "yes"]
    assert [term.label for term in shape.inputs] == ["(intercept)", "group=b", "group=c", "x"]


def test_a_filter_on_cells_is_charged_to_those_cells() -> None:
    celled = Card.model_validate(card(COLUMNS).model_dump() | {"cells": {"column": "group"}})
    where = {"column": "group", "op": "==", "value": "b"}

    def cells(query: dict[str, Any]) -> tuple[int, ...] | None:
        return cells_to_charge(question(query).query.shape(celled).tally, celled).cells

    alone = LOGISTIC | {"features": ["x"]}
    assert cells(alone) is None
    assert cells(alone | {"where": where}) == (1,)
    # Rows without a group do not count if the group is a feature.
    assert cells(LOGISTIC) == (0, 1, 2)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an outcome that is not boolean": ({"outcome": "x"}, "/query/outcome"),
    "an undeclared outcome": ({"outcome": "absent"}, "/query/outcome"),
    "an undeclared feature": ({"features": ["x", "absent"]}, "/query/features/1"),
    "a feature twice": ({"features": ["x", "x"]}, "/query/features"),
    "the outcome among the features": ({"features": ["x", "yes"]}, "/query/features/1"),
    "a filter of an undeclared column": (
        {"where": {"column": "absent", "op": "==", "value": 1}},
        "/query/where/column",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_regression_names_its_field(wrong: str) -> None:
    changes, pointer = WRONG[wrong]
    with pytest.raises(Invalid) as refused:
        question(LOGISTIC | changes).query.shape(card(COLUMNS))
    assert [field.pointer for field in refused.value.fields] == [pointer]
