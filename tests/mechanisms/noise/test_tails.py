"""Tails of integer noise: exact to any number of digits; draws conditioned on reaching a bar."""

import math
from collections.abc import Callable
from decimal import Decimal

import mpmath
import numpy as np
import pytest
from typing_extensions import override

from app.mechanisms.noise import gaussian, laplace
from app.mechanisms.noise.additive import NoiseDistribution
from app.mechanisms.noise.tails import WIDE, GaussianTail, LaplaceTail, Tail
from app.mechanisms.private_keys.counts_above import below_chance, sample_counts_above
from app.mechanisms.sampling.system import SystemRandom
from tests.mechanisms.noise.noise_law import FALSE_ALARM, chi_square_tail

NOISE = SystemRandom()
SCALES = [0.1, 0.5, 1.0, 1 / 3, 7.25, 60.0]


def laplace_true(scale: float, k: int) -> mpmath.mpf:
    return mpmath.exp(-k / mpmath.mpf(scale)) / (1 + mpmath.exp(-1 / mpmath.mpf(scale)))


def gaussian_true(scale: float, k: int) -> mpmath.mpf:
    s = mpmath.mpf(scale)
    last = k + math.ceil(40 * scale) + 60
    terms = [mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * s * s)) for z in range(last)]
    return mpmath.fsum(terms[k:]) / (2 * mpmath.fsum(terms) - 1)


LAWS: dict[
    str, tuple[Callable[[float], Tail], Callable[[float, int], mpmath.mpf], NoiseDistribution]
] = {
    "laplace": (LaplaceTail, laplace_true, laplace.LAW),
    "gaussian": (GaussianTail, gaussian_true, gaussian.LAW),
}
BOTH = pytest.mark.parametrize("law", LAWS)


@BOTH
@pytest.mark.parametrize("scale", SCALES)
def test_the_tail_lies_between_two_nearly_equal_decimals(law: str, scale: float) -> None:
    made, true, _ = LAWS[law]
    with mpmath.workdps(150):
        for k in (1, 2, 3, math.ceil(5 * scale), math.ceil(9 * scale)):
            for digits in (60, 120):
                low, high = made(scale).between(k, digits)
                exact = true(scale, k)
                assert mpmath.mpf(str(low)) <= exact <= mpmath.mpf(str(high))
                assert high - low <= high * Decimal(10) ** (21 - digits)


def test_a_far_gaussian_tail_is_almost_zero_and_more_digits_resolve_it() -> None:
    tail = GaussianTail(1.0)
    with mpmath.workdps(400):
        low, high = tail.between(25)
        assert low == 0
        assert gaussian_true(1.0, 25) <= mpmath.mpf(str(high)) < 1e-50
        low, high = tail.between(25, 240)
        assert mpmath.mpf(str(low)) <= gaussian_true(1.0, 25) <= mpmath.mpf(str(high))
        assert low > 0


def test_beyond_the_widest_sum_a_normal_law_bounds_the_tail() -> None:
    wide, narrow = GaussianTail(WIDE * 1.0001), GaussianTail(WIDE)
    assert not wide.exact
    assert wide.between(1)[1] >= Decimal("0.5")
    for k in (10, 3000, 5000):
        assert narrow.between(k)[1] <= wide.between(k)[1] <= narrow.between(k - 2)[1]


@BOTH
@pytest.mark.parametrize("scale", [*SCALES, 5000.0, 1e9])
@pytest.mark.parametrize("limit", ["0.4", "1e-3", "1e-9", "1e-23"])
def test_the_reach_is_the_least_with_a_tail_within_the_limit(
    law: str, scale: float, limit: str
) -> None:
    tail = LAWS[law][0](scale)
    k = tail.reach(Decimal(limit))
    assert tail.between(k)[1] <= Decimal(limit)
    assert k == 1 or tail.between(k - 1)[1] > Decimal(limit)


@BOTH
def test_the_rough_bound_is_above_the_tail(law: str) -> None:
    made, true, _ = LAWS[law]
    for scale in SCALES:
        ks = [k for k in (1, 2, 3, 5, 20, 121, 150) if k > 2 * scale]
        for k, bound in zip(ks, made(scale).bound(np.array(ks, dtype=np.float64)), strict=True):
            assert true(scale, k) <= mpmath.mpf(float(bound)) * (1 + 1e-9) + 2.0**-60


# Counts that reach a bar


def fit(values: list[int], chances: list[float]) -> float:
    """P value of the frequencies of the values 0, 1, ...: chi-square."""
    size = len(values)
    counts = np.bincount(values, minlength=len(chances))
    statistic = sum(
        (have - size * want) ** 2 / (size * want)
        for have, want in zip(counts.tolist(), chances, strict=True)
    )
    degrees = len(chances) - 1
    return chi_square_tail(statistic, degrees - degrees % 2)


def chances_of(law: str, scale: float, short: int, outcomes: int) -> list[float]:
    """Probabilities of "not released" and of an excess of 0, 1, ...; the last includes all larger
    ones.
    """
    with mpmath.workdps(40):

        def reaches(k: int) -> float:
            true = LAWS[law][1]
            return float(true(scale, k)) if k >= 1 else 1.0 - float(true(scale, 1 - k))

        tails = [reaches(short + j) for j in range(outcomes - 1)]
    by_excess = [a - b for a, b in zip(tails, [*tails[1:], 0.0], strict=True)]
    return [1.0 - tails[0], *by_excess]


def excesses(law: str, scale: float, short: int, outcomes: int, size: int) -> list[int]:
    made, _, noise = LAWS[law]
    counts = np.full(size, 1000 - short, dtype=np.int64)
    released = dict(sample_counts_above(counts, 1000, law=noise, tail=made(scale), noise=NOISE))
    assert all(noisy >= 1000 for noisy in released.values())
    return [
        min(released[place] - 999, outcomes - 1) if place in released else 0
        for place in range(size)
    ]


CASES = [
    # law, scale, distance below the bar, distinct outcomes, draws
    ("laplace", 2.0, -3, 7, 30_000),
    ("laplace", 2.0, 3, 7, 30_000),
    ("laplace", 2.0, 6, 7, 400_000),  # decided by the bits of a uniform number
    ("laplace", 10.0, 25, 11, 400_000),
    ("gaussian", 3.0, -2, 7, 30_000),
    ("gaussian", 3.0, 4, 7, 30_000),
    ("gaussian", 3.0, 8, 5, 800_000),
    ("gaussian", 8.0, 18, 7, 800_000),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("law", "scale", "short", "outcomes", "size"), CASES)
def test_counts_that_reach_the_bar_have_the_law_of_noise_on_every_count(
    law: str, scale: float, short: int, outcomes: int, size: int
) -> None:
    """False alarms: 1e-6 each. The same draws reject scales that are 10 % off."""
    values = excesses(law, scale, short, outcomes, size)
    assert fit(values, chances_of(law, scale, short, outcomes)) > FALSE_ALARM
    for wrong in (0.9, 1.1):
        assert fit(values, chances_of(law, wrong * scale, short, outcomes)) < FALSE_ALARM


def test_noise_that_reaches_the_bar_exactly_is_released() -> None:
    """The comparison is `>=`: with noise of always 2, a count of 8 reaches 10 and one of 7 does
    not.
    """

    class Always(SystemRandom):
        @override
        def discrete_laplace(self, scale: float, size: int) -> list[int]:
            return [2] * size

    counts = np.array([7, 8, 9], dtype=np.int64)
    found = sample_counts_above(counts, 10, law=laplace.LAW, tail=LaplaceTail(5.0), noise=Always())
    assert list(found) == [(1, 10), (2, 11)]


@BOTH
def test_bits_are_drawn_until_the_comparison_is_decided(law: str) -> None:
    """The first 64 bits equal those of the tail, so that only later bits can decide."""
    tail = LAWS[law][0](3.0)
    with mpmath.workdps(150):
        bits = int(mpmath.floor(LAWS[law][1](3.0, 9) * mpmath.mpf(2) ** 128))

    class Next(SystemRandom):
        def __init__(self, word: int) -> None:
            super().__init__()
            self.word = word

        @override
        def below(self, bound: int) -> int:
            assert bound == 1 << 64
            return self.word

    first, second = divmod(bits, 1 << 64)
    assert below_chance(first, 9, tail, Next(second - 1))
    assert not below_chance(first, 9, tail, Next(second + 1))
    assert below_chance(first - 1, 9, tail, NOISE)
    assert not below_chance(first + 1, 9, tail, NOISE)


def test_a_nearly_impossible_release_does_not_happen_and_takes_no_time() -> None:
    counts = np.full(10_000, 1, dtype=np.int64)
    for tail, law in ((LaplaceTail(0.001), laplace.LAW), (GaussianTail(0.1), gaussian.LAW)):
        assert list(sample_counts_above(counts, 100_000, law=law, tail=tail, noise=NOISE)) == []
    assert not below_chance(1, 100_000, LaplaceTail(0.001), NOISE)
