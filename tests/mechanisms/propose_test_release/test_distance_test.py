"""The threshold of a noisy distance test: it has golden values, and no lower one would do."""

import math
from decimal import Decimal
from typing import Any

import pytest

from app.accounting.losses import pure_loss
from app.accounting.units import ATTO, PICO
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.propose_test_release import distance_test
from app.mechanisms.propose_test_release.distance_test import DistanceTest
from app.mechanisms.sampling.system import SystemRandom
from tests.mechanisms.noise.noise_law import at_least, chi_square_tail, lower_chance, upper_chance


def made(epsilon: str, delta: str) -> DistanceTest:
    return distance_test.prepare(
        PrivacyTarget(epsilon=Decimal(epsilon)), int(Decimal(delta) * ATTO)
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "threshold"), [("1", "1e-6", 13), ("0.5", "1e-5", 22)]
)
def test_thresholds_are_the_golden_ones(epsilon: str, delta: str, threshold: int) -> None:
    """The smallest T with e^(-epsilon (T + 1)) / (1 + e^-epsilon) <= delta."""
    assert made(epsilon, delta).threshold == threshold


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "7"])
@pytest.mark.parametrize("delta", ["0.2", "1e-3", "1e-9", "1e-17"])
def test_the_threshold_is_the_least_within_its_failure_probability(
    epsilon: str, delta: str
) -> None:
    test = made(epsilon, delta)

    def fails(threshold: int) -> float:
        e = float(epsilon)
        return math.exp(-e * (threshold + 1)) / (1 + math.exp(-e))

    assert fails(test.threshold) <= float(delta) * (1 + 1e-9)
    assert test.threshold == 0 or fails(test.threshold - 1) > float(delta)
    assert test.failure / ATTO == pytest.approx(fails(test.threshold), rel=1e-9, abs=1.1 / ATTO)
    assert test.failure <= int(Decimal(delta) * ATTO)


def test_pass_probabilities_are_the_golden_ones() -> None:
    """At epsilon 1 and T = 13, d = 19 passes with probability 0.998188 and d = 0 with
    6.08e-7.
    """
    test = made("1", "1e-6")
    assert test.failure / ATTO == pytest.approx(6.08e-7, rel=1e-3)
    runs, noise = 20_000, SystemRandom()
    passed = sum(test.passed(19, noise) for _ in range(runs))
    assert lower_chance(runs, passed, 1e-6) <= 0.998188 <= upper_chance(runs, passed, 1e-6)
    assert not any(test.passed(0, noise) for _ in range(1000))


@pytest.mark.statistical
def test_the_pass_rate_fits_the_charge_and_rejects_a_tenth_more_or_less_noise() -> None:
    """Run 30,000 tests on either side of the threshold, two scales away, where a tail depends most
    on its scale.

    False alarms: 1e-6. A scale that is 10 % off escapes with probability below 1e-3.
    """
    test, noise, runs, away = made("0.2", "1e-4"), SystemRandom(), 30_000, 10
    assert test.scale == 5.0
    # Below the threshold: passed if Z >= away. Above it: failed if Z <= -away.
    below = sum(test.passed(test.threshold + 1 - away, noise) for _ in range(runs))
    above = sum(not test.passed(test.threshold + away, noise) for _ in range(runs))

    def p_value(scale: float) -> float:
        chance = at_least(scale, away)
        hits = [(each - runs * chance) ** 2 / (runs * chance) for each in (below, above)]
        return chi_square_tail(math.fsum(hits) / (1 - chance), 2)

    assert p_value(5.0) > 1e-6
    assert p_value(5.5) < 1e-6
    assert p_value(4.5) < 1e-6


def test_the_stated_distance_passes_with_its_stated_probability() -> None:
    """False alarm 1e-6. For every T, a distance one less would pass less often."""
    noise, runs = SystemRandom(), 20_000
    for epsilon in ("0.2", "1", "3"):
        test = made(epsilon, "1e-4")
        d = test.likely_from(0.9)
        passed = sum(test.passed(d, noise) for _ in range(runs))
        assert upper_chance(runs, passed, 1e-6) >= 0.9
        below = 1 - math.exp(-float(epsilon) * (d - test.threshold)) / (
            1 + math.exp(-float(epsilon))
        )
        assert below >= 0.9 - 1e-9
        assert test.enough > d


def test_the_loss_adds_both_parts_and_has_one_delta() -> None:
    test = made("1", "1e-6")
    released = pure_loss(PICO // 2).replace(delta=10**12 // 2)
    both = test.then(released)
    assert both.epsilon == PICO * 3 // 2
    assert both.delta == max(released.delta, test.failure)
    assert both.failure == test.failure
    assert both.curve == tuple(a + b for a, b in zip(test.loss.curve, released.curve, strict=True))
    assert test.alone.epsilon == PICO
    assert test.alone.delta == test.alone.failure == test.failure


@pytest.mark.parametrize("wish", [{"epsilon": Decimal("1e6")}, {"rho": Decimal("1e-13")}])
def test_a_loss_that_allows_no_noise_or_no_test_is_refused(wish: Any) -> None:
    with pytest.raises(Exception, match=r"too (large|small)"):
        distance_test.prepare(PrivacyTarget(**wish), ATTO // 100)
