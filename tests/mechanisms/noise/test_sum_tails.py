"""Widths of sums of draws: compared with the exact law, and never too narrow."""

import math

import numpy as np
import pytest

from app.mechanisms.noise import gaussian, laplace
from app.mechanisms.noise.additive import NoiseDistribution
from app.mechanisms.noise.workload_release import width_of
from app.queries.weighted_noise import combinations
from tests.effort import thorough_after

LAWS: dict[str, NoiseDistribution] = {"laplace": laplace.LAW, "gaussian": gaussian.LAW}
ALPHAS = (0.5, 0.1, 0.05, 0.01, 1e-4)


def chances(kind: str, scale: float, reach: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """P(Z = z) for z from -reach to reach."""
    z = np.arange(-reach, reach + 1)
    if kind == "laplace":
        p = math.exp(-1 / scale)
        return np.asarray((1 - p) / (1 + p) * p ** np.abs(z))
    weights = np.exp(-((z / scale) ** 2) / 2)
    return np.asarray(weights / weights.sum())


def outside(kind: str, scale: float, weights: list[float], width: float) -> float:
    """P(|sum of a_i Z_i| > width) for two or three draws, summed over all values."""
    reach = math.ceil(scale * (40 if kind == "laplace" else 9))
    law = chances(kind, scale, reach)
    z = np.arange(-reach, reach + 1)
    sums, mass = np.zeros(1), np.ones(1)
    for weight in weights:
        sums = (sums[:, None] + weight * z[None, :]).ravel()
        mass = (mass[:, None] * law[None, :]).ravel()
    return float(mass[np.abs(sums) > width * (1 + 1e-12)].sum())


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("count", [2, 3])
def test_a_sum_of_equal_draws_has_the_least_width_that_covers(
    kind: str, scale: float, count: int
) -> None:
    (sum_of,) = combinations(np.ones((1, count)))
    for alpha in ALPHAS:
        width = width_of(LAWS[kind], scale, sum_of, alpha)
        assert outside(kind, scale, [1.0] * count, width) <= alpha
        if width >= 1:  # the reserve for windows and rounding can cost a step
            assert outside(kind, scale, [1.0] * count, width - 1) > alpha * 0.99


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", thorough_after(1, [0.3, 1.0, 3.5]))
@pytest.mark.parametrize("weights", [[1.0, 0.5], [1.0, -0.3], [0.7, 0.2, 0.1], [1.0, 0.9, -0.8]])
def test_a_weighted_sum_is_covered(kind: str, scale: float, weights: list[float]) -> None:
    (sum_of,) = combinations(np.array([weights]))
    assert sum_of.weight is None
    for alpha in ALPHAS:
        width = width_of(LAWS[kind], scale, sum_of, alpha)
        assert outside(kind, scale, weights, width) <= alpha


@pytest.mark.parametrize("count", [2, 10, 100])
def test_coarser_steps_for_large_scales_widen_intervals_only_slightly(count: int) -> None:
    """The limit is continuous Laplace noise of the same scale: 4.1147 and 8.866 scales at 95 %."""
    (sum_of,) = combinations(np.ones((1, count)))
    fine = width_of(laplace.LAW, 1000.0, sum_of, 0.05) / 1000.0
    for scale in (1e5, 1e7, 2.0**50):
        coarse = width_of(laplace.LAW, scale, sum_of, 0.05) / scale
        assert fine * 0.999 <= coarse <= fine * 1.02
    known = {2: 4.1147, 10: 8.866}
    assert count not in known or fine == pytest.approx(known[count], rel=1e-3)


def test_many_gaussian_draws_are_as_wide_as_a_normal_of_their_variance() -> None:
    for scale in (0.8, 3.0, 9.9, 10.0, 1e9):
        (sum_of,) = combinations(np.ones((1, 400)))
        width = width_of(gaussian.LAW, scale, sum_of, 0.05)
        assert width / (20 * scale) == pytest.approx(1.96, rel=0.03)


def test_weighted_sums_are_at_most_a_third_wider_than_a_normal_of_their_variance() -> None:
    weights = np.linspace(0.1, 1, 60)[None, :]
    (sum_of,) = combinations(weights)
    for kind, spare in (("laplace", 1.35), ("gaussian", 1.4)):
        for scale in (1.0, 30.0, 1e6):
            deviation = LAWS[kind].deviation(scale) * math.sqrt(sum_of.squares)
            width = width_of(LAWS[kind], scale, sum_of, 0.05)
            assert 1.9 <= width / deviation <= 1.96 * spare
            assert scale < 10 or width / deviation <= 1.96 * 1.2


def test_an_empty_sum_has_width_zero_and_a_single_draw_its_own_width() -> None:
    nothing, one, scaled = combinations(np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 0.0]]))
    assert width_of(laplace.LAW, 3.0, nothing, 0.05) == 0.0
    assert width_of(laplace.LAW, 3.0, one, 0.05) == laplace.width(3.0, 0.05)
    assert width_of(laplace.LAW, 3.0, scaled, 0.05) == laplace.width(3.0, 0.05) / 2


def test_a_confidence_beyond_the_transform_is_bounded_by_moments() -> None:
    (sum_of,) = combinations(np.ones((1, 2)))
    for kind, law in LAWS.items():
        width = width_of(law, 1.0, sum_of, 1e-11)
        assert outside(kind, 1.0, [1.0, 1.0], width) <= 1e-11
