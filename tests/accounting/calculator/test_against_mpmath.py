"""Every curve, conversion and accountant against its definition in 50 digits.

Results are never below it, and above by no more than the last digit shown, unless the bound is
known to be loose.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext

import mpmath as mp
import pytest

from app.accounting.calculator.concentrated import delta_of, epsilon_of
from app.accounting.calculator.event_list import GRID
from app.accounting.calculator.events import Event
from app.accounting.calculator.log_factorial import log_binomial
from app.accounting.precise import CONTEXT
from tests.accounting.calculator import reference
from tests.accounting.calculator.cases import (
    concentrated,
    discrete_gaussian,
    discrete_laplace,
    epsilon,
    exponential,
    gaussian,
    generic,
    laplace,
    pure,
    response,
    results,
    sampled,
)
from tests.accounting.calculator.reference import Number, Real

ORDERS = ["1.25", "2", "3.5", "10", "64"]
EPSILONS = ["0.001", "0.1", "1", "4"]
ONE_PLACE = Real("1.01e-12")


def real(value: object) -> Number:
    return Real(str(value))


# Curves

CURVES: dict[str, tuple[Callable[[str], Event], Callable[[Number, Number], Number]]] = {
    "pure": (pure, lambda e, a: reference.randomized_response(e, 2, a)),
    "laplace": (laplace, reference.laplace),
    "response of 5": (
        lambda e: response(e, 5),
        lambda e, a: reference.randomized_response(e, 5, a),
    ),
    "exponential": (exponential, reference.bounded_range),
    "gaussian": (
        lambda e: gaussian(str(1 / Decimal(e))),
        lambda e, a: a * e * e / 2,
    ),
    "discrete gaussian": (
        lambda e: discrete_gaussian(str(1 / Decimal(e))),
        lambda e, a: a * e * e / 2,
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("e", EPSILONS)
@pytest.mark.parametrize("name", CURVES)
def test_a_curve_agrees_with_its_definition(name: str, e: str, order: str) -> None:
    make, true = CURVES[name]
    shown, exact = real(make(e).renyi(Decimal(order))), true(real(e), real(order))
    slack = exact * Real("2e-4") if name == "exponential" else Real("1e-18")  # a grid of 400
    assert exact - Real("1e-24") <= shown <= exact + slack


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("order", ["1.5", "8"])
def test_the_discrete_laplace_curve_agrees_with_its_sum(steps: int, order: str) -> None:
    shown = real(discrete_laplace("0.8", steps).renyi(Decimal(order)))
    exact = reference.discrete_laplace(Real("0.8"), steps, Real(order))
    assert exact - Real("1e-20") <= shown <= exact + Real("1e-18")


@pytest.mark.parametrize(("rate", "multiplier"), [("0.01", "0.7"), ("0.1", "2"), ("0.9", "10")])
@pytest.mark.parametrize("order", ["1.1", "1.5", "2", "2.5", "5", "7.25", "12"])
def test_the_sampled_curve_bounds_the_integral_and_equals_it_at_integer_orders(
    rate: str, multiplier: str, order: str
) -> None:
    with mp.workdps(20):
        exact = reference.sampled_gaussian(Real(rate), Real(multiplier), Real(order))
    shown = real(sampled(multiplier, rate).renyi(Decimal(order)))
    assert shown >= exact * (1 - Real("1e-12"))
    # never above the curve without sampling
    assert shown <= Decimal(order) / (2 * Decimal(multiplier) ** 2)
    if Decimal(order) < 2 and rate != "0.9":
        assert shown <= exact * Real("1.15")
    if order == str(int(Decimal(order))):
        assert shown <= exact * (1 + Real("1e-12"))


def test_the_sampled_curve_is_sound_and_fast_at_orders_beyond_the_sum() -> None:
    """Minkowski's bound is above the exact sum and close to it where both are known."""
    event = sampled("1.5", "0.02")
    at_the_end = real(event.renyi(Decimal(1025)))
    beyond = real(event.renyi(Decimal(1026)))
    assert at_the_end <= beyond <= at_the_end + Real(1) / (2 * Real("2.25")) + Real("1e-4")
    assert event.renyi(Decimal(10**6)) < Decimal(10**6) / (2 * Decimal("2.25"))


# Conversions


@pytest.mark.parametrize("rho", ["1e-8", "0.001", "0.024356", "1", "50"])
@pytest.mark.parametrize("delta", ["0.1", "1e-6", "1e-12"])
def test_the_zcdp_conversion_is_the_least_over_all_real_orders(rho: str, delta: str) -> None:
    r, d = Real(rho), Real(delta)
    # The derivative vanishes between these, and the best order is near.
    best = mp.findroot(
        lambda a: r * (a - 1) ** 2 + mp.log(a) + mp.log(d),
        (1 + Real("1e-9"), 1 + mp.sqrt(-mp.log(d) / r)),
        solver="bisect",
        maxsteps=200,
        verify=False,
    )
    exact = reference.best_epsilon(lambda a: r * a, d, [best])
    shown = real(epsilon(concentrated(rho), 1, "zcdp", delta))
    assert exact - Real("1e-20") <= shown <= exact + ONE_PLACE


@pytest.mark.parametrize("rho", ["0.001", "0.1", "3"])
@pytest.mark.parametrize("at", ["0.1", "2", "20"])
def test_the_zcdp_delta_is_the_least_over_all_real_orders(rho: str, at: str) -> None:
    shown, order = delta_of(Decimal(rho), Decimal(at))
    near = [Real(str(order)) * (1 + Real(k) / 1000) for k in range(-20, 21)]
    orders = [a for a in near if a > 1]
    exact = reference.best_delta(lambda a: Real(rho) * a, Real(at), orders)
    assert real(shown) <= exact * (1 + Real("1e-15"))
    assert real(shown) >= exact * (1 - Real("1e-3"))


def test_epsilon_and_delta_of_zcdp_are_inverse() -> None:
    found, _ = epsilon_of(Decimal("0.1"), Decimal("1e-6"))
    back, _ = delta_of(Decimal("0.1"), found)
    assert abs(back / Decimal("1e-6") - 1) < Decimal("1e-12")


@pytest.mark.parametrize("count", [20])
def test_the_renyi_accountant_is_the_least_over_the_grid(count: int) -> None:
    exact = reference.best_epsilon(
        lambda a: count * reference.laplace(Real("0.1"), a), Real("1e-6"), [real(a) for a in GRID]
    )
    shown = real(epsilon(laplace("0.1"), count, "renyi"))
    assert exact - Real("1e-20") <= shown <= exact + ONE_PLACE


# Optimal composition


@pytest.mark.parametrize("count", [1, 2, 7, 100, 3000])
@pytest.mark.parametrize("delta", ["1e-2", "1e-6", "1e-12"])
def test_equal_events_compose_optimally(count: int, delta: str) -> None:
    shown = real(epsilon(pure("0.05"), count, "optimal", delta))
    assert reference.optimal_delta_of_equal(Real("0.05"), count, shown) <= Real(delta)
    if shown > ONE_PLACE:
        below = reference.optimal_delta_of_equal(Real("0.05"), count, shown - ONE_PLACE)
        assert below >= Real(delta)


@pytest.mark.parametrize("at", ["0", "0.1", "0.77", "2.5", "4"])
def test_different_events_compose_optimally(at: str) -> None:
    epsilons = ["0.1", "0.1", "0.3", "0.5", "0.5", "0.5", "0.75"]
    shown = results([(pure(e), 1) for e in epsilons], ["optimal"], epsilon=at)["optimal"]["delta"]
    exact = reference.optimal_delta([Real(e) for e in epsilons], Real(at))
    assert exact <= real(shown) <= exact * (1 + Real("2e-11")) + Real("1e-30")


def test_generic_deltas_combine_by_the_theorem() -> None:
    """1 - (1 - delta)^k (1 - delta_0) (Kairouz, Oh and Viswanath 2015, Theorem 3.3)."""
    k, e, d = 30, Real("0.1"), Real("1e-3")
    shown = real(
        results([(generic("0.1", "1e-3"), k)], ["optimal"], epsilon="1")["optimal"]["delta"]
    )
    exact = 1 - (1 - d) ** k * (1 - reference.optimal_delta_of_equal(e, k, Real(1)))
    assert exact <= shown <= exact * (1 + Real("2e-11"))


def test_a_million_events_are_summed_over_their_relevant_part() -> None:
    """At a million small events the law is nearly Gaussian, with mu = epsilon sqrt(k)."""
    shown = epsilon(pure("0.0001"), 10**6, "optimal")
    assert shown == pytest.approx(epsilon(gaussian("10"), 1, "gdp"), rel=1e-3)
    assert (
        "too many"
        in results([(pure("0.1"), 10**12)], ["optimal"], delta="1e-6")["optimal"]["unavailable"]
    )


@pytest.mark.parametrize(("n", "k"), [(5, 2), (399, 200), (1000, 500), (10**12, 10**11)])
def test_binomials_of_any_size_are_correct(n: int, k: int) -> None:
    with localcontext(CONTEXT) as context, mp.workdps(80):
        context.prec = 60
        exact = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
        assert abs(real(log_binomial(n, k)) / exact - 1) < Real("1e-44")
