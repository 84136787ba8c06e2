"""Renyi accountant: curves add up order by order, and the best order converts the sum.

The orders are those of the public grid and of the request. Theorem: Mironov 2017 (composition); the
conversion of Canonne, Kamath and Steinke 2020, Proposition 12 (also Balle et al. 2020; Asoodeh et
al. 2020). The best order may be taken because the parameters are fixed in advance: an account that
admits charges one by one may not do so.
"""

from collections.abc import Callable
from decimal import Decimal

from app.accounting.calculator.event_list import GRID, Composition
from app.accounting.calculator.figures import Bound

THEOREM = (
    "Renyi: sum of curves (Mironov 2017); best order of the improved conversion "
    "(Canonne, Kamath and Steinke 2020)"
)
# smaller deltas are indistinguishable from 0, but never reported as 0
_LOG_DELTA_LEAST = Decimal(-(10**6))


def epsilon_at(composition: Composition, delta: Decimal) -> Bound:
    left = composition.delta_left(delta)
    value, order = _least(
        composition, lambda order: converted_epsilon(composition.renyi(order), order, left)
    )
    return Bound(value, extras={"order": float(order)})


def delta_at(composition: Composition, epsilon: Decimal) -> Bound:
    value, order = _least(
        composition, lambda order: converted_delta(composition.renyi(order), order, epsilon)
    )
    return Bound(composition.delta_with_failure(value), extras={"order": float(order)})


def converted_epsilon(divergence: Decimal, order: Decimal, delta: Decimal) -> Decimal:
    """R + ln(1 - 1/a) - (ln delta + ln a)/(a - 1), and not below 0."""
    log = (1 - 1 / order).ln() - (delta.ln() + order.ln()) / (order - 1)
    return max(Decimal(0), divergence + log)


def converted_delta(divergence: Decimal, order: Decimal, epsilon: Decimal) -> Decimal:
    """exp((a - 1)(R - epsilon)) (1 - 1/a)^a / (a - 1), and not above 1."""
    log = (order - 1) * (divergence - epsilon) + order * (1 - 1 / order).ln() - (order - 1).ln()
    return Decimal(1) if log > 0 else max(log, _LOG_DELTA_LEAST).exp()


def _least(
    composition: Composition, bound: Callable[[Decimal], Decimal]
) -> tuple[Decimal, Decimal]:
    """The least bound and its order.

    With very many different events, descend from the middle; the bound holds at every order."""
    orders = sorted({*GRID, *composition.orders})
    if composition.affords_curve_at(len(orders)):
        return min((bound(order), order) for order in orders)
    at = len(GRID) // 2
    here = bound(GRID[at])
    for step in (-4, 4, -1, 1):
        while 0 <= at + step < len(GRID) and (there := bound(GRID[at + step])) < here:
            at, here = at + step, there
    return here, GRID[at]
