"""Linear regression by noisy moments: exact without noise, and with valid intervals under noise.

Each test states its false-alarm rate.
"""

import json
import math
import statistics
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from app.mechanisms.noise.moment_noise import MomentNoise
from app.mechanisms.noise.sum_tails import gaussian_norm, laplace_norm
from app.mechanisms.sampling.system import SystemRandom
from app.queries.shapes.moments import Moments
from app.queries.weighted_noise import Numbers
from tests.effort import thorough_after
from tests.mechanisms.learning.regressions import (
    COLUMNS,
    FEATURES,
    design,
    exact_of,
    least_squares,
    outcomes,
    planned,
    survey,
)
from tests.mechanisms.noise.noise_law import DRAWS, FALSE_ALARM, binomial_tail, chi_square
from tests.queries.cards import additive, card
from tests.queries.reference import Row

ALL = ["age", "hours", "sex", "city", "member"]
ROWS = survey(1500)
NOISE = SystemRandom()


def values(answer: dict[str, Any]) -> Numbers:
    return np.array([item["value"] for item in answer["value"]["coefficients"]])


# The noise of the matrix


def all_moments() -> Moments:
    moments = additive(planned(ALL, {"epsilon": 1})).shape.moments
    assert moments is not None
    return moments


def basis(noise: MomentNoise, count: int) -> list[Numbers]:
    """Matrices B_k: the matrix for one step in one moment."""
    nothing = noise.matrix([0] * count)
    assert not nothing.any()
    return [noise.matrix([int(k == j) for j in range(count)]) for k in range(count)]


def test_weights_and_bounds_are_those_of_the_matrices_of_the_steps() -> None:
    moments = all_moments()
    noise, count = MomentNoise(moments), len(list(moments.entries()))
    matrices = basis(noise, count)
    size = len(moments.coordinates)
    assert all((b == b.T).all() for b in matrices)
    for seed in range(3):
        h, x = (np.array([math.sin(i * i + seed + c) for i in range(size)]) for c in (0, 9))
        assert noise.weights(h, x) == pytest.approx([h @ b @ x for b in matrices])
        t = np.array([[math.cos(i * j + seed + i) for i in range(size)] for j in range(4)])
        p = t.T @ t
        assert noise.spread(p) == pytest.approx(sum(b @ p @ b for b in matrices))
        norms = [float(np.linalg.norm(t @ b @ t.T, 2)) for b in matrices]
        assert max(norms) <= noise.largest(p) * (1 + 1e-9) <= 3 * max(norms)
        lengths = [float(np.linalg.norm(t @ b @ x)) for b in matrices]
        assert max(lengths) <= noise.largest_at(p, x) * (1 + 1e-9) <= 3 * max(lengths)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_spectral_norm_of_the_noise_is_within_its_bound(kind: str) -> None:
    """With 400 draws, a 5 % bound is exceeded more than 50 times with probability below 1e-6.

    The bound is at most seven times the median. In twelve runs it was 5.9 medians of Laplace noise
    with a deviation of 0.1, and 2.1 of Gaussian noise.
    """
    moments = all_moments()
    noise, count = MomentNoise(moments), len(list(moments.entries()))
    size, scale = len(moments.coordinates), 1e12
    identity = np.eye(size)
    root = math.sqrt(float(np.linalg.norm(noise.spread(identity), 2)))
    if kind == "laplace":
        bound = laplace_norm(scale, root, noise.largest(identity), size, 0.05)
    else:
        bound = gaussian_norm(scale, root, size, 0.05)
    drawn = NOISE.discrete_laplace if kind == "laplace" else NOISE.discrete_gaussian
    found = [float(np.linalg.norm(noise.matrix(drawn(scale, count)), 2)) for _ in range(400)]
    assert sum(norm > bound for norm in found) <= 50
    assert bound < 7 * statistics.median(found)


# Almost without noise


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", [["age"], ["sex"], ["city"], FEATURES, ALL], ids="-".join)
def test_almost_without_noise_the_fit_is_least_squares(
    features: list[str], intercept: bool
) -> None:
    """Noise has a scale below 1e-4 on moments of hundreds.

    The fit is off by 1e-2 with probability below 1e-40, and outside its intervals with 1e-9 each.
    """
    plan = planned(features, {"epsilon": 500_000}, intercept=intercept, confidence=1 - 1e-9)
    answer = plan.answer(exact_of(plan, ROWS), NOISE)
    exact = least_squares(ROWS, features, intercept=intercept)
    assert values(answer) == pytest.approx(exact, rel=2e-3, abs=2e-3)
    for item, wanted in zip(answer["value"]["coefficients"], exact, strict=True):
        assert item["interval"]["low"] - 1e-6 <= wanted <= item["interval"]["high"] + 1e-6
        assert item["interval"]["covers"] == "noise"
    assert answer["value"]["rows"]["value"] == len(ROWS)
    assert answer["value"]["ridge"] == 0


def test_almost_without_noise_standard_errors_are_those_of_the_textbook() -> None:
    plan = planned(FEATURES, {"epsilon": 500_000})
    answer = plan.answer(exact_of(plan, ROWS), NOISE)
    x, y = design(ROWS, FEATURES), outcomes(ROWS)
    rest = y - x @ least_squares(ROWS, FEATURES)
    variance = float(rest @ rest) / (len(ROWS) - x.shape[1])
    errors = np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))
    standard_errors = [item["standard_error"] for item in answer["value"]["coefficients"]]
    assert standard_errors == pytest.approx(errors, rel=1e-3)
    residual = answer["value"]["residual_standard_deviation"]
    assert residual["value"] == pytest.approx(math.sqrt(variance), rel=1e-3)
    assert residual["interval"]["low"] <= residual["value"] <= residual["interval"]["high"]


def test_terms_are_named_and_in_order() -> None:
    answer = planned(ALL, {"epsilon": 10})
    coefficients = answer.answer(exact_of(answer, ROWS[:50]), NOISE)["value"]["coefficients"]
    terms = ["(intercept)", "age", "hours", "sex=m", "city=Chur", "city=Zug", "member"]
    assert [item["term"] for item in coefficients] == terms


def test_a_ridge_applies_to_scaled_features_and_not_to_the_intercept() -> None:
    """A feature is scaled to (x - 50) / 50, and pay to (x - 100) / 150, except for its grid."""
    plan = planned(["age"], {"epsilon": 500_000}, ridge=100)
    answer = plan.answer(exact_of(plan, ROWS), NOISE)
    x, y = design(ROWS, ["age"]), outcomes(ROWS)
    z = np.stack([x[:, 0], (x[:, 1] - 50) / 50], axis=1)
    fitted = np.linalg.solve(z.T @ z + np.diag([0.0, 100.0]), z.T @ ((y - 100) / 150))
    slope = fitted[1] * 150 / 50
    assert values(answer)[1] == pytest.approx(slope, rel=2e-3)
    assert values(answer)[0] == pytest.approx(100 + 150 * fitted[0] - slope * 50, rel=2e-3)
    assert answer["value"]["ridge"] == 100


def test_the_gaussian_scale_is_the_least_for_its_rho() -> None:
    """rho = D^2 / (2 s^2) (Bun and Steinke 2016): for rho = 1/4, s is 1.414214 D."""
    (part,) = additive(planned(FEATURES, {"rho": "0.25"})).parts
    sensitivity = math.sqrt(part.measure.sensitivity_squared)
    assert part.scale / sensitivity == pytest.approx(math.sqrt(2), rel=1e-9)
    # The design has 1, age, sex, pay and a city: 10 products, two squares of 1/2, and n.
    assert sensitivity / 2.0**part.measure.grid_exponent == pytest.approx(math.sqrt(11.5))


# With noise


class Recording(SystemRandom):
    """A sampler that records its draws; `times` plants a bug."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.draws: list[int] = []
        self._times = times

    @override
    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        drawn = super().discrete_laplace(scale * self._times, size)
        self.draws += drawn
        return drawn


@pytest.mark.statistical
@pytest.mark.parametrize(("times", "sound"), [(1.0, True), (0.9, False), (1.1, False)])
def test_every_moment_has_noise_of_the_charged_scale(times: float, sound: bool) -> None:
    """Goodness of fit with a false alarm of 1e-6. Scales off by a tenth are detected."""
    plan = planned(ALL, {"epsilon": 1})
    (part,) = additive(plan).parts
    noise, exact = Recording(times), exact_of(plan, ROWS[:10])
    while len(noise.draws) < DRAWS:
        plan.answer(exact, noise)
    assert len(noise.draws) % len(part.measure.vectors) == 0
    scale = part.measure.sensitivity / 1.0
    assert (chi_square(noise.draws[:DRAWS], scale) > FALSE_ALARM) is sound


def too_many(trials: int, chance: float) -> int:
    """The number of misses exceeded with probability below 1e-6."""
    return next(k for k in range(trials) if binomial_tail(trials, chance, k + 1) < 1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "privacy",
    thorough_after(1, [{"epsilon": 8}, {"epsilon": 60}, {"rho": 2}, {"rho": 50}]),
    ids=str,
)
def test_intervals_cover_the_coefficients_without_noise_as_often_as_stated(
    privacy: dict[str, Any], intercept: bool
) -> None:
    """500 answers at 90 % miss each coefficient, the rows and the residuals at most as often as the
    limit.

    More misses have a probability below 1e-6. A missing interval misses nothing, but with the
    smaller noise every interval exists.
    """
    plan = planned(FEATURES, privacy, intercept=intercept, confidence=0.9)
    exact = exact_of(plan, ROWS)
    exact_coefficients = least_squares(ROWS, FEATURES, intercept=intercept)
    x = design(ROWS, FEATURES, intercept=intercept)
    rest = outcomes(ROWS) - x @ exact_coefficients
    spread = math.sqrt(float(rest @ rest) / (len(ROWS) - len(exact_coefficients)))
    missed, there = np.zeros(len(exact_coefficients) + 2, dtype=int), 0
    for _ in range(500):
        fit = plan.answer(exact, NOISE)["value"]
        there += fit["coefficients"][0]["interval"] is not None
        figures = [
            *fit["coefficients"],
            fit["residual_standard_deviation"],
            fit["rows"],
        ]
        for index, (item, value) in enumerate(
            zip(figures, [*exact_coefficients, spread, len(ROWS)], strict=True)
        ):
            interval = item["interval"]
            if interval is not None and not interval["low"] <= value <= interval["high"]:
                missed[index] += 1
    assert missed.max() <= too_many(500, 0.1)
    if privacy in ({"epsilon": 60}, {"rho": 50}) and intercept:
        assert there == 500


@pytest.mark.thorough
@pytest.mark.statistical
def test_standard_errors_include_sampling_and_noise() -> None:
    """Answer 400 surveys of 200 rows once each, and divide the error of the slope by its standard
    error.

    The mean square is near 1. It is off by 0.35, five deviations, with probability below 1e-6.
    Sampling alone or noise alone would fail, since each is about half of the variance.
    """
    plan = planned(["age"], {"rho": 4})
    rows, size = survey(200 * 400), 200
    truth = 0.8
    squares = []
    for start in range(0, len(rows), size):
        answer = plan.answer(exact_of(plan, rows[start : start + size]), NOISE)
        slope = answer["value"]["coefficients"][1]
        if slope["standard_error"] is not None:
            squares.append(((slope["value"] - truth) / slope["standard_error"]) ** 2)
    assert len(squares) > 350
    assert abs(sum(squares) / len(squares) - 1) < 0.35


NONE: Row = dict.fromkeys(column["name"] for column in COLUMNS)
CONSTANT = [{**row, "age": 50} for row in ROWS]
COLLINEAR = [{**row, "age": i % 20 * 5, "hours": i % 20 * 4} for i, row in enumerate(ROWS)]
SINGULAR: dict[str, list[Row]] = {
    "no row": [],
    "nothing but missing": [NONE] * 50,
    "one row": ROWS[:1],
    "two rows": ROWS[:2],
    "a constant column": CONSTANT,
    "collinear columns": COLLINEAR,
}


@pytest.mark.statistical
@pytest.mark.parametrize(
    "privacy", thorough_after(1, [{"epsilon": 0.01}, {"epsilon": 1}, {"epsilon": 100}, {"rho": 1}])
)
@pytest.mark.parametrize("what", SINGULAR)
def test_degenerate_data_get_an_ordinary_answer_without_intervals(
    what: str, privacy: dict[str, Any]
) -> None:
    """Each of 100 answers has errors or intervals with probability 0.005.

    More than the limit have a probability below 1e-6.
    """
    plan = planned(["age", "hours"], privacy)
    exact = exact_of(plan, SINGULAR[what])
    claimed = 0
    for _ in range(100):
        answer = plan.answer(exact, NOISE)
        json.dumps(answer, allow_nan=False)
        fit = answer["value"]
        assert len(fit["coefficients"]) == 3
        assert all(math.isfinite(item["value"]) for item in fit["coefficients"])
        claimed += any(
            item["interval"] is not None or item["standard_error"] is not None
            for item in fit["coefficients"]
        )
        released_rows = fit["rows"]
        assert 0 <= released_rows["interval"]["low"] <= released_rows["value"]
    assert claimed <= too_many(100, 0.005)


@pytest.mark.parametrize("epsilon", ["1e-4", "1e-3"])
def test_enormous_noise_gives_finite_numbers(epsilon: str) -> None:
    plan = planned(ALL, {"epsilon": epsilon}, made=card(COLUMNS, neighbours="replace_one"))
    for _ in range(50):
        answer = plan.answer(exact_of(plan, ROWS[:5]), NOISE)
        json.dumps(answer, allow_nan=False)
        assert answer["value"]["ridge"] >= 0
