"""Conversions compared with OpenDP; the app uses its samplers, not its accounting.

Its conversions round up in floats and search their order. So ours may be slightly tighter, and
looser only by the error of a search.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import opendp.prelude as dp
import pytest

from app.accounting import COMPOSITION_RULES
from app.accounting.curves.conversion import epsilon_of_rho, rho_limit
from app.accounting.curves.renyi_curves import pure_rho
from app.accounting.losses import gaussian_loss
from app.accounting.precise import decimal
from app.accounting.rules.terms import GrantTerms

dp.enable_features("contrib")


def mapped(measurement: Any, distance: float) -> Any:
    return measurement.map(distance)


def their_epsilon(rho: float, delta: float) -> float:
    """Gaussian noise of this rho, converted by OpenDP."""
    scale = (1 / (2 * rho)) ** 0.5
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = dp.m.make_gaussian(*space, scale=scale)
    curve = mapped(dp.c.make_zCDP_to_approxDP(noise), 1.0)
    return float(curve.epsilon(delta))


@pytest.mark.parametrize("rho", ["0.0001", "0.01", "0.125", "0.5", "3"])
@pytest.mark.parametrize("delta", ["1e-5", "1e-6", "1e-9"])
def test_zcdp_converts_as_in_opendp(rho: str, delta: str) -> None:
    theirs = their_epsilon(float(rho), float(delta))
    ours = float(epsilon_of_rho(Decimal(rho), Decimal(delta)))
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
@pytest.mark.parametrize("delta", ["1e-5", "1e-9"])
def test_opendp_promises_no_more_for_the_largest_rho(epsilon: str, delta: str) -> None:
    limit = rho_limit(Decimal(epsilon), Decimal(delta))
    assert their_epsilon(float(limit), float(delta)) == pytest.approx(float(epsilon), rel=1e-6)
    assert their_epsilon(float(limit) * 1.001, float(delta)) > float(epsilon)


def test_a_zcdp_account_admits_as_many_gaussian_releases_as_an_opendp_composition() -> None:
    """OpenDP composes the releases and converts once; the account decides one by one."""
    rule = COMPOSITION_RULES["zcdp"]
    terms = rule.freeze(
        GrantTerms(epsilon=Decimal(1), delta=Decimal("1e-6"), failure_delta=Decimal(0))
    )
    admitted = rule.times(rule.nothing, rule.read(gaussian_loss(Fraction(100))), terms)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    each = dp.m.make_gaussian(*space, scale=100.0)
    for count, fits in ((admitted, True), (admitted + 1, False)):
        together = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([each] * count))
        assert (mapped(together, 1.0).epsilon(1e-6) <= 1.0) is fits


def test_pure_noise_costs_no_more_rho_than_opendp_charges() -> None:
    """OpenDP converts epsilon to epsilon^2 / 2; ours is the tight e tanh(e/2), below it."""
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    for scale in (0.5, 1.0, 10.0, 100.0):
        noise = dp.m.make_laplace(*space, scale=scale)
        theirs = mapped(dp.c.make_pureDP_to_zCDP(noise), 1)
        ours = pure_rho(decimal(Fraction(1) / Fraction(scale)))
        assert float(ours) <= theirs * (1 + 1e-12)
        assert float(ours) >= theirs * (1 - 1 / (12 * scale**2) - 1e-12)
