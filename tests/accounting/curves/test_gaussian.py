"""Gaussian differential privacy against 80 digits of mpmath, always rounded to the safe side."""

from decimal import Decimal
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.curves.gaussian import (
    INFINITY,
    delta_at,
    epsilon_at,
    mu_within,
    normal_cdf,
    normal_quantile,
    pure_mu,
)
from tests.effort import examples

mp.mp.dps = 80
NEAR = mp.mpf("1e-18")


def true_delta(epsilon: object, mu: object) -> Any:
    e, m = mp.mpf(str(epsilon)), mp.mpf(str(mu))
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def test_golden_values_are_reproduced() -> None:
    assert str(normal_cdf(Decimal("1.96"))).startswith("0.975002104851779565863415730959")
    assert str(normal_quantile(Decimal("0.975"))).startswith("1.95996398454005423552")
    assert normal_quantile(Decimal("0.5")) == 0
    assert normal_quantile(Decimal("0.025")) == normal_quantile(Decimal("0.975")).copy_negate()
    # dp-accounting 0.6.0: one Gaussian of mu 1 (there sigma 2, sensitivity doubled) at 1e-6
    assert str(epsilon_at(Decimal("1e-6"), Decimal(1))).startswith("4.8865")
    # 560 answers of sigma 100 fit (1, 1e-6), and 561 do not
    assert 560 < (100 * mu_within(Decimal(1), Decimal("1e-6"))) ** 2 < 561


@pytest.mark.parametrize("x", ["-40", "-6", "-4.9", "-1", "-0.001", "0", "0.3", "3", "5.1", "12"])
def test_the_normal_law_agrees_with_mpmath(x: str) -> None:
    shown, true = mp.mpf(str(normal_cdf(Decimal(x)))), mp.ncdf(mp.mpf(x))
    assert abs(shown / true - 1) < mp.mpf("1e-37")


@pytest.mark.parametrize("mu", ["1e-6", "0.001", "0.1", "1", "3", "10", "100"])
@pytest.mark.parametrize("epsilon", ["0", "1e-9", "0.01", "1", "10", "500"])
def test_delta_is_never_too_small_and_hardly_too_large(mu: str, epsilon: str) -> None:
    with mp.workdps(300):
        true = true_delta(epsilon, mu)
    if true < mp.mpf("1e-9000"):
        assert delta_at(Decimal(epsilon), Decimal(mu)) > 0
        return
    shown = mp.mpf(str(delta_at(Decimal(epsilon), Decimal(mu))))
    assert 0 <= shown / true - 1 < mp.mpf("2e-20")


@pytest.mark.parametrize("mu", ["1e-6", "0.01", "0.5", "2", "30", "1000"])
@pytest.mark.parametrize("delta", ["0.9", "0.1", "1e-3", "1e-6", "1e-18", "1e-100"])
def test_epsilon_is_the_least_that_fits(mu: str, delta: str) -> None:
    shown = epsilon_at(Decimal(delta), Decimal(mu))
    assert true_delta(shown, mu) <= mp.mpf(delta)
    if shown > 0:
        assert true_delta(mp.mpf(str(shown)) * (1 - NEAR), mu) > mp.mpf(delta)


@pytest.mark.parametrize("epsilon", ["0", "1e-6", "0.1", "1", "10", "1000"])
@pytest.mark.parametrize("delta", ["0.9", "1e-3", "1e-6", "1e-12", "1e-30"])
def test_mu_is_the_largest_that_fits(epsilon: str, delta: str) -> None:
    shown = mu_within(Decimal(epsilon), Decimal(delta))
    assert true_delta(epsilon, shown) <= mp.mpf(delta)
    assert true_delta(epsilon, mp.mpf(str(shown)) * (1 + NEAR)) > mp.mpf(delta)


@pytest.mark.parametrize("e", ["1e-12", "1e-6", "0.01", "0.1", "1", "5", "20", "40"])
def test_the_mu_of_a_pure_mechanism_is_never_too_small(e: str) -> None:
    shown = mp.mpf(str(pure_mu(Decimal(e))))
    tail = 1 / (1 + mp.exp(mp.mpf(e)))
    assert mp.ncdf(-shown / 2) <= tail < mp.ncdf(-shown * (1 - NEAR) / 2)
    # At the kink of the pure trade-off curve both types of error equal this tail.
    assert pure_mu(Decimal(41)) == INFINITY


@examples(50)
@given(
    st.decimals("0.000001", "20", places=6),
    st.decimals("0.000001", "20", places=6),
    st.sampled_from(["0.3", "1e-5", "1e-12"]),
)
def test_more_mu_never_costs_less(first: Decimal, second: Decimal, delta: str) -> None:
    low, high = sorted((first, second))
    assert epsilon_at(Decimal(delta), low) <= epsilon_at(Decimal(delta), high)
    assert delta_at(Decimal(1), low) <= delta_at(Decimal(1), high)
    assert pure_mu(low) <= pure_mu(high)


@pytest.mark.parametrize("nonsense", ["-1", "0", "1", "1.5", "NaN"])
def test_invalid_numbers_are_refused(nonsense: str) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        epsilon_at(Decimal(nonsense), Decimal(1))
    with pytest.raises((ValueError, ArithmeticError)):
        mu_within(Decimal(1), Decimal(nonsense))
    with pytest.raises((ValueError, ArithmeticError)):
        delta_at(Decimal("NaN"), Decimal(1))
