"""Bulk Gaussian draws: comparisons that floats cannot decide are exact, and so is the law."""

import math
from array import array
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from typing_extensions import override

from app.mechanisms.sampling.bulk_gaussian import MARGIN, GaussianDraws
from app.mechanisms.sampling.system import SystemRandom
from tests.mechanisms.noise.noise_law import chi_square_tail


class PlannedWords(SystemRandom):
    """The planned words, then the system's; counts requests for more bits."""

    def __init__(self, words: Sequence[int], more: Sequence[int] = ()) -> None:
        super().__init__()
        self.given, self.more, self.asked = list(words), list(more), 0

    @override
    def words(self, size: int) -> Sequence[int]:
        assert size == len(self.given)
        return array("Q", self.given)

    @override
    def below(self, bound: int) -> int:
        self.asked += 1
        return self.more.pop(0) if self.more else super().below(bound)


def chance(scale: float, y: int) -> mpmath.mpf:
    """exp(-(|y| - s^2 / t)^2 / (2 s^2)), t the next integer above s."""
    s, t = mpmath.mpf(scale), mpmath.mpf(float(int(scale) + 1))
    return mpmath.exp(-((abs(y) - s * s / t) ** 2) / (2 * s * s))


@pytest.mark.parametrize("scale", [0.3, 2.23, 50.0, 1e6, 2.0**34 + 0.5, 2.0**55])
@pytest.mark.parametrize("far", [0.0, 0.4, 1.0, 3.0, 6.0, 9.0])
def test_a_draw_is_kept_if_its_word_is_below_its_probability(scale: float, far: float) -> None:
    """Just below and just above, by one in 2^64 and by far more than the error of floats."""
    draws, y = GaussianDraws(scale), -int(far * scale)
    with mpmath.workdps(60):
        first = int(mpmath.floor(chance(scale, y) * 2**64))
    near = int(first * MARGIN / 4)
    words = [first - 1, first + 1, first - near - 1, first + near + 1, 0]
    words = [min(max(word, 0), 2**64 - 1) for word in words]
    kept = set(draws._kept([y] * len(words), PlannedWords(words)))
    for place, word in enumerate(words):
        assert word == first or (place in kept) == (word < first)


def test_a_word_equal_so_far_requests_more_bits() -> None:
    draws, y = GaussianDraws(2.23), 3
    with mpmath.workdps(80):
        whole = int(mpmath.floor(chance(2.23, y) * 2**128))
    first, second = divmod(whole, 2**64)
    for more, keeps in ((second - 1, True), (second + 1, False)):
        noise = PlannedWords([first], [more])
        assert (len(draws._kept([y], noise)) == 1) is keeps
        assert noise.asked == 1


def test_a_draw_far_beyond_floats_is_decided_exactly() -> None:
    draws = GaussianDraws(1.0)
    assert list(draws._kept([40, -40, 0], PlannedWords([0, 2**63, 0], [5] * 40))) == [2]


def p_value(draws: list[int], scale: float) -> float:
    """P value of chi-square over all frequent values, with all others in one bin."""
    reach = max(1, round(2.5 * scale))
    weights = {z: math.exp(-(z * z) / (2 * scale * scale)) for z in range(-40, 41)}
    total = sum(weights.values())
    values, counts = np.unique(np.clip(draws, -reach, reach), return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    statistic = 0.0
    for z in range(-reach, reach + 1):
        mass = sum(w for v, w in weights.items() if max(-reach, min(v, reach)) == z) / total
        statistic += (seen.get(z, 0) - len(draws) * mass) ** 2 / (len(draws) * mass)
    return chi_square_tail(statistic, 2 * reach)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.6, 1.0, 2.23, 4.0])
def test_single_values_have_their_frequencies(scale: float) -> None:
    """200,000 draws; a false alarm has probability 1e-6. A scale a tenth off is rejected."""
    draws = GaussianDraws(scale).draw(200_000, SystemRandom())
    assert len(draws) == 200_000
    assert p_value(draws, scale) > 1e-6
    assert p_value(draws, scale * 1.1) < 1e-6
    assert p_value(draws, scale * 0.9) < 1e-6
