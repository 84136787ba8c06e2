"""Sums of clipped gradients: exact integers with a bounded influence of one person.

The tests use brute force over all neighbours of small tables, in integers. A person's rows are any
choice of up to `rows_max` out of all combinations of a value, a group and an outcome, including
missing ones.
"""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.card import Card
from app.mechanisms.learning import clipping
from app.mechanisms.learning.clipping import NORM, bounded, clipped, clipped_sum
from app.queries.shapes.learning import LearningShape
from tests.queries.cards import card
from tests.queries.reference import Row
from tests.queries.regression.regressions import COLUMNS, recorded, regression_shape

MODELS = ["logistic", "squares"]
RELATIONS = [
    pytest.param(neighbours, rows_max, id=f"{neighbours}-{rows_max or 1}")
    for neighbours, rows_max in product(("add_remove", "replace_one"), (None, 2))
]
NORMS = (0.25, 1.0, math.sqrt(3), 7.0)
ROWS: list[Row] = [
    {"x": x, "z": 0.3, "group": group, "kept": True, "yes": yes}
    for x, group, yes in product((None, 0, 1, 3), (None, "a", "b"), (None, False, True))
]
OTHERS: list[Row] = [
    {"x": 2, "z": 0.1, "group": "c", "kept": True, "yes": True},
    {"x": 3, "z": 0.2, "group": "b", "kept": True, "yes": False},
]


def shape_of(model: str, made: Card) -> LearningShape:
    if model == "logistic":
        return regression_shape(made, ("x", "group"), "yes")
    return regression_shape(made, ("group", "yes"), "x", model="squares")


def weights_for(shape: LearningShape) -> list[np.ndarray]:
    count = len(shape.inputs)
    rising = np.array([(-1) ** i * (0.3 + i / 7) for i in range(count)])
    return [np.zeros(count), rising, 40.0 * rising, np.full(count, -1e12)]


def persons(made: Card) -> list[tuple[Row, ...]]:
    """Every choice of rows that a person can have; a single row is only replaced."""
    if made.person.kind == "row" and made.neighbours == "replace_one":
        return [(row,) for row in ROWS]
    counts = range(made.person.rows_max + 1)
    return [rows for count in counts for rows in combinations_with_replacement(ROWS, count)]


def moved(shape: LearningShape, made: Card, weights: np.ndarray, norm: float) -> int:
    """Largest squared distance between the sums of two neighbours."""
    choices = persons(made)
    sums = []
    for chosen in choices:
        batch = recorded(made, shape.records, [*OTHERS, *chosen])
        sums.append(clipped_sum(shape, weights, batch, norm))
    first = sums[:1] if made.neighbours == "add_remove" else sums
    different = {tuple(each) for each in sums}
    return max(
        sum((a - b) ** 2 for a, b in zip(before, after, strict=True))
        for before in {tuple(each) for each in first}
        for after in different
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("neighbours", "rows_max"), RELATIONS)
def test_no_neighbour_moves_a_sum_by_more_than_is_charged_and_some_nearly_as_far(
    model: str, neighbours: str, rows_max: int | None
) -> None:
    made = card(COLUMNS, neighbours=neighbours, rows_max=rows_max)
    shape = shape_of(model, made)
    charged = (shape.moves * NORM) ** 2
    squares = [
        moved(shape, made, weights, norm) for weights in weights_for(shape) for norm in NORMS
    ]
    assert max(squares) <= charged
    # A sensitivity smaller by a ten-thousandth is caught, and so is one row less.
    smaller = Fraction(9999, 10_000) ** 2
    assert max(squares) > smaller * charged > ((shape.moves - 1) * NORM) ** 2


def test_saboteur_a_norm_that_is_not_checked_in_integers_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the check, rounding to nearest makes some row longer than the bound."""
    monkeypatch.setattr(clipping, "bounded", lambda vectors: vectors)
    monkeypatch.setattr(np, "trunc", np.rint)
    made = card(COLUMNS)
    shape = shape_of("logistic", made)
    longest = max(moved(shape, made, w, n) for w in weights_for(shape) for n in NORMS)
    assert longest > (shape.moves * NORM) ** 2


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=4, max_size=4),
    st.floats(1e-9, 1e9),
)
@pytest.mark.filterwarnings("ignore:.*encountered.*:RuntimeWarning")
def test_no_row_exceeds_the_bound_for_any_rounding_of_floats(
    weights: list[float], norm: float
) -> None:
    made = card(COLUMNS)
    shape = regression_shape(made, ("group", "yes"), "x", model="squares")
    batch = recorded(made, shape.records, ROWS)
    vectors = clipped(shape, np.array(weights), batch, norm)
    assert np.all(vectors == np.trunc(vectors))
    for vector in vectors.T:
        assert sum(int(number) ** 2 for number in vector) <= NORM**2


@given(st.lists(st.floats(-(2.0**60), 2.0**60) | st.sampled_from([NORM, -NORM, 0.0]), min_size=1))
def test_a_gradient_that_is_too_long_counts_nothing_and_a_short_one_counts_in_full(
    numbers: list[float],
) -> None:
    vector = np.trunc(np.array(numbers)).reshape(-1, 1)
    fits = sum(int(number) ** 2 for number in vector[:, 0]) <= NORM**2
    expected = vector if fits else np.zeros_like(vector)
    assert np.array_equal(bounded(vector), expected)


def many(count: int) -> list[Row]:
    return [
        {"x": i % 4, "z": (i * 7919 % 2503) / 1001 - 0.5, "group": "abc"[i % 3], "kept": i % 5 == 0}
        | {"yes": i * i % 7 < 3}
        for i in range(count)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_a_row_adds_the_same_at_every_position(model: str) -> None:
    """This holds alone, in any batch and in any order. Otherwise removing one row could move the
    others.
    """
    made = card(COLUMNS)
    features = ("z", "group", "kept", "x") if model == "logistic" else ("yes", "group", "kept", "x")
    outcome = "yes" if model == "logistic" else "z"
    shape = regression_shape(made, features, outcome, model=model)  # type: ignore[arg-type]
    rows = recorded(made, shape.records, many(3001))
    weights = np.array([0.1 * (i + 1) ** 2 / 3 * (-1) ** i for i in range(len(shape.inputs))])
    together = clipped(shape, weights, rows, 0.7)
    for place in (0, 1, 7, 1023, 2999, 3000):
        alone = clipped(shape, weights, rows[place : place + 1], 0.7)
        assert np.array_equal(alone[:, 0], together[:, place])
    whole = clipped_sum(shape, weights, rows, 0.7)
    backwards = np.asfortranarray(rows[::-1])
    pieces = [clipped_sum(shape, weights, piece, 0.7) for piece in np.array_split(backwards, 37)]
    assert [sum(each) for each in zip(*pieces, strict=True)] == whole
    assert whole == [int(number) for number in together.sum(axis=1)]


def test_more_rows_than_a_chunk_are_summed_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    made = card(COLUMNS)
    shape = regression_shape(made, ("x", "group"), "yes")
    rows = recorded(made, shape.records, many(1000))
    weights = np.array([0.3, -0.2, 0.7, 0.1])
    whole = clipped_sum(shape, weights, rows, 1.0)
    monkeypatch.setattr(clipping, "CHUNK", 64)
    assert clipped_sum(shape, weights, rows, 1.0) == whole


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("norm", [0.2, 100.0])
def test_gradients_are_those_of_the_model_clipped(model: str, norm: float) -> None:
    """Compared with plain Python: off by less than one step plus the error of the table."""
    made = card(COLUMNS)
    shape = shape_of(model, made)
    rows = [row for row in ROWS if None not in row.values()]
    batch = recorded(made, shape.records, rows)
    weights = np.array([0.4, -0.7, 0.2, 0.9])
    found = clipped(shape, weights, batch, norm).T * norm / NORM
    for row, vector in zip(rows, found, strict=True):
        x = {0: -1 / 2, 1: 0.0, 3: 1.0}[row["x"]]  # the middle of 0 to 3 is bucket 1, reach is 2
        dummies = [float(row["group"] == "b"), float(row["group"] == "c")]
        terms = [1.0, x, *dummies]
        outcome = float(row["yes"])
        if model == "squares":
            terms, outcome = [1.0, *dummies, float(row["yes"])], x
        score = sum(w * t for w, t in zip(weights.tolist(), terms, strict=True))
        predicted = score if model == "squares" else 1.0 / (1.0 + math.exp(-score))
        gradient = [(predicted - outcome) * term for term in terms]
        length = math.sqrt(sum(number**2 for number in gradient))
        scale = min(1.0, norm / length)
        for have, want in zip(vector, gradient, strict=True):
            assert abs(have - scale * want) <= norm / NORM + 4e-7


def test_the_table_of_probabilities_is_within_its_error_bound() -> None:
    points = np.array([i / 997 for i in range(-45_000, 45_001)])
    exact = np.array([1.0 / (1.0 + math.exp(-z)) for z in points])
    assert np.max(np.abs(clipping._chance(points) - exact)) < 2e-7
