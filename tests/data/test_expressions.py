"""Derived columns: allowed expressions, their meaning, and equal results in every engine."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from app.data.card import Card
from app.data.expressions import evaluate, parse_expression, written_expression
from tests.engines.remote.tables import card_of

BASE: list[dict[str, Any]] = [
    {"name": "weight", "type": "number", "low": 0, "high": 300},
    {"name": "height", "type": "number", "low": 0, "high": 2.5},
    {"name": "age", "type": "integer", "low": 0, "high": 120},
    {"name": "region", "type": "category", "values": ["north", "south", "west"]},
    {"name": "smoker", "type": "boolean"},
    {"name": "born", "type": "date", "low": "1900-01-01", "high": "2020-01-01"},
]
SQUARED = {"multiply": [{"column": "height"}, {"column": "height"}]}
BMI = {"divide": [{"column": "weight"}, SQUARED]}


def derived(expression: Any, **declared: Any) -> Card:
    column = {"name": "made", "type": "number", "low": 0, "high": 100} | declared
    if column["type"] in ("boolean", "category"):
        del column["low"], column["high"]
    return card_of(*BASE, column | {"derived": expression})


@pytest.mark.parametrize(
    ("expression", "row", "value"),
    [
        (BMI, {"weight": 80.0, "height": 2.0}, 20.0),
        (BMI, {"weight": 80.0, "height": 0.0}, None),
        (BMI, {"weight": None, "height": 2.0}, None),
        ({"add": [{"value": 1}, {"value": 2}, {"column": "age"}]}, {"age": 4}, 7.0),
        ({"subtract": [{"value": 1}, {"column": "age"}]}, {"age": 4}, -3.0),
        (
            {
                "case": [
                    {
                        "when": {"column": "age", "op": "<", "value": 18},
                        "then": {"value": "young"},
                    },
                    {
                        "when": [
                            {"column": "age", "op": "<", "value": 65},
                            {"column": "smoker", "op": "==", "value": True},
                        ],
                        "then": {"value": "smoking"},
                    },
                ],
                "else": {"value": "other"},
            },
            {"age": 30, "smoker": True},
            "smoking",
        ),
        ({"lookup": {"column": "region", "map": {"north": 1.5}}}, {"region": "north"}, 1.5),
        ({"lookup": {"column": "region", "map": {"north": 1.5}}}, {"region": "west"}, None),
        ({"lookup": {"column": "smoker", "map": {"true": 2}}}, {"smoker": True}, 2.0),
    ],
)
def test_an_expression_has_its_documented_value_for_each_row(
    expression: Any, row: dict[str, Any], value: Any
) -> None:
    parsed = parse_expression(expression)
    assert evaluate(parsed, row) == value
    assert parse_expression(written_expression(parsed)) == parsed


@pytest.mark.parametrize(
    ("expression", "declared"),
    [
        (BMI, {}),
        (BMI, {"type": "integer"}),
        (
            {"lookup": {"column": "region", "map": {"north": "a", "south": "b"}}},
            {"type": "category", "values": ["a", "b"]},
        ),
        (
            {
                "case": [
                    {"when": {"column": "age", "op": ">", "value": 7}, "then": {"value": True}}
                ],
                "else": {"value": False},
            },
            {"type": "boolean"},
        ),
    ],
)
def test_a_card_with_a_derived_column_is_stored_and_read_back(
    expression: Any, declared: dict[str, Any]
) -> None:
    card = derived(expression, **declared)
    assert Card.model_validate_json(card.model_dump_json()) == card


DEEP: Any = {"column": "age"}
for _ in range(9):
    DEEP = {"add": [DEEP, {"value": 1}]}
LARGE: Any = {"multiply": [{"value": 1e15}] * 7}
SMALL: Any = {"multiply": [{"value": 1e-15}] * 7}


@pytest.mark.parametrize(
    ("expression", "declared", "said"),
    [
        (7, {}, "an expression must be an object"),
        ({"power": [BMI, BMI]}, {}, "an expression must be one of"),
        ({"column": "income"}, {}, "declared integer and number columns"),
        ({"column": "region"}, {}, "declared integer and number columns"),
        ({"column": "made"}, {}, "declared integer and number columns"),
        ({"divide": [BMI]}, {}, "divide takes a list of two"),
        ({"add": [{"value": 1}]}, {}, "add takes a list of two expressions or more"),
        ({"value": math.inf}, {}, "a value must be a number up to 1e15"),
        ({"value": 1e-300}, {}, "zero or at least 1e-15"),
        ({"value": "a"}, {}, "a derived number may use only numbers"),
        (DEEP, {}, "at most 8 levels deep"),
        (
            {
                "case": [
                    {"when": {"column": "age", "op": [], "value": 7}, "then": {"value": 1}},
                ]
            },
            {},
            "a comparison's op must be one of",
        ),
        (LARGE, {}, "too large, or too near to zero"),
        (SMALL, {}, "too large, or too near to zero"),
        ({"lookup": {"column": "region", "map": {"east": 1}}}, {}, "its keys must be among them"),
        ({"lookup": {"column": "weight", "map": {"1": 1}}}, {}, "its keys must be among them"),
        ({"lookup": {"column": "region", "map": {}}}, {}, "a lookup must have 1 to"),
        (BMI, {"type": "boolean"}, "may use only case, lookup and value"),
        (
            {"value": "c"},
            {"type": "category", "values": ["a", "b"]},
            "may use only its declared values",
        ),
        (
            {"case": [{"when": {"column": "born", "op": "<", "value": 3}, "then": BMI}]},
            {},
            "a comparison needs a declared number",
        ),
        (
            {"case": [{"when": {"column": "region", "op": "<", "value": "a"}, "then": BMI}]},
            {},
            "a comparison needs a declared number",
        ),
    ],
)
def test_an_unsupported_expression_is_refused_with_the_rule(
    expression: Any, declared: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        derived(expression, **declared)
