"""Gradient descent: the noise of every step, the sampling coins, and the distance to the fit."""

import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from app.data.card import Card
from app.errors import EngineFailed
from app.mechanisms.learning.clipping import NORM
from app.mechanisms.learning.gradient_descent import COINS, GradientRelease, prepare
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.sampling.system import SystemRandom
from app.planning.mechanism_choice import options
from tests.effort import thorough_after
from tests.mechanisms.learning.descents import (
    LABELS,
    QUERY,
    ROWS,
    SAMPLED,
    Louder,
    Silent,
    fitted,
    learned,
    nothing,
)
from tests.mechanisms.noise.noise_law import DRAWS, FALSE_ALARM, binomial_tail, chi_square_tail
from tests.queries.cards import card
from tests.queries.reference import Row
from tests.queries.regression.regressions import (
    BY_DELTA,
    BY_RHO,
    COLUMNS,
    LOGISTIC,
    recorded,
    regression_question,
    regression_shape,
    release_of,
)

# Distance to the fit


def off(release: GradientRelease, made: Card, rows: list[Row], noise: SystemRandom) -> float:
    """Largest error of the log odds compared with the fit, anywhere in the bounds."""
    best = fitted(release.shape, recorded(made, release.records, rows))
    want = release.shape.in_own_units(best)
    have = learned(release, made, rows, noise)
    apart = dict(zip(LABELS, np.subtract(have, want), strict=True))
    corners = [
        apart["(intercept)"] + apart["x"] * x + apart["z"] * z + group
        for x in (0, 3)
        for z in (-0.5, 2.0)
        for group in (0.0, apart["group=b"], apart["group=c"])
    ]
    return float(np.max(np.abs(corners)))


def test_without_noise_the_defaults_reach_the_fit() -> None:
    made = card(COLUMNS)
    release = release_of(made, BY_DELTA, QUERY)
    assert off(release, made, ROWS, Silent()) < 0.02


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "near"), [({}, 0.2), (SAMPLED, 0.25)], ids=["all rows", "samples"]
)
def test_a_moderate_budget_comes_near_the_fit(mechanism: dict[str, Any], near: float) -> None:
    """At (1, 1e-6) on 18,000 rows, log odds range over 5. In 300 runs the largest error had mean
    0.039, deviation 0.015 and maximum 0.11; on samples 0.046, 0.018 and 0.11. Errors are nearly
    linear in the noise, which is normal. So each bound is six deviations of every corner away:
    wrong with probability below 1e-7. Far more noise is caught, except with 1e-7 too."""
    made = card(COLUMNS)
    release = release_of(made, BY_DELTA, QUERY, **mechanism)
    assert off(release, made, ROWS, SystemRandom()) < near
    assert off(release, made, ROWS, Louder()) > near


@pytest.mark.parametrize("intercept", [True, False])
def test_the_same_steps_learn_least_squares(intercept: bool) -> None:
    made = card(COLUMNS)
    shape = regression_shape(made, ("x", "group", "yes"), "z", model="squares", intercept=intercept)
    rows = [
        row | {"z": 0.2 + 0.3 * (row["x"] or 0) - 0.4 * bool(row["yes"])} for row in ROWS[:2000:11]
    ]
    release = prepare(shape, PrivacyTarget(rho=Decimal("0.5")))
    best = shape.in_own_units(fitted(shape, recorded(made, shape.records, rows)))
    found = learned(release, made, rows, Silent())
    assert found == pytest.approx(best, abs=0.02)


def test_a_descent_has_no_expected_error() -> None:
    release = release_of(card(COLUMNS), BY_RHO)
    assert release.standard_deviations == (math.inf,)
    error = release.expected_error(0.9)
    assert (error.half_width, error.promise) == (None, False)


def test_the_planner_uses_gradient_descent_for_a_logistic_regression() -> None:
    made = card(COLUMNS)
    (only,) = options(regression_question(LOGISTIC, BY_DELTA), made, frozenset())
    assert only.kind == "noisy_gradient_descent"
    described = only.release.describe()
    assert (described["steps"], described["sampling_rate"]) == (100, None)
    assert described["clipping_norm"] == pytest.approx(math.sqrt(3))
    assert described["learning_rate"] == pytest.approx(4 / 3)


# Randomness


@pytest.mark.statistical
def test_every_step_has_the_charged_noise_and_a_tenth_more_or_less_is_rejected() -> None:
    """False alarm 1e-6."""
    made = card(COLUMNS)
    release = release_of(made, BY_RHO, QUERY, expected_rows=100)
    rows = recorded(made, release.records, ROWS[:40])
    weights = np.array([0.3, -0.1, 0.2, 0.0, 0.5])
    exact = release.noisy_sum(weights, [rows], Silent(), lambda: None)
    noise = SystemRandom()
    draws: list[int] = []
    while len(draws) < DRAWS:
        noisy = release.noisy_sum(weights, [rows], noise, lambda: None)
        draws += [int(number) for number in noisy - exact]
    scale = release.noise_multiplier * NORM
    assert fit(draws, scale) > FALSE_ALARM
    assert fit(draws, scale * 1.1) < FALSE_ALARM
    assert fit(draws, scale * 0.9) < FALSE_ALARM


def fit(draws: list[int], scale: float) -> float:
    """P value of chi-square over 21 equally likely bins; at this scale the noise is nearly
    normal."""
    law = NormalDist(0.0, scale)
    counts = Counter(int(21 * law.cdf(draw)) for draw in draws)
    expected = len(draws) / 21
    statistic = sum((counts[b] - expected) ** 2 / expected for b in range(21))
    return chi_square_tail(statistic, 20)


class Remembering(SystemRandom):
    """A sampler that records its draws, by scale."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[float, int]] = []

    @override
    def discrete_gaussian(self, scale: float, size: int) -> list[int]:
        self.drawn.append((scale, size))
        return super().discrete_gaussian(scale, size)


@pytest.mark.parametrize("mechanism", [{}, SAMPLED, {"expected_rows": 50}])
def test_noise_is_drawn_once_for_rows_and_per_step_coordinate(mechanism: dict[str, Any]) -> None:
    made = card(COLUMNS)
    release = release_of(made, BY_DELTA, QUERY, **mechanism)
    noise = Remembering()
    learned(release, made, ROWS[:30], noise)
    steps = [(release.price.scale, len(LABELS))] * release.steps
    count = [] if release.price.count_scale is None else [(release.price.count_scale, 1)]
    assert noise.drawn == [*count, *steps]


@pytest.mark.statistical
@pytest.mark.parametrize("rate", thorough_after(1, [0.5, 0.1, 0.001]))
def test_the_sampling_rate_is_the_charged_one_and_a_tenth_more_or_less_is_rejected(
    rate: float,
) -> None:
    """False alarm 1e-6 on each side. Coins of neighbouring rows agree as often as independent
    ones."""
    release = release_of(card(COLUMNS), BY_DELTA, sampling_rate=rate)
    noise, size = SystemRandom(), 999_999
    coins = release._coins(size, noise)
    heads, chance = int(coins.sum()), release.threshold / COINS

    def likely(hits: int, draws: int, p: float) -> bool:
        above = binomial_tail(draws, p, hits)
        below = 1.0 - binomial_tail(draws, p, hits + 1)
        return min(above, below) > FALSE_ALARM

    assert likely(heads, size, chance)
    both = int((coins[0:-1:2] & coins[1::2]).sum())
    assert likely(both, size // 2, chance**2)
    if rate >= 0.1:
        assert not likely(heads, size, 1.1 * chance)
        assert not likely(heads, size, 0.9 * chance)


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_a_sample_has_whole_rows_and_is_drawn_anew_in_every_step(rate: float) -> None:
    made = card(COLUMNS)
    release = release_of(made, BY_DELTA, QUERY, sampling_rate=rate)
    rows = recorded(made, release.records, ROWS[:1] * 1000)
    weights = np.zeros(len(LABELS))
    one = release.noisy_sum(weights, [rows[:1]], Everybody(), lambda: None)
    sums = [release.noisy_sum(weights, [rows], Silent(), lambda: None) for _ in range(5)]
    counts = [float(each[0] / one[0]) for each in sums]
    for each, count in zip(sums, counts, strict=True):
        assert count == round(count)
        assert np.array_equal(each, count * one)
    # Five samples of 1000 at one quarter are equal with probability below 1e-6.
    assert counts == [1000.0] * 5 if rate == 1.0 else len(set(counts)) > 1


class Everybody(Silent):
    """All coins are heads."""

    @override
    def words(self, size: int) -> list[int]:
        return [0] * size


# The public divisor


def test_the_number_of_rows_is_noisy_released_and_at_least_the_noise() -> None:
    made = card(COLUMNS)
    release = release_of(made, BY_RHO, QUERY)
    noise = Remembering()
    for rows, exact in ((recorded(made, release.records, ROWS), 18_000), (ROWS[:0], 0)):
        tallied_rows = ((exact,),)
        matrix = rows if isinstance(rows, np.ndarray) else recorded(made, release.records, [])
        released_rows = release.learn(tallied_rows, [matrix], noise, nothing)["value"]["rows"]
        assert released_rows >= math.ceil(release.noise_multiplier)
        assert release.price.count_scale is not None
        # except with probability 1e-22
        assert exact == 0 or abs(released_rows - exact) < 10 * release.price.count_scale
    with pytest.raises(ValueError, match="number of rows"):
        release.learn(None, [], noise, nothing)


def test_sums_of_samples_are_divided_by_the_rate_and_never_by_the_sample_size() -> None:
    """With every row in the sample, a step is 1 / rate times as large."""
    made = card(COLUMNS)
    whole = release_of(made, BY_DELTA, QUERY, steps=1, expected_rows=100)
    sample = release_of(made, BY_DELTA, QUERY, steps=1, expected_rows=100, sampling_rate=0.25)
    first = learned(whole, made, ROWS[:50], Silent())
    second = learned(sample, made, ROWS[:50], Everybody())
    assert second == pytest.approx([4 * each for each in first])


# Degenerate data

STRANGE: dict[str, list[Row]] = {
    "nobody": [],
    "all missing": [dict.fromkeys(("x", "z", "group", "kept", "yes"))] * 5,
    "one row": ROWS[:1],
    "a constant column": [row | {"x": 3, "group": "b"} for row in ROWS[:200]],
    "the same outcome": [row | {"yes": True} for row in ROWS[:200]],
    "a feature that determines the outcome": [
        row | {"yes": row["x"] is not None and row["x"] > 1} for row in ROWS[:200]
    ],
}


@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.parametrize("mechanism", [{}, SAMPLED, {"learning_rate": 1e9, "clipping_norm": 1e9}])
@pytest.mark.parametrize("neighbours", thorough_after(1, ["add_remove", "replace_one"]))
def test_all_data_get_an_answer(what: str, mechanism: dict[str, Any], neighbours: str) -> None:
    made = card(COLUMNS, neighbours=neighbours)
    release = release_of(made, BY_DELTA, QUERY, **mechanism)
    found = learned(release, made, STRANGE[what], SystemRandom())
    assert all(map(math.isfinite, found))


# Progress and cancellation


def test_a_run_reports_its_progress_and_can_be_stopped() -> None:
    made = card(COLUMNS)
    release = release_of(made, BY_RHO, QUERY, steps=7, expected_rows=100)
    rows = np.array_split(recorded(made, release.records, ROWS[:30]), 3)
    heard: list[int] = []
    release.learn(None, rows, SystemRandom(), heard.append)
    assert heard == [*sorted([*range(7)] * 4), 7]

    def ending(after: int) -> Callable[[int], None]:
        def hear(step: int) -> None:
            if step == after:
                raise EngineFailed("ended")

        return hear

    with pytest.raises(EngineFailed):
        release.learn(None, rows, SystemRandom(), ending(3))
