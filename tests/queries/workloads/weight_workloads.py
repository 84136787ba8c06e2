"""Workloads about sex and weight, and their plans."""

from itertools import product
from typing import Any

from app.data.card import Card
from app.mechanisms.noise.workload_release import WorkloadRelease
from app.planning.plan import Plan, make_plan
from app.queries.shapes.sums import SumShape
from app.queries.shapes.workload import OverlappingCounts
from app.queries.workloads.workload import Workload
from tests.queries.cards import question
from tests.queries.reference import Row

Json = dict[str, Any]
COLUMNS: list[Json] = [
    {"name": "sex", "type": "category", "values": ["M", "F"]},
    {"name": "bmi", "type": "integer", "low": 10, "high": 40},
    {"name": "kept", "type": "boolean"},
]
MALE: Json = {"column": "sex", "op": "==", "value": "M"}
FEMALE: Json = {"column": "sex", "op": "==", "value": "F"}
LIGHT: Json = {"column": "bmi", "op": "<", "value": 25}
BMI: list[Json] = [{"all": [MALE, LIGHT]}, MALE, {"all": [FEMALE, LIGHT]}, FEMALE]
RANGES = [
    {"column": "bmi", "op": "between", "value": [low, high]}
    for low, high in ((10, 40), (10, 20), (15, 30), (21, 26), (27, 27), (26, 39))
]
ODD: list[Json] = [
    {"any": [{"column": "bmi", "op": ">", "value": 30}, {"column": "sex", "op": "is_null"}]},
    {"not": LIGHT},
    {"all": []},
    {"column": "bmi", "op": "in", "value": [20, 30]},
    {"any": []},
]


def workload(predicates: list[Json], **more: Any) -> Json:
    named = [{"name": str(i), "where": where} for i, where in enumerate(predicates)]
    return {"kind": "workload", "predicates": named, **more}


def shapes(query: Json, made: Card) -> list[SumShape]:
    asked = question(query).query
    assert isinstance(asked, Workload)
    shape = asked.shape(made)
    return [shape, *(each for each in shape.alternatives if isinstance(each, SumShape))]


def linear_of(shape: SumShape) -> OverlappingCounts:
    assert shape.linear is not None
    return shape.linear


def linear_plan(query: Json, made: Card, **more: Any) -> tuple[Plan, WorkloadRelease]:
    plan = make_plan(question(query, **more), made)
    assert isinstance(plan.release, WorkloadRelease)
    return plan, plan.release


ROWS: list[Row] = [
    {"sex": sex, "bmi": bmi, "kept": kept}
    for sex, bmi, kept in product(
        (None, "M", "F"), (None, 10, 15, 20, 21, 24, 25, 26, 27, 30, 31, 40), (None, True)
    )
]
