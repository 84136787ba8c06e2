"""Noise drawn bit by bit: its law, and rounding equal to that of the real number.

Each Kolmogorov-Smirnov test raises a false alarm with probability at most 1e-6 (Massart 1990:
P(distance > t) <= 2 exp(-2 n t^2)). Scales that are 10 % off are rejected.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from scipy import special

from app.accounting.units import ATTO, PICO
from app.mechanisms.privacy_target import SmoothSensitivityParameters
from app.mechanisms.sampling.directed_decimal import both_ways
from app.mechanisms.sampling.partial_sample import PartialSample, digits_for, rounded
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.smooth_sensitivity.calibrated_noise import CalibratedNoise, NoiseBudget
from app.mechanisms.smooth_sensitivity.pure_noise import draw_student
from app.mechanisms.smooth_sensitivity.rank_statistics import NOISES
from tests.effort import thorough_except
from tests.mechanisms.sampling.test_bulk_laplace import PlannedWords

DRAWS = 16_000
REACH = math.sqrt(math.log(2 / 1e-6) / 2 / DRAWS)  # 0.0213
CASES: list[tuple[str, dict[str, Any]]] = [
    ("student_t", {"degrees": 2}),
    ("student_t", {"degrees": 3}),
    ("cauchy", {"gamma": 2.5}),
    ("laplace", {}),
    ("gaussian", {}),
    ("laplace_log_normal", {"sigma": 0.5}),
    ("uniform_log_normal", {"sigma": 0.75}),
    ("arsinh_normal", {"sigma": 0.9}),
]
CHECKED = [CASES[0], CASES[3]]  # the quickest ones


def made(name: str, wish: dict[str, Any]) -> CalibratedNoise:
    budget = NoiseBudget(PICO, (PICO, ATTO // 10**6), Fraction(1, 2))
    return NOISES[name](budget, SmoothSensitivityParameters(noise=name, **wish))


def cdf_of_size(name: str, wish: dict[str, Any]) -> Callable[[float], float]:
    """P(|Z| <= w), by formulas other than those of the sampler."""
    match name:
        case "student_t":
            return lambda w: 2 * float(special.stdtr(wish["degrees"], w)) - 1
        case "cauchy":
            g = wish["gamma"]
            return lambda w: float(special.betainc(1 / g, 1 - 1 / g, w**g / (1 + w**g)))
        case "laplace":
            return lambda w: -math.expm1(-w)
        case "gaussian":
            return lambda w: math.erf(w / math.sqrt(2))
        case "arsinh_normal":
            return lambda w: math.erf(math.asinh(wish["sigma"] * w) / wish["sigma"] / math.sqrt(2))
        case _:
            sigma, count = wish["sigma"], 200
            middles = [
                math.exp(-sigma * float(special.ndtri((i + 0.5) / count))) for i in range(count)
            ]
            if name == "laplace_log_normal":
                return lambda w: sum(-math.expm1(-w * m) for m in middles) / count
            return lambda w: sum(min(1.0, w * m) for m in middles) / count


@pytest.mark.parametrize(("name", "wish"), thorough_except(CHECKED, CASES))
def test_draws_have_the_law_of_the_noise_and_of_no_other_scale(
    name: str, wish: dict[str, Any]
) -> None:
    noise, cdf = made(name, wish), cdf_of_size(name, wish)
    system, scale = SystemRandom(), 10**6
    smooth = scale * noise.divisor
    draws = [noise.release(Fraction(0), smooth, 0, system) / scale for _ in range(DRAWS)]
    assert abs(sum(z > 0 for z in draws) / DRAWS - 0.5) < REACH
    sizes = sorted(map(abs, draws))
    places = range(0, DRAWS, 80)  # the distance at these is at most that of all

    def distance(stretch: float) -> float:
        return max(abs(cdf(sizes[i] / stretch) - (i + 0.5) / DRAWS) for i in places)

    assert distance(1.0) < REACH
    assert distance(1.1) > REACH
    assert distance(1 / 1.1) > REACH


def test_student_noise_of_two_degrees_is_rounded_like_the_real_number() -> None:
    """The bits are fixed, so the noise is a known number, here to 80 digits."""
    for seed in range(1, 200):
        word = seed * 0x9E3779B97F4A7C15 % 2**64
        words = PlannedWords(0, word, *[seed] * 40)
        drawn = draw_student(2, words)
        centre, scale = Fraction(seed, 7), Fraction(10**seed, 10**80)
        steps = rounded(centre, scale, 3, drawn.negative, drawn.size, drawn.numbers)
        with mpmath.workdps(120):
            bits = 64 * 41
            v = mpmath.mpf(word) / 2**64
            v += sum(mpmath.mpf(seed) / mpmath.mpf(2) ** (64 * k) for k in range(2, bits // 64))
            z = v * mpmath.sqrt(2) / mpmath.sqrt(1 - v * v)
            ideal = (mpmath.mpf(seed) / 7 + z * mpmath.mpf(10) ** (seed - 80)) * 8
            assert steps == int(mpmath.floor(ideal + mpmath.mpf(1) / 2))


def test_the_bounds_converge_to_the_number() -> None:
    words = PlannedWords(2**63, 1, 0, 5)
    number = PartialSample(words, whole=3)
    ends = [number.ends()]
    for _ in range(3):
        number.more()
        ends.append(number.ends())
        down, up = both_ways(digits_for(number))
        assert Fraction(number.low(down)) <= ends[-1][0] < ends[-1][1] <= Fraction(number.high(up))
    lows, highs = zip(*ends, strict=True)
    assert list(lows) == sorted(lows)
    assert list(highs) == sorted(highs, reverse=True)
    assert highs[-1] - lows[-1] == Fraction(1, 2**256)


def test_arithmetic_rounds_outwards() -> None:
    with mpmath.workdps(200):
        for i in range(1, 300):
            value = Fraction(i * 7919, 104729)
            for digits in (5, 20):
                down, up = both_ways(digits)
                low, high = down.of(value), up.of(value)
                exact = mpmath.mpf(value.numerator) / value.denominator
                for below, above, true in [
                    (down.exp(low), up.exp(high), mpmath.exp(exact)),
                    (down.falls(high), up.falls(low), mpmath.exp(-exact)),
                    (down.root(low), up.root(high), mpmath.sqrt(exact)),
                    (
                        down.power(min(low, down.of(1)), up.of(3)),
                        up.power(min(high, up.of(1)), down.of(3)),
                        min(exact, mpmath.mpf(1)) ** 3,
                    ),
                ]:
                    assert mpmath.mpf(str(below)) <= true <= mpmath.mpf(str(above))
                    assert above - below <= above * 200 * up.of(Fraction(1, 10 ** (digits - 1)))
