"""Numbers that were published, or computed once by a program other than this calculator."""

from decimal import Decimal

import pytest

from app.accounting.calculator.events import Event
from tests.accounting.calculator.cases import (
    concentrated,
    discrete_laplace,
    epsilon,
    exponential,
    gaussian,
    generic,
    how_many_fit,
    laplace,
    pure,
    results,
    sampled,
)

# How many equal queries fit an epsilon at delta 1e-6, by each accountant.
FITS: list[tuple[Event, str, float, int]] = [
    (gaussian("100"), "zcdp", 1, 487),
    (gaussian("100"), "gdp", 1, 560),
    (gaussian("100"), "advanced", 1, 349),
    (laplace("0.01"), "basic", 1, 100),
    (laplace("0.01"), "advanced", 1, 349),
    (laplace("0.01"), "zcdp", 1, 488),
    (laplace("0.01"), "renyi", 1, 492),
    (laplace("0.01"), "gdp", 1, 356),
    (laplace("0.1"), "basic", 1, 10),
    (laplace("0.1"), "advanced", 1, 3),
    (laplace("0.1"), "zcdp", 1, 5),
    (laplace("0.1"), "renyi", 1, 10),
    (laplace("0.1"), "gdp", 1, 3),
    (laplace("0.1"), "optimal", 1, 10),
    (exponential("0.1"), "zcdp", 1, 19),
    (exponential("0.1"), "renyi", 1, 20),
    (gaussian("100"), "zcdp", 3, 3701),
    (gaussian("100"), "gdp", 3, 4195),
    (laplace("0.1"), "basic", 3, 30),
    (laplace("0.1"), "advanced", 3, 29),
    (laplace("0.1"), "zcdp", 3, 38),
    (laplace("0.1"), "renyi", 3, 42),
    (laplace("0.1"), "gdp", 3, 26),
    (exponential("0.1"), "zcdp", 3, 148),
]


@pytest.mark.parametrize(("event", "accountant", "target", "count"), FITS)
def test_the_published_number_of_queries_fits(
    event: Event, accountant: str, target: float, count: int
) -> None:
    assert how_many_fit(event, accountant, target) == count


def test_renyi_uses_the_best_order_of_the_grid_for_gaussian_noise() -> None:
    """487 with all real orders; order 22 of the public grid gives the same."""
    assert how_many_fit(gaussian("100"), "renyi", 1) == 487


def test_zcdp_uses_the_tight_conversion() -> None:
    """Which rho fits (1, 1e-6): 0.024356 by the tight conversion (Canonne, Kamath and Steinke
    2020), 0.017469 by the standard one (Bun and Steinke 2016)."""
    assert (
        epsilon(concentrated("0.024355"), 1, "zcdp")
        < 1
        < epsilon(concentrated("0.024357"), 1, "zcdp")
    )
    # The advanced filter uses the standard conversion.
    assert (
        epsilon(concentrated("0.017468"), 1, "advanced")
        < 1
        < epsilon(concentrated("0.01747"), 1, "advanced")
    )


def test_sampled_gaussian_steps_have_the_golden_count() -> None:
    """With rate 0.01 and noise multiplier 1, 1647 steps fit (3, 1e-6) at order 7."""
    shown = results([(sampled("1", "0.01"), 1647)], ["renyi"], delta="1e-6")["renyi"]
    assert shown["order"] == 7
    assert shown["epsilon"] <= 3 < epsilon(sampled("1", "0.01"), 1670, "renyi")


def test_integer_laplace_costs_more_renyi_than_continuous() -> None:
    """0.7353 compared with 0.6191 at epsilon 1, order 2."""
    assert round(discrete_laplace("1").renyi(Decimal(2)), 4) == Decimal("0.7353")
    assert round(laplace("1").renyi(Decimal(2)), 4) == Decimal("0.6191")


def test_ten_randomised_responses_cost_ten_times_one() -> None:
    """Ten at p = 1/2 (epsilon ln 3) cost 10.987; dp-accounting 0.6.0 reports 1.0987."""
    assert 10.98 < epsilon(pure("1.0986122886681098"), 10, "optimal", "1e-9") < 10.987


def test_dwork_rothblum_vadhan_differs_from_the_filter() -> None:
    """k = 100, epsilon 0.1, delta 1e-6: sqrt(200 ln 1e6) 0.1 + 100 0.1 (e^0.1 - 1) = 6.308..."""
    shown = results([(laplace("0.1"), 100)], ["advanced"], delta="1e-6")["advanced"]
    assert shown["epsilon"] == pytest.approx(5.2565 + 0.5, abs=1e-4)
    assert shown["fixed_in_advance"]["epsilon"] == pytest.approx(5.2565 + 1.0517, abs=1e-4)
    assert "fixed in advance" in shown["fixed_in_advance"]["theorem"]


def test_generic_deltas_add_up() -> None:
    shown = results([(generic("0.2", "1e-8"), 3)], ["basic"], delta="1e-6")["basic"]
    assert (shown["epsilon"], shown["delta"]) == (0.6, 3e-8)
