"""The calculator in reverse: its result fits, and a thousandth more does not."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from app.accounting.calculator.events import (
    Concentrated,
    DiscreteGaussian,
    Event,
    Exponential,
    Gaussian,
    Generic,
    Laplace,
    RandomizedResponse,
    SampledGaussian,
)
from app.accounting.calculator.inverse import Parameter, Target, solve
from tests.accounting.calculator.cases import EXACT_ACCOUNTANTS, epsilon

CASES: list[tuple[Parameter, Callable[[Decimal], Event], int]] = [
    ("epsilon", Laplace, 1),
    ("epsilon", Laplace, 1000),
    ("epsilon", Exponential, 20),
    ("epsilon", lambda e: RandomizedResponse(e, 3), 50),
    ("epsilon", lambda e: Generic(e, Decimal("1e-9")), 100),
    ("rho", Concentrated, 10),
    ("noise_multiplier", Gaussian, 560),
    ("noise_multiplier", DiscreteGaussian, 3),
    ("noise_multiplier", lambda s: SampledGaussian(s, Decimal("0.02")), 200),
]


@pytest.mark.parametrize(("parameter", "make", "count"), CASES)
@pytest.mark.parametrize("target", ["2"])
def test_the_result_fits_and_a_thousandth_more_does_not(
    parameter: Parameter, make: Callable[[Decimal], Event], count: int, target: str
) -> None:
    asked = Target(Decimal(target), Decimal("1e-6"), count, parameter, make)
    found = solve(asked, EXACT_ACCOUNTANTS)["results"]
    assert any("per_event" in result for result in found.values())
    for name, result in found.items():
        if "unavailable" in result:
            continue
        best = Decimal(repr(result["per_event"][parameter]))
        factor = Decimal("1.001")
        more = best / factor if parameter == "noise_multiplier" else best * factor
        assert epsilon(make(best), count, name) == result["epsilon"] <= float(target)
        assert epsilon(make(more), count, name) > float(target)


def test_a_readable_result_is_preferred() -> None:
    asked = Target(Decimal(1), Decimal("1e-6"), 100, "epsilon", Laplace)
    assert solve(asked, ["basic"])["results"]["basic"]["per_event"] == {"epsilon": 0.01}


def test_golden_results_are_found() -> None:
    """rho 0.024356, and noise 100 for 560 answers, at (1, 1e-6)."""
    rho = Target(Decimal(1), Decimal("1e-6"), 1, "rho", Concentrated)
    found = solve(rho, ["zcdp"])["results"]["zcdp"]
    assert round(found["per_event"]["rho"], 6) == 0.024356
    noise = Target(Decimal(1), Decimal("1e-6"), 560, "noise_multiplier", Gaussian)
    assert 99.9 < solve(noise, ["gdp"])["results"]["gdp"]["per_event"]["noise_multiplier"] <= 100


def test_the_search_works_for_distributions_too() -> None:
    asked = Target(Decimal(1), Decimal("1e-6"), 20, "epsilon", Laplace)
    best = Decimal(repr(solve(asked, ["pld"])["results"]["pld"]["per_event"]["epsilon"]))
    assert (
        epsilon(Laplace(best), 20, "pld")
        <= 1
        < epsilon(Laplace(best * Decimal("1.001")), 20, "pld")
    )


def test_an_impossible_target_is_reported() -> None:
    spent = Target(
        Decimal(1), Decimal("1e-6"), 10, "epsilon", lambda e: Generic(e, Decimal("1e-6"))
    )
    assert "deltas" in solve(spent, ["basic"])["results"]["basic"]["unavailable"]
    none = Target(Decimal(1), Decimal("1e-6"), 10, "rho", Concentrated)
    assert "no epsilon" in solve(none, ["optimal"])["results"]["optimal"]["unavailable"]
    tiny = Target(Decimal("1e-12"), Decimal("1e-6"), 10**12, "epsilon", Laplace)
    assert "no parameter" in solve(tiny, ["basic"])["results"]["basic"]["unavailable"]
