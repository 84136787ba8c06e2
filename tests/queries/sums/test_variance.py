"""The variance: exact without noise, and an interval that holds for every box of its noise."""

from fractions import Fraction
from statistics import pvariance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.card import Card
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries.estimates import NoisySteps
from app.queries.sums.variance import STEPS_MAX, CentredGrid, Variance
from tests.effort import examples
from tests.queries.cards import card, question
from tests.queries.reference import measured, tallied


def column_card(**column: Any) -> Card:
    return card([{"name": "x", **column}])


AGES = column_card(type="integer", low=0, high=100)
RATES = column_card(type="number", low=-0.3, high=0.7)
HUGE = column_card(type="integer", low=-(2**53), high=2**53)
CARDS = [AGES, RATES, HUGE]
VARIANCE = {"kind": "variance", "column": "x"}


def query() -> Variance:
    asked = question(VARIANCE).query
    assert isinstance(asked, Variance)
    return asked


def without_noise(made: Card, rows: list[Any]) -> Any:
    vectors = measured(made, query().shape(made), [{"x": x} for x in rows])
    noisy = tuple(tuple(NoisySteps(n, n, n) for n in vector) for vector in vectors)
    (shown,) = query().figures(noisy, made)
    return shown


@given(st.lists(st.integers(0, 100) | st.none(), max_size=20))
def test_without_noise_the_answer_is_the_variance_of_the_present_values(rows: list[Any]) -> None:
    present = [x for x in rows if x is not None]
    shown = without_noise(AGES, rows)
    if not present:
        assert (shown.low, shown.high) == (0, 2500)
        return
    assert shown.value == pytest.approx(pvariance(present), abs=1e-9)
    assert shown.low == shown.value == shown.high


@given(st.lists(st.floats(-0.3, 0.7), min_size=1, max_size=20))
def test_on_a_coarser_grid_the_variance_is_slightly_off(rows: list[float]) -> None:
    """Values move by less than one step of a grid of at least 2^20 steps."""
    assert without_noise(RATES, rows).value == pytest.approx(pvariance(rows), abs=4 * 2.0**-20)


@pytest.mark.parametrize("made", CARDS)
def test_the_grid_is_as_fine_as_possible_and_its_sums_fit(made: Card) -> None:
    column = made.columns[0]
    assert column.type in ("integer", "number")
    grid = CentredGrid(column)
    assert grid.width <= STEPS_MAX
    assert grid.grain == 1 or grid.width > STEPS_MAX // 2 - 1
    assert grid.reach**2 * 2**40 < 2**127  # a HUGEINT holds the squares of any number of rows


boxes = st.tuples(st.integers(-3, 6), st.integers(0, 4))


@examples(200)
@given(boxes, st.tuples(st.integers(-6, 6), st.integers(0, 3)), st.data())
def test_every_table_whose_measures_are_in_the_box_has_its_variance_in_the_interval(
    counts: tuple[int, int], totals: tuple[int, int], data: st.DataObject
) -> None:
    made = column_card(type="integer", low=0, high=3)
    rows = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    shape = query().shape(made)
    exact = [vector[0] for vector in measured(made, shape, [{"x": x} for x in rows])]
    noisy = []
    for number, (shift, half) in zip(exact, (counts, totals, (totals[1], 3)), strict=True):
        centre = number + max(-half, min(half, shift))  # so that the exact one is in the box
        noisy.append((NoisySteps(centre, centre - half, centre + half),))
    (shown,) = query().figures(tuple(noisy), made)
    assert 0 <= shown.low <= shown.value <= shown.high <= Fraction(9, 4)
    assert shown.low - 1e-12 <= pvariance(rows) <= shown.high + 1e-12


@given(
    st.tuples(st.integers(1, 30), st.integers(0, 9)),
    st.tuples(st.integers(-40, 40), st.integers(0, 9)),
    st.tuples(st.integers(-60, 60), st.integers(0, 9)),
)
def test_the_interval_is_that_of_all_points_of_the_box(
    count: tuple[int, int], total: tuple[int, int], squares: tuple[int, int]
) -> None:
    made = column_card(type="integer", low=0, high=5)
    box = [NoisySteps(n, n - half, n + half) for n, half in (count, total, squares)]
    (shown,) = query().figures(tuple((each,) for each in box), made)
    column = made.columns[0]
    grid = CentredGrid(column)  # type: ignore[arg-type]
    assert shown.low <= shown.value <= shown.high
    for n in range(max(1, box[0].low), box[0].high + 1):
        for t in range(box[1].low, box[1].high + 1, 3):
            for q in (box[2].low, box[2].high):
                exact = grid.middle + Fraction(q, n) - Fraction(t, n) ** 2
                clamped = min(max(exact, Fraction(0)), Fraction(25, 4))
                assert shown.low - 1e-12 <= clamped <= shown.high + 1e-12


@pytest.mark.parametrize("rows", [[], [None, None], [50], [50] * 100], ids=str)
def test_degenerate_data_get_an_ordinary_answer(rows: list[Any]) -> None:
    plan = make_plan(question(VARIANCE), AGES)
    exact = tallied(AGES, plan.release.tally, [{"x": x} for x in rows])
    answer = plan.answer(exact, SystemRandom())
    interval = answer["interval"]
    assert 0 <= interval["low"] <= answer["value"] <= interval["high"] <= 2500
    assert interval["covers"] == "noise"


def test_many_rows_and_a_large_epsilon_give_the_variance() -> None:
    """Noise has a scale of at most 2500 / (0.35 * 100) on squares of 1000 rows.

    The answer is off by 1 or more with probability below 1e-5.
    """
    rows = [{"x": x % 101} for x in range(1010)]
    for mechanism in ("laplace", "gaussian"):
        parsed = question(
            VARIANCE, epsilon="100", mechanism={"kind": mechanism}, confidence=0.9999
        ).model_copy(
            update={
                "privacy": question(VARIANCE).privacy.model_validate(
                    {"epsilon": 100, "delta": 1e-6}
                )
            }
        )
        plan = make_plan(parsed, AGES)
        answer = plan.answer(tallied(AGES, plan.release.tally, rows), SystemRandom())
        assert abs(answer["value"] - 850) < 20
        assert answer["interval"]["high"] - answer["interval"]["low"] < 100
