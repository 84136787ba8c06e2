"""Estimates for an assumed number of rows, against the mechanism's own noise.

Each test draws 2,000 answers with a fixed seed. The share of errors beyond the estimate may exceed
0.1 by chance; with a new seed a test fails with probability below 1e-6 (Hoeffding, 0.06 above).
"""

import math
from typing import Any

import numpy as np
import pytest

from app.data.card import Card
from app.mechanisms.release import Release
from app.planning.error_in_words import shown_error
from app.planning.plan import make_plan
from app.planning.request import Question

Json = dict[str, Any]
RUNS = 2_000
MARGIN = math.sqrt(math.log(1e6) / (2 * RUNS))
CARD = Card.model_validate(
    {
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": [
            {"name": "x", "type": "integer", "low": 0, "high": 100},
            {"name": "y", "type": "integer", "low": 2, "high": 8},
            {"name": "member", "type": "boolean"},
        ],
    }
)
MEMBER: Json = {"column": "member", "op": "==", "value": True}
MEAN: Json = {"kind": "mean", "column": "x"}
VARIANCE: Json = {"kind": "variance", "column": "x"}
SHARE: Json = {"kind": "ratio", "numerator": {"where": MEMBER}}
QUOTIENT: Json = {"kind": "ratio", "numerator": {"column": "x"}, "denominator": {"column": "y"}}
RECIPROCAL: Json = {"kind": "reciprocal"}
PURE: Json = {"epsilon": "0.5"}
RHO: Json = {"rho": "0.1"}


class Seeded:
    """Noise of the same laws as the mechanisms', from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)  # noqa: TID251 - seeded on purpose

    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        rate = -math.expm1(-1.0 / scale)
        up, down = (self._random.geometric(rate, size) for _ in range(2))
        return [int(z) for z in up - down]

    def discrete_gaussian(self, scale: float, size: int) -> list[int]:
        return [round(z) for z in self._random.normal(0.0, scale, size)]

    def below(self, bound: int) -> int:
        return int(self._random.integers(bound))

    def words(self, size: int) -> list[int]:
        raise NotImplementedError


def exact_tally(query: Json, rows: int, at: float) -> tuple[tuple[tuple[int, ...], ...], float]:
    """The tally of rows whose values are all at one point between the bounds, and the figure."""
    x = round(100 * at)
    match query["kind"]:
        case "mean":
            return ((x * rows,), (rows,)), x
        case "variance":
            t = x - 50
            return ((t * rows,), (t * t * rows,), (rows,)), 0.0
        case "reciprocal":
            return ((rows,),), 1 / rows
    if query is SHARE:
        met = round(rows * at)
        return ((met,), (rows - met,)), met / rows
    y = 2 if at > 0.5 else 5
    return ((x * rows,), (y * rows,)), x / y


def errors(
    query: Json, privacy: Json, rows: int, at: float
) -> tuple[Release, Question, list[float]]:
    question = Question.model_validate(
        {"dataset": "d", "query": query, "privacy": privacy, "confidence": 0.9}
    )
    release = make_plan(question, CARD).release
    exact, figure = exact_tally(query, rows, at)
    noise = Seeded(rows)
    sizes = []
    for _ in range(RUNS):
        answer = release.answer(exact, noise, query=question.query, card=CARD, confidence=0.9)
        sizes.append(abs(answer["value"] - figure))
    return release, question, sizes


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, RHO], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [5, 60, 2_000])
@pytest.mark.parametrize("at", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("query", [MEAN, VARIANCE, SHARE, QUOTIENT, RECIPROCAL])
def test_errors_stay_within_the_estimate(query: Json, at: float, rows: int, privacy: Json) -> None:
    release, question, sizes = errors(query, privacy, rows, at)
    error = shown_error(release, question, rows)
    assert error["promise"] is False
    assert f"Estimate for {rows:,} rows" in error["text"]
    beyond = sum(size > error["half_width"] * (1 + 1e-9) for size in sizes) / RUNS
    assert beyond <= 0.1 + MARGIN


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, RHO], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("query", "at", "least"),
    [(MEAN, 1.0, 0.55), (SHARE, 0.5, 0.5), (QUOTIENT, 1.0, 0.4), (RECIPROCAL, 0.5, 0.8)],
)
def test_an_estimate_is_not_far_too_wide(
    query: Json, at: float, least: float, privacy: Json
) -> None:
    """At the bounds figures are clamped, so half of the errors there are 0."""
    release, question, sizes = errors(query, privacy, 2_000, at)
    ninety = float(np.quantile(sizes, 0.9))
    assert ninety >= least * shown_error(release, question, 2_000)["half_width"]


@pytest.mark.parametrize("query", [MEAN, VARIANCE, SHARE, QUOTIENT, RECIPROCAL])
def test_without_a_guess_nothing_is_said_and_the_text_says_what_to_do(query: Json) -> None:
    question = Question.model_validate({"dataset": "d", "query": query, "privacy": PURE})
    release = make_plan(question, CARD).release
    error = shown_error(release, question)
    assert (error["half_width"], error["promise"]) == (None, False)
    assert 'assume: {"rows": n}' in error["text"]
    wide, near = (shown_error(release, question, rows)["half_width"] for rows in (100, 10_000))
    assert wide > 50 * near > 0


def test_aggregates_have_an_estimate_for_each_part() -> None:
    of = [{"kind": "count"}, MEAN, VARIANCE]
    query = {"kind": "aggregates", "of": of, "group_by": ["member"]}
    question = Question.model_validate({"dataset": "d", "query": query, "privacy": PURE})
    error = shown_error(make_plan(question, CARD).release, question, 500)
    assert error["half_width"] is None
    assert [part["promise"] for part in error["parts"]] == [True, False, False]
    assert all(part["half_width"] > 0 for part in error["parts"])
    assert "500 rows in each group" in error["parts"][1]["text"]
