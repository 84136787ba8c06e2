"""Figures: released integers as an analyst reads them."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.columns import IntegerColumn, NumberColumn
from app.queries import QUERIES
from app.queries.estimates import NoisySteps, figure, number
from app.queries.sums.mean import Mean
from tests.queries.cards import card, question

steps = st.integers(-(2**80), 2**80)


@given(steps, st.integers(-20, 70))
def test_a_number_is_the_nearest_float_and_an_integer_on_an_integer_grid(
    count: int, exponent: int
) -> None:
    value = number(count, exponent)
    if exponent == 0:
        assert type(value) is int
        assert value == count
    else:
        assert value == float(Fraction(count) / Fraction(2) ** exponent)
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@given(steps, st.integers(0, 2**60), st.integers(-10, 60))
def test_an_interval_contains_its_value(count: int, half: int, exponent: int) -> None:
    shown = figure(NoisySteps(count, count - half, count + half), exponent)
    assert shown.low <= shown.value <= shown.high


noisy = st.builds(
    lambda middle, half: NoisySteps(middle, middle - half, middle + half),
    st.integers(-(2**50), 2**50),
    st.integers(0, 2**50),
)
counts = st.builds(
    lambda middle, half: NoisySteps(middle, middle - half, middle + half),
    st.integers(-50, 10_000),
    st.integers(0, 50),
)


@given(noisy, counts)
@pytest.mark.parametrize("column", ["age", "income"])
def test_a_mean_is_within_the_bounds_for_all_released_numbers(
    column: str, total: NoisySteps, count: NoisySteps
) -> None:
    made = card()
    asked = question({"kind": "mean", "column": column}).query
    assert isinstance(asked, Mean)
    (shown,) = asked.figures(((total,), (count,)), made)
    bounds = made.column(column)
    assert isinstance(bounds, IntegerColumn | NumberColumn)
    assert bounds.low <= shown.low <= shown.value <= shown.high <= bounds.high


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=40), st.integers(0, 500), st.integers(0, 30)
)
def test_the_interval_of_a_mean_covers_the_exact_mean_if_both_its_parts_do(
    values: list[int], half_total: int, half_count: int
) -> None:
    made = card()
    query = question({"kind": "mean", "column": "age"}).query
    assert isinstance(query, Mean)
    centred, size = sum(values) - 50 * len(values), len(values)
    for off_total in (-half_total, 0, half_total):
        for off_count in (-half_count, 0, half_count):
            t, n = centred + off_total, size + off_count
            (shown,) = query.figures(
                (
                    (NoisySteps(t, t - half_total, t + half_total),),
                    (NoisySteps(n, n - half_count, n + half_count),),
                ),
                made,
            )
            assert shown.low - 1e-9 <= sum(values) / size <= shown.high + 1e-9


def test_the_interval_of_an_empty_mean_is_the_whole_range() -> None:
    asked = question({"kind": "mean", "column": "age"}).query
    assert isinstance(asked, Mean)
    (shown,) = asked.figures(((NoisySteps(0, -5, 5),), (NoisySteps(0, -2, 2),)), card())
    assert (shown.low, shown.value, shown.high) == (0.0, 50.0, 100.0)


MEMBERS: dict[str, dict[str, Any]] = {
    "histogram": {"column": "age", "edges": [0, 50]},
    "sum": {"column": "age"},
    "mean": {"column": "age"},
    "variance": {"column": "age"},
    "ratio": {"numerator": {"where": {"all": []}}},
    "cdf": {"column": "age", "edges": [0, 50]},
    "workload": {"predicates": [{"name": "all", "where": {"all": []}}]},
    "linear_regression": {"outcome": "age", "features": ["income"]},
    "logistic_regression": {"outcome": "member", "features": ["age"]},
    "keys": {"column": "note"},
    "aggregates": {"of": [{"kind": "count"}, {"kind": "mean", "column": "age"}]},
    "randomized_column": {"column": "city"},
    "mode": {"column": "city"},
    "top_k": {"column": "city", "k": 2},
    "quantile": {"column": "age", "q": 0.5},
    "trimmed_mean": {"column": "age", "trim": 0.1},
    "prediction_variance": {"features": ["age"], "point": {"age": 3}, "ridge": 1},
    "sample_aggregate": {
        "statistic": {"kind": "mean", "column": "age"},
        "blocks": 9,
        "low": 0,
        "high": 100,
    },
    **{kind: {"column": "age"} for kind in ("median", "min", "max", "price", "iqr")},
}


def test_every_kind_of_question_is_in_the_table_under_its_name() -> None:
    for kind in QUERIES:
        asked = question({"kind": kind, **MEMBERS.get(kind, {})}).query
        assert asked.__class__.__name__ == QUERIES[kind].__name__
        assert asked.model_dump()["kind"] == kind
