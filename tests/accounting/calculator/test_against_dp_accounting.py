"""Google's dp-accounting as a second opinion, and its known hazards.

The hazards are reproduced here, so that a version without them is noticed. The tests show that they
do not reach this calculator.
"""

import ast
import math
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import dp_accounting
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

from app.accounting.calculator import distribution
from app.accounting.calculator.events import Event
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

ORDERS = [2, 3, 5, 8, 16, 64, 256]
REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE


def rdp(event: Any, orders: list[float], relation: Any = None) -> list[float]:
    options = {} if relation is None else {"neighboring_relation": relation}
    accountant = RdpAccountant(orders, **options)
    accountant.compose(event)
    return [float(value) for value in accountant._rdp]


# Agreement

EVENTS: list[tuple[Event, Any]] = [
    (laplace("0.5"), dp_accounting.LaplaceDpEvent(2)),
    (gaussian("3"), dp_accounting.GaussianDpEvent(3)),
    (
        sampled("1.1", "0.01"),
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1)),
    ),
    (
        sampled("0.8", "0.4"),
        dp_accounting.PoissonSampledDpEvent(0.4, dp_accounting.GaussianDpEvent(0.8)),
    ),
    (concentrated("0.02"), dp_accounting.ZCDpEvent(0.02)),
]


@pytest.mark.parametrize(("ours", "theirs"), EVENTS)
def test_curves_agree_at_integer_orders(ours: Event, theirs: Any) -> None:
    for order, value in zip(ORDERS, rdp(theirs, list(ORDERS)), strict=True):
        assert float(ours.renyi(Decimal(order))) == pytest.approx(value, rel=1e-9)


def test_the_curve_of_randomised_response_agrees() -> None:
    """It answers at random with probability p: epsilon = ln(1 + k (1 - p)/p)."""
    k, p = 5, 0.4
    ours = response(str(Decimal(1 + k * (1 - p) / p).ln()), k)
    theirs = rdp(dp_accounting.RandomizedResponseDpEvent(p, k), list(ORDERS), REPLACE)
    for order, value in zip(ORDERS, theirs, strict=True):
        assert float(ours.renyi(Decimal(order))) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(("ours", "theirs"), [EVENTS[0], EVENTS[1], EVENTS[2]])
def test_distributions_agree_in_both_directions(ours: Event, theirs: Any) -> None:
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(theirs, 30)
    there = accountant.get_epsilon(1e-6)
    assert epsilon(ours, 30, "pld") == pytest.approx(there, rel=2e-4)
    back = results([(ours, 30)], ["pld"], epsilon=f"{there:.9f}")["pld"]["delta"]
    assert back == pytest.approx(1e-6, rel=5e-3)


@pytest.mark.parametrize(
    ("event", "count", "accountant"),
    [
        (pure("0.1"), 30, "optimal"),
        (response("0.7", 2), 12, "optimal"),
        (discrete_laplace("0.3"), 40, "optimal"),
        (generic("0.1", "1e-9"), 30, "optimal"),
        (gaussian("5"), 50, "gdp"),
    ],
)
def test_a_distribution_approaches_the_exact_formula_from_above(
    event: Event, count: int, accountant: str
) -> None:
    exact = epsilon(event, count, accountant)
    assert exact <= epsilon(event, count, "pld") <= exact * 1.0001


def test_a_distribution_is_below_every_renyi_bound() -> None:
    for event in (laplace("0.2"), discrete_laplace("0.3", 4)):
        assert epsilon(event, 60, "pld") < epsilon(event, 60, "renyi")
    many = epsilon(response("0.3", 6), 60, "pld", neighbours="replace_one")
    assert many < epsilon(response("0.3", 6), 60, "renyi", neighbours="replace_one")


# Hazards


def test_h1_the_library_ignores_the_count_of_randomised_responses_and_we_do_not() -> None:
    accountant = PLDAccountant(REPLACE)
    accountant.compose(dp_accounting.RandomizedResponseDpEvent(0.5, 2), 10)
    assert accountant.get_epsilon(1e-9) < 1.1
    ours = response("1.0986122886681098", 2)
    for count in (10, 13, 16):
        assert epsilon(ours, count, "pld", "1e-6", neighbours="replace_one") == pytest.approx(
            epsilon(ours, count, "optimal", "1e-6", neighbours="replace_one"), rel=1e-3
        )


def test_h2_the_library_treats_nan_as_zero_and_we_refuse_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accountant = RdpAccountant([2.0, 3.0])
    accountant.compose(dp_accounting.ZCDpEvent(math.nan))
    assert accountant.get_epsilon(1e-6) == 0

    class Broken:
        value = math.nan

        def get_epsilon_for_delta(self, _: float) -> float:
            return self.value

        def get_delta_for_epsilon(self, _: float) -> float:
            return self.value

    monkeypatch.setattr(distribution, "_composed", lambda _: (Broken(), 1e-4))
    for Broken.value in (math.nan, math.inf, -1.0):
        for question in ({"delta": "1e-6"}, {"epsilon": "1"}):
            shown = results([(laplace("1"), 1)], ["pld"], **question)["pld"]
            if Broken.value != math.inf or "delta" in question:
                assert "unavailable" in shown


def test_h3_h4_h5_the_librarys_accountants_are_not_used() -> None:
    """Negative costs, negative counts and half-composed events are bugs of its accountants."""
    source = Path(distribution.__file__).read_text()
    named = {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.startswith("dp_accounting")
    }
    assert named == {"dp_accounting.pld.privacy_loss_distribution"}


def test_h6_gaussian_noise_costs_the_same_under_both_relations() -> None:
    doubled = PLDAccountant(REPLACE)
    doubled.compose(dp_accounting.GaussianDpEvent(2))
    assert doubled.get_epsilon(1e-6) == pytest.approx(4.887, abs=1e-3)
    for accountant in ("gdp", "pld", "renyi"):
        one = epsilon(gaussian("2"), 1, accountant)
        assert one == epsilon(gaussian("2"), 1, accountant, neighbours="replace_one") < 2.5


def test_h7_fractional_orders_of_sampled_noise_are_not_inflated() -> None:
    theirs = rdp(dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(2)), [1.5])[
        0
    ]
    assert float(sampled("2", "0.1").renyi(Decimal("1.5"))) < theirs / 1.2


def test_h8_a_small_rho_is_converted_at_its_best_order() -> None:
    """Grids end at 1024 or 63; the zcdp accountant takes any real order."""
    shown = results([(concentrated("1e-8"), 1)], ["zcdp", "renyi"], delta="1e-6")
    assert shown["zcdp"]["order"] > 10_000
    assert shown["zcdp"]["epsilon"] < shown["renyi"]["epsilon"] / 5


def test_h9_mechanisms_missing_in_the_library_are_here() -> None:
    for event in (generic("0.1", "1e-9"), exponential("0.1"), discrete_gaussian("10")):
        assert epsilon(event, 1, "renyi") > 0
    refused = results([(discrete_gaussian("10"), 1)], ["pld"], delta="1e-6")["pld"]
    assert "unavailable" in refused


# The extra and its limits


def test_without_the_extra_the_reply_explains_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    shown = results([(laplace("1"), 1)], ["pld", "basic"], delta="1e-6")
    assert "pip install 'bursar-server[pld]'" in shown["pld"]["unavailable"]
    assert shown["basic"]["epsilon"] == 1


@pytest.mark.parametrize(
    ("event", "count", "delta", "reason"),
    [
        (laplace("0.1"), 1, "1e-12", "float Fourier"),
        (laplace("0.1"), 10**6 + 1, "1e-3", "more than"),
        (laplace("100"), 1, "1e-6", "a grid of 1e-4"),
        (concentrated("0.1"), 1, "1e-6", "no distribution"),
    ],
)
def test_the_work_of_the_library_is_bounded_and_its_results_are_checked(
    event: Event, count: int, delta: str, reason: str
) -> None:
    assert reason in results([(event, count)], ["pld"], delta=delta)["pld"]["unavailable"]
