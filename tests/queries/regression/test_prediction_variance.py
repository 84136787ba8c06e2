"""The variance of a prediction: exact, with a bounded influence of one person, refused without a
ridge.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.post_processed import PostProcessedRelease
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries.estimates import NoisySteps
from app.queries.regression.prediction_variance import PredictionVariance, quadratic_form
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.shapes.sums import SumShape
from app.queries.tally import Tally
from tests.queries.cards import card, question
from tests.queries.reference import Row, tallied

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": 0, "high": 4},
    {"name": "member", "type": "boolean"},
    {"name": "city", "type": "category", "values": ["Bern", "Chur", "Zug"]},
]
ASKED: dict[str, Any] = {
    "kind": "prediction_variance",
    "features": ["x", "member"],
    "point": {"x": 4, "member": True},
    "ridge": 0.5,
}


def made(relation: str = "add_remove", rows_max: int | None = None) -> Card:
    return card(COLUMNS, neighbours=relation, rows_max=rows_max)


def shaped(declared: Card, **changes: Any) -> tuple[PredictionVariance, PostProcessedShape]:
    query = question({**ASKED, **changes}).query
    assert isinstance(query, PredictionVariance)
    return query, query.shape(declared)


def steps(shape: PostProcessedShape, declared: Card, rows: list[Row]) -> int:
    assert isinstance(shape.source, Tally)
    return shape.exact(tallied(declared, shape.source, rows))[0][0]


def vector(row: Row) -> list[float]:
    """Intercept, x from -1 to 1, member."""
    return [1.0, (row["x"] - 2) / 2, float(row["member"])]


def rows_there_are() -> list[Row]:
    return [
        {"x": x, "member": member, "city": "Bern"}
        for x, member in product((0, 1, 4), (False, True))
    ]


def tables(size: int) -> Iterator[list[Row]]:
    for count in range(size + 1):
        for chosen in combinations_with_replacement(rows_there_are(), count):
            yield list(chosen)


def test_the_variance_is_the_quadratic_form_of_the_inverse() -> None:
    declared = made()
    query, shape = shaped(declared)
    exponent = query.exponent(declared)
    for rows in tables(3):
        x = np.array([vector(row) for row in rows]).reshape(-1, 3)
        point = np.array([1.0, 1.0, 1.0])
        variance = point @ np.linalg.solve(x.T @ x + 0.5 * np.eye(3), point)
        logarithm = steps(shape, declared, rows)
        assert abs(logarithm + 0.5 - math.log(variance) * 2.0**exponent) <= 0.5001


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("ridge", [0.01, 0.5, 10.0])
def test_no_neighbour_moves_the_variance_by_more_than_its_sensitivity(
    relation: str, ridge: float
) -> None:
    """Checked for all tables of up to three rows; half of the sensitivity would be caught."""
    declared = made(relation)
    _, shape = shaped(declared, ridge=ridge)
    assert isinstance(shape.inner, SumShape)
    said = shape.inner.measures[0].sensitivity
    largest = 0
    for rows in tables(2):
        if relation == "add_remove":
            pairs = [(rows, [*rows, row]) for row in rows_there_are()]
        else:
            both = product(rows_there_are(), repeat=2)
            pairs = [([*rows, one], [*rows, other]) for one, other in both]
        for first, second in pairs:
            apart = steps(shape, declared, first) - steps(shape, declared, second)
            largest = max(largest, abs(apart))
    assert largest <= said
    assert largest >= (0.99 if relation == "add_remove" else 0.5) * said


def test_a_person_with_several_rows_moves_the_variance_by_all_of_them() -> None:
    declared = made(rows_max=3)
    _, shape = shaped(declared)
    assert isinstance(shape.inner, SumShape)
    said = shape.inner.measures[0].sensitivity
    same = {"x": 4, "member": True, "city": "Bern"}
    apart = steps(shape, declared, []) - steps(shape, declared, [same] * 3)
    assert 0.99 * said <= apart <= said


@pytest.mark.parametrize(("ridge", "moves"), [(1.0, 0.6931472), (0.1, 2.397895)])
def test_the_sensitivity_is_that_of_a_logarithm(ridge: float, moves: float) -> None:
    """ln(1 + B^2 / ridge) with B = 1: one feature, no intercept."""
    declared = made()
    changes = {"features": ["x"], "point": {"x": 4}, "intercept": False, "ridge": ridge}
    query, shape = shaped(declared, **changes)
    assert math.isclose(query.moves(declared), moves, abs_tol=1e-6)
    assert isinstance(shape.inner, SumShape)
    said = shape.inner.measures[0].sensitivity
    assert math.isclose(said * 2.0 ** -query.exponent(declared), moves, rel_tol=2e-4)


def test_the_elimination_is_exact() -> None:
    """Compared with fractions of a 2 by 2 inverse, and with numbers of many digits."""
    sums = [[3 * 10**12, 10**6 + 1], [10**6 + 1, 7 * 10**11]]
    ridge, point, reaches = Fraction(1, 3), (5, -7), (9, 11)
    a, b, d = (Fraction(sums[0][0]) + ridge * 81, Fraction(sums[0][1]), sums[1][1] + ridge * 121)
    whole = (d * 25 - 2 * b * 5 * -7 + a * 49) / (a * d - b * b)
    assert quadratic_form(sums, reaches, point, ridge) == whole


def test_categories_missing_values_and_filters_are_respected() -> None:
    declared = made()
    changes = {
        "features": ["city", "x"],
        "point": {"city": "Zug", "x": 0},
        "where": {"column": "member", "op": "==", "value": True},
    }
    query, shape = shaped(declared, **changes)
    empty = steps(shape, declared, [])
    most = math.log((1 + 1 + 1) / 0.5) * 2.0 ** query.exponent(declared)
    assert abs(empty + 0.5 - most) <= 0.5001
    ignored: list[Row] = [
        {"x": 0, "member": False, "city": "Zug"},
        {"x": None, "member": True, "city": "Zug"},
        {"x": 0, "member": True, "city": None},
    ]
    assert steps(shape, declared, ignored) == empty
    assert steps(shape, declared, [{"x": 0, "member": True, "city": "Zug"}]) < empty


def test_the_interval_is_a_factor_and_covers_the_truth() -> None:
    declared = made()
    made_plan = make_plan(question(ASKED), declared)
    assert isinstance(made_plan.release, PostProcessedRelease)
    shape = made_plan.release.shape
    assert isinstance(shape.source, Tally)
    rows = [{"x": x % 5, "member": x % 2 == 0, "city": "Bern"} for x in range(300)]
    exact = made_plan.release.shape.exact(tallied(declared, shape.source, rows))
    x = np.array([vector(row) for row in rows])
    truth = np.ones(3) @ np.linalg.solve(x.T @ x + 0.5 * np.eye(3), np.ones(3))
    answers = [made_plan.answer(exact, SystemRandom()) for _ in range(400)]
    held = sum(a["interval"]["low"] <= truth <= a["interval"]["high"] for a in answers)
    assert held >= 355  # at 95 %, fewer have a probability below 1e-5
    assert all(0 < answer["value"] <= 6 for answer in answers)
    query = made_plan.question.query
    assert isinstance(query, PredictionVariance)
    (figure,) = query.figures(((NoisySteps(10**9, 10**9 - 1, 10**9 + 1),),), declared)
    assert figure.value == 6.0  # at most that of an empty table


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_expected_error_is_the_factor_of_the_interval(kind: str) -> None:
    """It depends on no row, and the interval of an answer has exactly that factor."""
    declared = made()
    parsed = question(ASKED, privacy={"epsilon": "8", "delta": "1e-6"}, mechanism={"kind": kind})
    error = make_plan(parsed, declared).release.expected_error(0.95)
    assert (error.measured, error.promise) == ("factor", True)
    assert error.half_width is not None
    release = make_plan(parsed, declared).release
    # Far below the variance of an empty table, which no interval exceeds.
    answer = release.answer(
        ((-(10**6),),), SystemRandom(), query=parsed.query, card=declared, confidence=0.95
    )
    up = answer["interval"]["high"] / answer["value"]
    down = answer["value"] / answer["interval"]["low"]
    assert max(up, down) <= error.half_width <= 1.001 * min(up, down)


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"ridge": None}, "/query/ridge"),
        ({"ridge": 0}, "/query/ridge"),
        ({"ridge": -1}, "/query/ridge"),
        ({"ridge": 1e13}, "/query/ridge"),
        ({"point": {"x": 4}}, "/query/point"),
        ({"point": {"x": 4, "member": True, "city": "Zug"}}, "/query/point"),
        ({"point": {"x": 5, "member": True}}, "/query/point/x"),
        ({"point": {"x": 1.5, "member": True}}, "/query/point/x"),
        ({"point": {"x": "4", "member": True}}, "/query/point/x"),
        ({"point": {"x": 4, "member": 1}}, "/query/point/member"),
        ({"features": ["x", "city"], "point": {"x": 1, "city": "Rom"}}, "/query/point/city"),
        ({"features": ["x", "nobody"]}, "/query/features/1"),
        ({"features": ["x"], "point": {"x": 2}, "intercept": False}, "/query/point"),
    ],
)
def test_an_invalid_question_names_its_field(changes: dict[str, Any], at: str) -> None:
    with pytest.raises(Invalid) as refused:
        shaped(made(), **changes)
    assert refused.value.fields[0].pointer == at


def test_a_half_width_is_refused() -> None:
    with pytest.raises(Invalid) as refused:
        make_plan(question(ASKED, privacy={"half_width": 0.1}), made())
    assert refused.value.fields[0].pointer == "/privacy/half_width"
