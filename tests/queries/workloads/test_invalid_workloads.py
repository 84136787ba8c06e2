"""Workloads that are refused by their field, and those at the edge of it."""

import math

import pytest

from app.errors import Invalid
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from tests.queries.cards import card, question
from tests.queries.reference import Row, tallied
from tests.queries.workloads.weight_workloads import (
    BMI,
    COLUMNS,
    FEMALE,
    LIGHT,
    MALE,
    RANGES,
    ROWS,
    Json,
    linear_plan,
    workload,
)

WRONG: dict[str, tuple[Json, str]] = {
    "an undeclared column": (
        workload([MALE, {"column": "shoes", "op": "is_null"}]),
        "/query/predicates/1/where/column",
    ),
    "a part that is undeclared": (
        workload([{"all": [MALE, {"column": "shoes", "op": "is_null"}]}]),
        "/query/predicates/0/where/all/1/column",
    ),
    "an undeclared column in the filter": (
        workload([MALE], where={"column": "shoes", "op": "is_null"}),
        "/query/where/column",
    ),
    "a category that is not on the card": (
        workload([{"column": "sex", "op": "==", "value": "X"}]),
        "/query/predicates/0/where/value",
    ),
    "the same name twice": (
        {
            "kind": "workload",
            "predicates": [
                {"name": "a", "where": MALE},
                {"name": "b", "where": MALE},
                {"name": "a", "where": FEMALE},
            ],
        },
        "/query/predicates/2/name",
    ),
    "a hierarchy of categories": (workload(BMI, strategy="hierarchical"), "/query/strategy"),
    "a hierarchy with missing values": (
        workload([{"not": LIGHT}, *RANGES], strategy="hierarchical"),
        "/query/strategy",
    ),
    "a hierarchy of nothing": (workload([LIGHT], strategy="hierarchical"), "/query/strategy"),
    "cells of nothing": (workload([{"any": []}], strategy="cells"), "/query/strategy"),
    "too many values": (
        workload([{"column": "bmi", "op": "in", "value": list(range(9999))}] * 3),
        "/query/predicates",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_workload_is_refused_by_its_field(wrong: str) -> None:
    query, pointer = WRONG[wrong]
    with pytest.raises(Invalid) as caught:
        make_plan(question(query), card(COLUMNS))
    assert [field.pointer for field in caught.value.fields] == [pointer]


def test_a_workload_has_one_to_a_thousand_predicates() -> None:
    with pytest.raises(ValueError, match="predicates"):
        question(workload([MALE] * 1001))
    with pytest.raises(Invalid, match="/query/predicates"):
        make_plan(question(workload([])), card(COLUMNS))


def test_true_and_one_are_different_questions() -> None:
    made = card(COLUMNS)
    make_plan(question(workload([{"column": "kept", "op": "==", "value": True}])), made)
    with pytest.raises(Invalid, match="true or false"):
        make_plan(question(workload([{"column": "kept", "op": "==", "value": 1}])), made)


@pytest.mark.parametrize("rows", [[], ROWS[:1], [{"sex": None, "bmi": None, "kept": None}] * 5])
def test_empty_and_missing_data_get_an_ordinary_answer(rows: list[Row]) -> None:
    made = card(COLUMNS)
    for strategy in ("identity", "cells", "hierarchical"):
        plan, _ = linear_plan(workload(RANGES, strategy=strategy), made)
        answer = plan.answer(tallied(made, plan.release.tally, rows), SystemRandom())
        assert all(math.isfinite(item["value"]) for item in answer["value"])
