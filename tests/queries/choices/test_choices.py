"""Choices: scores compared with a slow reference, and candidates."""

import datetime
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.errors import Invalid
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries import QUERIES
from app.queries.candidates import CANDIDATES_MAX
from tests.queries.cards import card, choice_shape, question
from tests.queries.reference import Row, tallied

CARD = card()
DAYS = [datetime.date(1950, 1, 1), datetime.date(1980, 2, 29), datetime.date(2010, 12, 31)]
rows = st.lists(
    st.fixed_dictionaries(
        {
            "age": st.none() | st.integers(0, 100),
            "income": st.none() | st.sampled_from([-10.5, 0.0, 0.1, 7.0, 99.9, 1000.25]),
            "city": st.none() | st.sampled_from(["Bern", "Chur", "Zürich"]),
            "member": st.none() | st.booleans(),
            "born": st.none() | st.sampled_from(DAYS),
        }
    ),
    max_size=30,
)


def scored(query: dict[str, Any], table: list[Row], rank: int = 0) -> dict[Any, int]:
    shape = choice_shape(query, CARD)
    scores = shape.scores(tallied(CARD, shape.tally, table), rank)
    return dict(zip(shape.outcomes, scores, strict=True))


CANDIDATES: dict[str, Any] = {
    "age": [0, 3, 4, 50, 99, 100],
    "income": [-10.5, -1, 0, 0.1, 7, 99.9, 1000.25],
    "born": ["1950-01-01", "1950-01-02", "1980-02-29", "2010-12-31"],
}


@given(rows, st.sampled_from(["age", "income", "born"]), st.sampled_from(["0.5", "0.1", "0.75"]))
def test_a_quantile_is_scored_by_its_rank_distance(table: list[Row], column: str, q: str) -> None:
    query = {"kind": "quantile", "column": column, "q": q, "candidates": CANDIDATES[column]}
    share = Fraction(q)
    values = [row[column] for row in table if row[column] is not None]
    for candidate, score in scored(query, table).items():
        below = sum(value < candidate for value in values)
        at_most = sum(value <= candidate for value in values)
        wanted = share * len(values)
        distance = max(Fraction(0), below - wanted, wanted - at_most)
        assert Fraction(-score, share.denominator) == distance


@given(
    rows,
    st.sampled_from(["age", "income", "born"]),
    st.sampled_from(["0.5", "0.1", "0.75"]),
    st.booleans(),
)
def test_an_interval_is_scored_by_the_ranks_of_its_values(
    table: list[Row], column: str, q: str, inner: bool
) -> None:
    edges = CANDIDATES[column][1:-1] if inner else CANDIDATES[column]
    query = {"kind": "quantile", "column": column, "q": q, "candidates": {"edges": edges}}
    shape = choice_shape(query, CARD)
    scores = shape.scores(tallied(CARD, shape.tally, table), 0)
    values = [row[column] for row in table if row[column] is not None]
    typed = [datetime.date.fromisoformat(e) if column == "born" else e for e in edges]
    target_rank = Fraction(q) * len(values)
    assert list(shape.outcomes) == [{"from": low, "to": high} for low, high in pairwise(edges)]
    for index, score in enumerate(scores):
        low, high = typed[index], typed[index + 1]
        below = sum(value < low for value in values)
        inside = sum(
            low <= value < high or (index == len(scores) - 1 and value == high) for value in values
        )
        distance = max(Fraction(0), below - target_rank, target_rank - below - inside)
        assert Fraction(-score, Fraction(q).denominator) == distance


@given(rows, st.integers(1, 12))
def test_an_extreme_is_scored_by_its_distance_to_the_rank(table: list[Row], rank: int) -> None:
    values = sorted(row["age"] for row in table if row["age"] is not None)
    for kind, ordered in (("min", values), ("max", [-value for value in reversed(values)])):
        query = {"kind": kind, "column": "age", "candidates": CANDIDATES["age"]}
        for candidate, score in scored(query, table, rank).items():
            own = candidate if kind == "min" else -candidate
            below = sum(value < own for value in ordered)
            at_most = sum(value <= own for value in ordered)
            assert -score == max(0, below + 1 - rank, rank - at_most)
            if len(ordered) >= rank and own == ordered[rank - 1]:
                assert score == 0


@given(rows)
def test_a_price_is_scored_by_its_revenue(table: list[Row]) -> None:
    values = [row["age"] for row in table if row["age"] is not None]
    query = {"kind": "price", "column": "age", "candidates": CANDIDATES["age"]}
    for price, score in scored(query, table).items():
        assert score == price * sum(value >= price for value in values)
    amounts = [row["income"] for row in table if row["income"] is not None]
    query = {"kind": "price", "column": "income", "candidates": CANDIDATES["income"][2:]}
    shape = choice_shape(query, CARD)
    for price, score in scored(query, table).items():
        buyers = sum(value >= price for value in amounts)
        earned = buyers * Fraction(price)
        step = buyers / shape.steps
        assert earned - step < Fraction(score) / shape.steps <= earned or score == earned == 0


@given(rows)
def test_a_mode_is_scored_by_its_frequency(table: list[Row]) -> None:
    kept = {"column": "age", "op": ">=", "value": 50}
    for query, column in (
        ({"kind": "mode", "column": "city"}, "city"),
        ({"kind": "mode", "column": "member"}, "member"),
        ({"kind": "top_k", "column": "city", "k": 2}, "city"),
    ):
        for outcome, score in scored({**query, "where": kept}, table).items():
            assert score == sum(
                row[column] == outcome and row["age"] is not None and row["age"] >= 50
                for row in table
                if row[column] is not None
            )


# Outcomes

KINDS: dict[str, dict[str, Any]] = {
    "mode": {"kind": "mode", "column": "city"},
    "mode of a boolean": {"kind": "mode", "column": "member"},
    "top_k": {"kind": "top_k", "column": "city", "k": 2},
    "quantile": {"kind": "quantile", "column": "income", "q": 0.9},
    "quantile of days": {"kind": "quantile", "column": "born", "q": "0.25"},
    "median": {"kind": "median", "column": "age"},
    "min": {"kind": "min", "column": "age"},
    "max": {"kind": "max", "column": "born"},
    "price": {"kind": "price", "column": "income"},
}


def test_every_kind_of_choice_is_tested() -> None:
    measured = {
        "count",
        "count_distinct",
        "sum",
        "mean",
        "variance",
        "ratio",
        "reciprocal",
        "histogram",
    }
    measured |= {"aggregates", "workload", "cdf", "randomized_column", "keys"}
    measured |= {"linear_regression", "logistic_regression", "iqr", "trimmed_mean"}
    measured |= {"triangles", "sample_aggregate", "prediction_variance"}
    assert {query["kind"] for query in KINDS.values()} == set(QUERIES) - measured


def row(**values: Any) -> Row:
    return {**dict.fromkeys(["age", "income", "city", "member", "born"]), **values}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "table",
    [[], [row()] * 5, [row(age=3, income=7.0, city="Chur", member=True, born=DAYS[1])]],
    ids=["an empty selection", "all missing", "one row"],
)
def test_every_table_gets_one_of_the_outcomes(name: str, neighbours: str, table: list[Row]) -> None:
    made = card(neighbours=neighbours)
    plan = make_plan(question(KINDS[name]), made)
    shape = choice_shape(KINDS[name], made)
    exact = tallied(made, plan.release.tally, table)
    answer = plan.answer(exact, SystemRandom())
    assert answer["interval"] is None
    shown = [o.isoformat() if isinstance(o, datetime.date) else o for o in shape.outcomes]
    value = answer["value"]
    values = value if isinstance(value, list) else [value]
    assert all(each in shown for each in values)
    assert len(values) == (2 if name == "top_k" else 1)
    assert plan.loss.epsilon == 10**12
    if not any(each["city"] for each in table):
        scores = shape.scores(exact, 3)
        assert len(set(scores)) == 1  # nothing counts, so every outcome is equally good


def test_default_candidates_follow_the_bounds() -> None:
    def outcomes(column: dict[str, Any], kind: str = "median") -> Any:
        made = card([{"name": "x", **column}])
        return choice_shape({"kind": kind, "column": "x"}, made).outcomes

    assert outcomes({"type": "integer", "low": -2, "high": 3}) == [-2, -1, 0, 1, 2, 3]
    wide = outcomes({"type": "integer", "low": -(2**53), "high": 2**53})
    assert (len(wide), wide[0], wide[500], wide[-1]) == (1001, -(2**53), 0, 2**53)
    assert len(outcomes({"type": "integer", "low": 0, "high": 10_000})) == 10_001
    assert len(outcomes({"type": "integer", "low": 0, "high": 10_001})) == 1001
    numbers = outcomes({"type": "number", "low": -1, "high": 1})
    assert (len(numbers), numbers[0], numbers[500], numbers[-1]) == (1001, -1.0, 0.0, 1.0)
    days = outcomes({"type": "date", "low": "2024-02-28", "high": "2024-03-01"})
    assert [day.day for day in days] == [28, 29, 1]
    assert outcomes({"type": "integer", "low": -5, "high": 2}, "price") == [0, 1, 2]
    assert outcomes({"type": "integer", "low": -5, "high": 0}, "price") == [0]
    assert outcomes({"type": "number", "low": -5, "high": 100}, "price")[0] == 0.0


@given(st.integers(2, 3000), st.sampled_from(["age", "income", "born"]))
def test_a_grid_goes_from_low_to_high_in_even_steps(count: int, column: str) -> None:
    low, high = {"age": (0, 100), "income": (0, 99.5), "born": ("1950-01-01", "1999-12-31")}[column]
    grid = {"low": low, "high": high, "count": count}
    query = {"kind": "median", "column": column, "candidates": grid}
    if column == "age" and count > 101:
        with pytest.raises(Invalid, match="/query/candidates/count"):
            choice_shape(query, CARD)
        return
    values: Any = choice_shape(query, CARD).outcomes
    assert len(values) == count
    shown = [v.isoformat() if isinstance(v, datetime.date) else v for v in (values[0], values[-1])]
    assert shown == [low, high]
    gaps = [b - a for a, b in pairwise(values)]
    gaps = [gap.days if isinstance(gap, datetime.timedelta) else gap for gap in gaps]
    assert min(gaps) > 0
    assert max(gaps) - min(gaps) <= (1e-9 if column == "income" else 1)


def test_100_000_candidates_are_allowed_and_no_more() -> None:
    grid = {"low": 0, "high": 1000, "count": CANDIDATES_MAX}
    query = {"kind": "median", "column": "income", "candidates": grid}
    shape = choice_shape(query, CARD)
    assert len(shape.outcomes) == CANDIDATES_MAX
    with pytest.raises(ValidationError):
        question({**query, "candidates": {**grid, "count": CANDIDATES_MAX + 1}})


def test_edges_separate_neighbouring_values_of_a_candidate() -> None:
    near = [-10.5, 0.0, 0.5]
    query = {"kind": "median", "column": "income", "candidates": near}
    shape = choice_shape(query, CARD)
    for candidate in near:
        for value in (
            math.nextafter(candidate, -math.inf),
            candidate,
            math.nextafter(candidate, 9),
        ):
            if value < -10.5:
                continue
            exact = tallied(CARD, shape.tally, [row(income=value)])
            scores = dict(zip(shape.outcomes, shape.scores(exact, 0), strict=True))
            assert (scores[candidate] == 0) == (value == candidate)
