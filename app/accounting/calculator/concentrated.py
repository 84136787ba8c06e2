"""zCDP accountant: rhos add up, and the best real order converts the sum to (epsilon, delta).

Theorem: Bun and Steinke 2016 (composition, also valid for adaptively chosen parameters); the
conversion of Canonne, Kamath and Steinke 2020, Proposition 12, with Renyi divergence rho a.
Rounding: the bound holds at every order, so the search for the best one only affects tightness.
"""

from collections.abc import Callable
from decimal import Decimal

from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.figures import Bound, epsilon_number
from app.accounting.calculator.renyi import converted_delta, converted_epsilon

THEOREM = (
    "zCDP: sum of rho (Bun and Steinke 2016); conversion minimised over all orders "
    "(Canonne, Kamath and Steinke 2020)"
)
UNSAMPLED = "sampling is left out of account: this bound is that of the noise alone"


def epsilon_at(composition: Composition, delta: Decimal) -> Bound:
    rho = composition.rho()
    value, order = epsilon_of(rho, composition.delta_left(delta))
    return Bound(value, extras=_extras(rho, order), notes=unsampled(composition))


def delta_at(composition: Composition, epsilon: Decimal) -> Bound:
    rho = composition.rho()
    value, order = delta_of(rho, epsilon)
    whole = composition.delta_with_failure(value)
    return Bound(whole, extras=_extras(rho, order), notes=unsampled(composition))


def unsampled(composition: Composition) -> tuple[str, ...]:
    return (UNSAMPLED,) if composition.sampled else ()


def epsilon_of(rho: Decimal, delta: Decimal) -> tuple[Decimal, Decimal]:
    """The epsilon of rho-zCDP, and the order that gives it.

    The derivative of rho a + ln(1 - 1/a) - (ln delta + ln a)/(a - 1) times (a-1)^2 is rho
    (a-1)^2 + ln a - ln(1/delta). It rises, so there is one minimum."""
    if rho == 0:
        return Decimal(0), Decimal("Infinity")
    logarithm = -delta.ln()
    order = 1 + _turning_point(
        lambda b: rho * b * b + (1 + b).ln() - logarithm, high=(logarithm / rho).sqrt()
    )
    return converted_epsilon(rho * order, order, delta), order


def delta_of(rho: Decimal, epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """The delta of rho-zCDP at this epsilon, and the order that gives it.

    The derivative of (a-1)(rho a - epsilon) + a ln(1 - 1/a) - ln(a - 1) is (2a - 1) rho -
    epsilon + ln(1 - 1/a). It rises, so there is one minimum."""
    if rho == 0:
        return Decimal(0), Decimal("Infinity")
    order = 1 + _turning_point(
        lambda b: (2 * b + 1) * rho - epsilon + (b / (1 + b)).ln(), high=epsilon / rho + 1 / rho + 1
    )
    return converted_delta(rho * order, order, epsilon), order


def _turning_point(slope: Callable[[Decimal], Decimal], *, high: Decimal) -> Decimal:
    """Zero of a rising slope, below `high`, by bisection on the logarithm."""
    low = min(high, Decimal(1)) * Decimal("1e-12")
    for _ in range(70):
        middle = (low * high).sqrt()
        if slope(middle) > 0:
            high = middle
        else:
            low = middle
    return high


def _extras(rho: Decimal, order: Decimal) -> dict[str, float]:
    shown = {"rho": epsilon_number(rho, exact=True)}
    return shown | ({"order": float(order)} if order.is_finite() else {})
