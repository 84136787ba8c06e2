"""A paid interval: the influence of one person, its price, and its coverage."""

import math
from fractions import Fraction
from typing import Any

import pytest

from app.accounting.units import PICO
from app.errors import Invalid
from app.mechanisms.noise.laplace import width
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.smooth_sensitivity.rank_statistics import centre_of
from app.mechanisms.smooth_sensitivity.scale_disclosure import STEPS, Disclosure
from app.queries.shapes.ranks.shape import RankShape
from tests.effort import thorough_after
from tests.mechanisms.learning.rows_data import RowsData
from tests.mechanisms.noise.noise_law import upper_chance
from tests.mechanisms.smooth_sensitivity.test_rank_bound import CLAIMS, bound_of, persons_apart
from tests.mechanisms.smooth_sensitivity.test_rank_statistics import (
    SMOOTH,
    incomes,
    planned,
    release_of,
)
from tests.queries.cards import card

MEDIAN: dict[str, Any] = {"kind": "median", "column": "income"}
PAID = {**SMOOTH, "interval_epsilon": "0.5"}
DRAWS = 400


@pytest.mark.parametrize("shape", thorough_after(3, CLAIMS))
def test_no_person_moves_the_level_by_more_than_its_sensitivity(shape: RankShape) -> None:
    beta = Fraction(1, 10)
    disclosure = Disclosure(PICO, beta)
    levels: dict[tuple[int, ...], int] = {}

    def level(x: tuple[int, ...]) -> int:
        if x not in levels:
            levels[x] = disclosure.level(bound_of(shape, x, beta))
        return levels[x]

    moved = max(abs(level(x) - level(y)) for x, y in persons_apart(shape))
    assert STEPS // 2 < moved <= STEPS + 1
    # Planted bug: levels of half the width move by more.
    finer = Disclosure(PICO, beta / 2)
    assert any(
        abs(finer.level(bound_of(shape, x, beta)) - finer.level(bound_of(shape, y, beta)))
        > STEPS + 1
        for x, y in persons_apart(shape)
    )


def test_levels_are_logarithms_rounded_up() -> None:
    disclosure = Disclosure(PICO, Fraction(1, 4))
    for smooth in (Fraction(1, 10**9), Fraction(1), Fraction(7, 3), Fraction(10**12)):
        exact = math.log(smooth) * STEPS * 4
        assert exact - 1e-6 <= disclosure.level(smooth) < exact + 1 + 1e-6


@pytest.mark.parametrize(("beta", "factor"), [("0.25", 3.1622777), ("0.1", 1.5848932)])
def test_the_bound_is_slightly_above_that_of_continuous_noise(beta: str, factor: float) -> None:
    """(1 / (2 alpha))^(beta / epsilon') for Laplace noise, with epsilon' 0.5 and alpha 0.05."""
    disclosure = Disclosure(PICO // 2, Fraction(beta))
    found = math.exp(float(beta) / STEPS * width(disclosure.scale, 0.1))
    assert factor * 0.99 <= found <= factor * 1.04


def test_the_interval_is_paid_from_epsilon() -> None:
    plan = planned(MEDIAN, card(), mechanism=PAID, epsilon="2")
    assert plan.loss.epsilon == plan.loss.pure == 2 * PICO
    assert release_of(plan).noise.loss.epsilon == 3 * PICO // 2
    assert plan.mechanism["interval_epsilon"] == 0.5
    assert "interval_epsilon" not in planned(MEDIAN, card(), epsilon="2").mechanism


@pytest.mark.parametrize(
    "noise", thorough_after(1, ["student_t", "cauchy", "laplace", "arsinh_normal"])
)
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_interval_covers_the_truth_as_often_as_stated(noise: str, confidence: float) -> None:
    """A sound interval is accused with probability 1e-6."""
    made = card(neighbours="replace_one")
    mechanism = {**PAID, "noise": noise}
    privacy = {"epsilon": "3", "delta": "1e-3"}
    plan = planned(
        {**MEDIAN, "missing": 0},
        made,
        "approximate",
        mechanism=mechanism,
        privacy=privacy,
        confidence=confidence,
    )
    release = release_of(plan)
    read = release.read(RowsData(made, incomes(900)))
    truth = float(centre_of(release.shape, read) / 2**release.shape.grid_exponent)
    system, held, informative = SystemRandom(), 0, 0
    for _ in range(DRAWS):
        interval = plan.answer(read, system)["interval"]
        assert interval["covers"] == "noise"
        assert interval["confidence"] == confidence
        held += interval["low"] <= truth <= interval["high"]
        informative += interval["high"] - interval["low"] < 500
    assert upper_chance(DRAWS, held, 1e-6) >= confidence
    assert informative > DRAWS // 3


@pytest.mark.parametrize(
    "more",
    [
        {"epsilon": "0.5"},
        {"epsilon": "0.4"},
        {"privacy": {"rho": "1"}},
    ],
)
def test_an_interval_share_outside_epsilon_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        planned(MEDIAN, card(), mechanism=PAID, **more)
    assert refused.value.fields[0].pointer == "/mechanism/interval_epsilon"


@pytest.mark.parametrize("confidence", [0.001, 0.95, 1 - 1e-9])
def test_an_interval_that_costs_almost_nothing_is_wide_and_no_error(confidence: float) -> None:
    scaled = release_of(planned(MEDIAN, card())).noise
    for units in (1, 100, PICO // 1000):
        disclosure = Disclosure(units, scaled.beta)
        for _ in range(20):
            half = disclosure.half_width(Fraction(3), scaled, confidence, SystemRandom())
            assert half >= 0.0
