"""Lower bounds of a trade-off function, from the totals of an account.

*From Renyi divergences* R(a): an attack turns a release into one bit, true with probability α under
one dataset and 1 - β under the other. This increases no divergence (data processing, van Erven and
Harremoës 2014). So ln[(1-β)^a α^(1-a) + β^a (1-α)^(1-a)] <= (a-1) R(a), and the same with the
datasets exchanged. Both left sides grow as β falls below 1 - α, so bisection finds the least β that
meets them. They are jointly convex, so the bound is. It is never below the one through the profile
that R(a) gives, as each conversion to (ε, δ) follows from the same inequality.

*With failures.* Assume that P and Q are each within d, in total variation, of some P', Q' with the
curve f. An attack that errs on P with α errs on P' with at most α + d. So it errs on Q' with at
least f(α + d), and on Q with at least f(α + d) - d. Distances of adaptive releases add up. Where P
is a mixture, (1 - d) P' + d P'', and Q likewise with the same d, `exact.leaking` is a higher bound.
But noise that is only near its ideal also counts its distance as failure, and is no mixture.

Rounding: float errors are far below the margin that `curve.py` subtracts. A divergence counts as
too large only if it is so by more than its evaluation error.
"""

import math
from collections.abc import Iterable

from app.accounting.tradeoff.exact import TradeoffCurve

_HALVINGS = 45
_STRIDE = 7  # try orders far apart first, so that few of them improve the bound
# Relative error of a logarithm times an order, generously bounded.
_EVALUATION_ERROR = 1e-14
_ZCDP_ORDERS = tuple(1.0 + 0.01 * 1.35**i for i in range(48))  # up to about 13,000


def highest(curves: Iterable[TradeoffCurve]) -> TradeoffCurve:
    """Pointwise maximum: each of the curves is a lower bound, so the highest of them is."""
    kept = list(curves)
    return lambda alpha: max((curve(alpha) for curve in kept), default=0.0)


def from_renyi(divergences: Iterable[tuple[float, float]]) -> TradeoffCurve:
    """Curve of a mechanism with at most these Renyi divergences, (order, value), in both
    directions."""
    finite = [(order, value) for order, value in divergences if value != math.inf]
    limits = [limit for start in range(_STRIDE) for limit in finite[start::_STRIDE]]
    if any(not order > 1.0 or not value >= 0.0 for order, value in limits):
        raise ValueError("orders must be above 1, and divergences must not be negative")

    def curve(alpha: float) -> float:
        if alpha <= 0.0 or alpha >= 1.0:
            # With a finite divergence no set is reachable from only one of the datasets.
            return 1.0 - alpha if limits else 0.0
        least = 0.0
        for order, value in limits:
            if _distinguishable(alpha, least, order, value):
                least = _least_error(alpha, least, order, value)
        return least

    return curve


def from_rho(rho: float) -> TradeoffCurve:
    """Curve of a rho-zCDP mechanism: R(a) <= rho a for every a; some orders are tried."""
    return from_renyi((order, rho * order) for order in _ZCDP_ORDERS)


def failing(curve: TradeoffCurve, distance: float) -> TradeoffCurve:
    """Curve of a mechanism within that total variation of one with this curve."""

    def failed(alpha: float) -> float:
        return max(0.0, curve(min(1.0, alpha + distance)) - distance)

    return failed


def _least_error(alpha: float, low: float, order: float, value: float) -> float:
    """The least β that the divergence allows, or slightly less; `low` is not allowed."""
    high = 1.0 - alpha
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _distinguishable(alpha, middle, order, value):
            low = middle
        else:
            high = middle
    return low


def _distinguishable(alpha: float, beta: float, order: float, value: float) -> bool:
    """True if the divergence of an attack with these errors is surely above `value`."""
    if beta <= 0.0:
        return True  # an attack that never errs has an infinite divergence
    first, first_not = math.log(alpha), math.log1p(-alpha)
    second, second_not = math.log1p(-beta), math.log(beta)
    doubt = _EVALUATION_ERROR * (1.0 - order * (first + first_not + second + second_not))
    allowed = (order - 1.0) * value + doubt
    opposite = 1.0 - order
    return (
        _log_sum(order * second + opposite * first, order * second_not + opposite * first_not)
        > allowed
        or _log_sum(order * first + opposite * second, order * first_not + opposite * second_not)
        > allowed
    )


def _log_sum(x: float, y: float) -> float:
    """ln(exp(x) + exp(y))"""
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))
