"""Each noise at its worst neighbours: numeric log-ratios, hockey sticks and Rényi divergences.

Neighbours are Z and theta + e^lambda Z, |lambda| <= beta, |theta| <= s min(1, e^lambda).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

from app.accounting.units import ATTO, PICO
from app.errors import Invalid
from app.mechanisms.privacy_target import CannotServe, SmoothSensitivityParameters
from app.mechanisms.smooth_sensitivity import approximate_noise, pure_noise
from app.mechanisms.smooth_sensitivity import zcdp_noise as concentrated
from app.mechanisms.smooth_sensitivity.calibrated_noise import (
    CalibratedNoise,
    NoiseBudget,
    even_spread,
)
from app.mechanisms.smooth_sensitivity.rank_statistics import NOISES
from tests.effort import thorough_after

Numbers = np.ndarray[Any, np.dtype[np.float64]]
ONE = NoiseBudget(PICO, (PICO, ATTO // 10**6), Fraction(1, 2))
PURE = ["student_t", "cauchy"]
WITH_DELTA = ["laplace", "gaussian"]
CONCENTRATED = ["laplace_log_normal", "uniform_log_normal", "arsinh_normal"]


def made(name: str, budget: NoiseBudget = ONE, **wish: Any) -> CalibratedNoise:
    return NOISES[name](budget, SmoothSensitivityParameters(noise=name, **wish))


def budget(epsilon: str, delta: str = "1e-6") -> NoiseBudget:
    e = Fraction(epsilon)
    return NoiseBudget(int(e * PICO), (int(e * PICO), int(Fraction(delta) * ATTO)), e * e / 2)


# Golden constants: computed once from the closed forms in the docstrings of the noises.


@pytest.mark.parametrize(
    ("epsilon", "beta", "degrees", "expected"),
    [
        ("0.5", "0.125", 2, 0.39837948),
        ("1", "0.25", 2, 0.85882004),
        ("2", "0.5", 2, 2.0284304),
        ("1", "0.5", 1, 1.0421906),
        ("1", str(Fraction(1, 6)), 3, 0.72496245),
    ],
)
def test_student_noise_has_the_golden_divisors(
    epsilon: str, beta: str, degrees: int, expected: float
) -> None:
    found = pure_noise.student_divisor(Fraction(epsilon), Fraction(beta), degrees)
    assert float(found) == pytest.approx(expected, rel=1e-7)


def test_student_noise_has_the_golden_half_widths() -> None:
    found = made("student_t", degrees=2, beta=0.25).half_width(0.95)
    assert found == pytest.approx(5.0099585, rel=1e-7)
    found = made("student_t", budget("0.5"), degrees=2, beta=0.125).half_width(0.95)
    assert found == pytest.approx(10.800387, rel=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "beta", "expected"),
    [("1", "0.03", 0.7376108), ("1", "0.05", 0.53207296), ("0.5", "0.015", 0.38026449)],
)
def test_laplace_noise_has_the_golden_divisors(epsilon: str, beta: str, expected: float) -> None:
    delta = Fraction(1, 10**6)
    found = approximate_noise.laplace_divisor(Fraction(epsilon), delta, Fraction(beta))
    assert float(found) == pytest.approx(expected, rel=1e-7)


def test_concentrated_noises_have_the_golden_constants() -> None:
    half = Fraction(1, 2)
    stretch, slope = concentrated.log_normal_stretch, concentrated.laplace_slope
    sigma = Fraction("0.30919782")
    found = concentrated.divisor(half, Fraction(1, 10), sigma, stretch, slope)
    assert float(found) == pytest.approx(0.58619318, rel=1e-7)
    deviation = math.sqrt(2) * math.exp(float(sigma) ** 2) / float(found)
    assert deviation == pytest.approx(2.65457, rel=1e-5)
    # Rounded up, by at most a few millionths.
    for sigma, expected in [(Fraction("0.6"), 2.0259587), (Fraction(math.sqrt(2)), 6.2576852)]:
        found_slope = float(concentrated.uniform_slope(sigma))
        assert expected * (1 - 1e-7) <= found_slope <= expected * (1 + 1e-5)
    # The published stretch is sqrt(t (t/s^2 + 1/s + 2)). Ours is proven, and smaller.
    t, s = 0.05, 0.7
    published = math.sqrt(t * (t / s**2 + 1 / s + 2))
    steep = float(concentrated.arsinh_slope(Fraction("0.7")))
    assert (1 - published) / steep == pytest.approx(0.44521884, rel=1e-7)
    assert t * float(concentrated.arsinh_stretch(Fraction("0.7"))) < published


def test_the_constant_of_the_arsinh_stretch_is_above_its_maximum() -> None:
    """T^2 + x T (1 - T^2), T = tanh x: below 1.08 on a grid of 1e-4, and its slope is below 3."""
    x = np.arange(0.0, 30.0, 1e-4)
    tanh = np.tanh(x)
    assert np.max(tanh**2 + x * tanh * (1 - tanh**2)) + 3e-4 < 1.08
    assert np.max(np.abs(x / np.cosh(x))) < 2 / 3


# Densities, up to a constant that is equal for both neighbours.


def density(noise: CalibratedNoise) -> Callable[[Numbers], Numbers]:
    """Logarithm of the density."""
    parameters = noise.parameters
    match noise.name:
        case "student_t":
            d = parameters["degrees"]
            return lambda z: -(d + 1) / 2 * np.log1p(z * z / d)
        case "cauchy":
            g = parameters["gamma"]
            return lambda z: -np.log1p(np.abs(z) ** g)
        case "laplace":
            return lambda z: -np.abs(z) - math.log(2)
        case "gaussian":
            return lambda z: -z * z / 2 - math.log(2 * math.pi) / 2
        case "laplace_log_normal":
            sigma = parameters["sigma"]
            points = np.linspace(-12, 50, 621)
            logs = -points * points / 2 - sigma * points
            logs -= math.log(np.sum(np.exp(-points * points / 2)) * 2)
            falls = np.exp(-sigma * points)

            def log_normal(z: Numbers) -> Numbers:
                terms = logs[:, None] - np.abs(z)[None, :] * falls[:, None]
                top = terms.max(axis=0)
                return np.asarray(np.log(np.exp(terms - top).sum(axis=0)) + top)

            return log_normal
        case "uniform_log_normal":
            sigma = parameters["sigma"]
            return lambda z: np.asarray(
                special.log_ndtr(-np.log(np.abs(z)) / sigma - sigma) + sigma**2 / 2 - math.log(2)
            )
        case _:
            sigma = parameters["sigma"]

            def arsinh(z: Numbers) -> Numbers:
                y = np.arcsinh(sigma * z) / sigma
                logs = -y * y / 2 - np.log(np.cosh(sigma * y)) - math.log(2 * math.pi) / 2
                return np.asarray(logs)

            return arsinh


def neighbours(noise: CalibratedNoise, s: float) -> list[tuple[float, float]]:
    beta = float(noise.beta)
    shifts = [(lam, s * min(1.0, math.exp(lam))) for lam in np.linspace(-beta, beta, 9)]
    return [(lam, theta * part) for lam, theta in shifts for part in (0.0, 0.5, 1.0)]


def line(reach: float, count: int = 60_001) -> Numbers:
    """Points in both directions, dense near 0 and as far as e^reach."""
    half = np.exp(np.linspace(-12.0, reach, count))
    return np.concatenate([-half[::-1], half])


def worst_log_ratio(noise: CalibratedNoise, s: float) -> float:
    log, z = density(noise), line(25.0)
    here, worst = log(z), 0.0
    for lam, theta in neighbours(noise, s):
        there = log((z - theta) * math.exp(-lam)) - lam
        worst = max(worst, float(np.max(np.abs(here - there))))
    return worst


@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_pure_noise_is_within_epsilon_at_every_neighbour(name: str, epsilon: str) -> None:
    wishes: list[dict[str, Any]] = [{}, {"beta": float(epsilon) / 8}]
    wishes += [{"degrees": d} for d in (1, 2, 3, 7)] if name == "student_t" else []
    wishes += [{"gamma": g} for g in (1.3, 2.0, 4.0)] if name == "cauchy" else []
    for wish in wishes:
        noise = made(name, budget(epsilon), **wish)
        assert worst_log_ratio(noise, float(noise.divisor)) <= float(epsilon) * (1 + 1e-9)


def test_student_noise_attains_its_epsilon_so_a_larger_loss_would_be_caught() -> None:
    noise = made("student_t", degrees=2, beta=0.25)
    s = float(noise.divisor)
    assert worst_log_ratio(noise, s) >= 0.999
    assert worst_log_ratio(noise, 1.05 * s) > 1.0
    cauchy = made("cauchy", gamma=2.0, beta=0.4)
    assert worst_log_ratio(cauchy, 2 * float(cauchy.divisor)) > 1.0


def hockey_stick(noise: CalibratedNoise, s: float, epsilon: float) -> float:
    """Largest hockey-stick divergence over neighbours and directions, by summing rectangles."""
    log = density(noise)
    z = np.linspace(-60.0, 60.0, 600_001)
    width, here, worst = z[1] - z[0], log(z), 0.0
    for lam, theta in neighbours(noise, s):
        there = log((z - theta) * math.exp(-lam)) - lam
        for one, two in ((here, there), (there, here)):
            gain = np.exp(one) * -np.expm1(np.minimum(0.0, epsilon + two - one))
            worst = max(worst, float(np.sum(gain)) * width)
    return worst


@pytest.mark.parametrize("name", WITH_DELTA)
@pytest.mark.parametrize(
    ("epsilon", "delta"), thorough_after(1, [("1", "1e-6"), ("0.5", "1e-4"), ("3", "1e-3")])
)
def test_noise_with_a_delta_is_within_it_at_every_neighbour(
    name: str, epsilon: str, delta: str
) -> None:
    wishes: list[dict[str, Any]] = [{}, {"beta": float(epsilon) / 100}]
    for wish in wishes:
        noise = made(name, budget(epsilon, delta), **wish)
        found = hockey_stick(noise, float(noise.divisor), float(epsilon))
        assert found <= float(delta) * (1 + 1e-4)


def test_laplace_noise_attains_its_delta_so_a_larger_loss_would_be_caught() -> None:
    noise = made("laplace", budget("1", "1e-4"), beta=0.06)
    s = float(noise.divisor)
    assert hockey_stick(noise, s, 1.0) >= 0.99e-4
    assert hockey_stick(noise, 1.1 * s, 1.0) > 1e-4
    gaussian = made("gaussian", budget("1", "1e-4"))
    assert hockey_stick(gaussian, 1.5 * float(gaussian.divisor), 1.0) > 1e-4


def renyi(noise: CalibratedNoise, s: float, order: float) -> float:
    """Largest Rényi divergence over neighbours, in units of order * rho.

    It sums over points that cover the divergence of this order. Both laws are evaluated on the same
    points.
    """
    log, sigma = density(noise), noise.parameters["sigma"]
    z = line(order * float(noise.beta) + 10 * sigma + 4.0, 1_001)
    weights = np.log(np.gradient(z))
    here, worst = _normed(log(z) + weights), 0.0
    for lam, theta in neighbours(noise, s):
        there = _normed(log((z - theta) * math.exp(-lam)) + weights)
        for one, two in ((here, there), (there, here)):
            total = float(special.logsumexp(order * one + (1 - order) * two))
            worst = max(worst, total / (order - 1))
    return worst / (order * float(noise.loss.rho / PICO))


def _normed(logs: Numbers) -> Numbers:
    return np.asarray(logs - special.logsumexp(logs))


@pytest.mark.parametrize("name", CONCENTRATED)
@pytest.mark.parametrize("order", thorough_after(1, [1.25, 2.0, 8.0, 32.0]))
def test_concentrated_noise_is_within_rho_at_every_neighbour(name: str, order: float) -> None:
    wishes: list[dict[str, Any]] = [{}, {"beta": 0.05}, {"beta": 0.3, "sigma": 0.9}]
    for wish in wishes:
        noise = made(name, **wish)
        assert renyi(noise, float(noise.divisor), order) <= 1.0


@pytest.mark.parametrize("name", CONCENTRATED)
def test_concentrated_noise_that_is_too_small_is_caught(name: str) -> None:
    noise = made(name)
    assert max(renyi(noise, 4 * float(noise.divisor), order) for order in (2.0, 8.0, 32.0)) > 1.0


def test_the_arsinh_stretch_alone_is_within_its_bound() -> None:
    for sigma in (0.2, 0.7, 2.0):
        for t in (0.05, 0.5):
            noise = made("arsinh_normal", budget("4"), sigma=sigma, beta=t)
            allowed = float(concentrated.arsinh_stretch(Fraction(sigma))) * t
            for order in (1.25, 4.0, 64.0):
                assert renyi(noise, 0.0, order) * 8.0 <= allowed**2 / 2


# Defaults and refusals


@pytest.mark.parametrize("name", list(NOISES))
def test_the_default_is_no_worse_than_any_named_noise(name: str) -> None:
    noise = made(name)
    assert noise.even == pytest.approx(noise.half_width(0.95) * even_spread(float(noise.beta)))
    for part in (0.5, 0.8, 1.25):
        other = made(name, beta=float(noise.beta) * part)
        assert noise.even <= other.even * 1.01


def test_even_spread_is_the_smooth_sensitivity_of_evenly_spread_values() -> None:
    for beta in (0.05, 0.3, 0.9, 2.0):
        exact = max((k + 1) * math.exp(-beta * k) for k in range(1000))
        assert exact <= even_spread(beta) * (1 + 1e-9) <= exact * 1.2


@pytest.mark.parametrize(
    ("name", "wish", "pointer"),
    [
        ("cauchy", {"gamma": 1.0}, "/mechanism/gamma"),
        ("cauchy", {"gamma": 0.5}, "/mechanism/gamma"),
        ("cauchy", {"gamma": math.nan}, "/mechanism/gamma"),
        ("cauchy", {"gamma": 4.0, "beta": 0.34}, "/mechanism/beta"),
        ("student_t", {"degrees": 2, "beta": 0.5}, "/mechanism/beta"),
        ("student_t", {"beta": -0.1}, "/mechanism/beta"),
        ("laplace", {"beta": 1.0}, "/mechanism/beta"),
        ("gaussian", {"beta": 0.0}, "/mechanism/beta"),
        ("arsinh_normal", {"sigma": 0.0}, "/mechanism/sigma"),
        ("laplace_log_normal", {"sigma": 0.5, "beta": 0.5}, "/mechanism/beta"),
    ],
)
def test_an_unsupported_parameter_of_a_noise_is_named(
    name: str, wish: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        made(name, **wish)
    assert refused.value.fields[0].pointer == pointer


@pytest.mark.parametrize("name", WITH_DELTA + CONCENTRATED)
def test_noise_that_needs_a_delta_or_a_rho_reports_it(name: str) -> None:
    with pytest.raises(CannotServe):
        made(name, NoiseBudget(PICO, None, None))


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-3", "100"])
def test_divisors_hold_at_extreme_prices(epsilon: str) -> None:
    noise = made("student_t", budget(epsilon), degrees=2)
    e, b, s = float(epsilon), float(noise.beta), float(noise.divisor)
    assert s <= 2 * math.sqrt(2) * math.sinh(e / 3) * (1 + 1e-12)
    assert 0 < b < e / 2
