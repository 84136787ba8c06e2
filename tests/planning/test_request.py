"""Questions are read strictly: one meaning, or a refusal."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from app.accounting.units import PICO, cost_units
from app.api.queries import parse_question
from app.planning.request import Question
from tests.queries.cards import question

GOOD: dict[str, Any] = {
    "dataset": "people",
    "query": {"kind": "count"},
    "privacy": {"epsilon": "0.1"},
}


def test_omitted_fields_have_their_defaults() -> None:
    asked = Question.model_validate(GOOD)
    assert asked.mechanism is None
    assert (asked.confidence, asked.fresh) == (0.95, False)
    assert asked.privacy.epsilon == Decimal("0.1")


WRONG: dict[str, dict[str, Any]] = {
    "no dataset": {"dataset": None},
    "an empty name": {"dataset": ""},
    "a long name": {"dataset": "x" * 201},
    "a name that is a number": {"dataset": 5},
    "no kind": {"query": {}},
    "an unknown kind": {"query": {"kind": "midpoint"}},
    "a kind in another case": {"query": {"kind": "COUNT"}},
    "a query that is text": {"query": "SELECT 1"},
    "a count of a column": {"query": {"kind": "count", "column": "age"}},
    "a sum of nothing": {"query": {"kind": "sum"}},
    "a mean of a number": {"query": {"kind": "mean", "column": 5}},
    "a histogram with groups": {"query": {"kind": "histogram", "column": "a", "group_by": []}},
    "no epsilon": {"privacy": {}},
    "an epsilon of zero": {"privacy": {"epsilon": 0}},
    "an epsilon below zero": {"privacy": {"epsilon": -1}},
    "an epsilon that is true": {"privacy": {"epsilon": True}},
    "an epsilon that is NaN": {"privacy": {"epsilon": float("nan")}},
    "an epsilon that is infinite": {"privacy": {"epsilon": float("inf")}},
    "an epsilon too small to charge": {"privacy": {"epsilon": "1e-13"}},
    "an epsilon too large to charge": {"privacy": {"epsilon": "1e7"}},
    "a delta": {"privacy": {"epsilon": 1, "delta": 0}},
    "an unknown mechanism": {"mechanism": {"kind": "magic"}},
    "a mechanism that is text": {"mechanism": "laplace"},
    "a mechanism with a scale": {"mechanism": {"kind": "laplace", "scale": 0}},
    "a confidence of 0": {"confidence": 0.0},
    "a confidence of 1": {"confidence": 1.0},
    "a confidence that is text": {"confidence": "0.95"},
    "a confidence that is NaN": {"confidence": float("nan")},
    "a fresh that is a number": {"fresh": 1},
    "an unknown field": {"seed": 5},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_question_is_refused_that_has(what: str) -> None:
    with pytest.raises(ValidationError):
        Question.model_validate({**GOOD, **WRONG[what]})


def test_a_question_cannot_be_changed() -> None:
    asked = question({"kind": "count"})
    with pytest.raises(ValidationError):
        asked.fresh = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0.1", '"0.1000000000000000001"'),
        ('"0.1"', '"0.10000000000000000000000000000000000001"'),
        ("1.0", "1.000000000001"),
    ],
)
def test_questions_that_cost_differently_are_different_bodies(one: str, other: str) -> None:
    """Otherwise they would share a plan and a request key, and one of them would get a wrong
    price.
    """

    def parsed(epsilon: str) -> tuple[str, str, int]:
        raw = f'{{"dataset":"d","query":{{"kind":"count"}},"privacy":{{"epsilon":{epsilon}}}}}'
        body = parse_question("a_1", raw.encode())
        asked = body.value.privacy.epsilon
        assert asked is not None
        return body.text, body.hash, cost_units(asked, PICO)

    first, second = parsed(one), parsed(other)
    assert first[2] == second[2] - 1
    assert first[0] != second[0]
    assert first[1] != second[1]


@pytest.mark.parametrize(
    ("more", "confidence"),
    [({}, 0.99), ({"confidence": 0.9}, 0.9)],
)
def test_a_question_with_a_half_width_is_answered_at_its_confidence(
    more: dict[str, Any], confidence: float
) -> None:
    sent = {
        "dataset": "d",
        "query": {"kind": "count"},
        "privacy": {"half_width": 5, "confidence": 0.99},
        **more,
    }
    assert Question.model_validate(sent).confidence == confidence
