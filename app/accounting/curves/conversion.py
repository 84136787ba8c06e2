"""Conversion from Renyi and zCDP bounds to (epsilon, delta), and back to spending limits.

Theorem: Canonne, Kamath and Steinke 2020, Proposition 12 (also Asoodeh et al. 2020, Balle et al.
2020): a mechanism with Renyi divergence at most R at one order a > 1 is (epsilon, delta)-private
for epsilon = R + ln(1 - 1/a) - (ln delta + ln a) / (a - 1). Every a gives a true statement, so the
search for the best a only affects how tight the bound is. A rho-zCDP mechanism has divergence at
most rho a at every order, so any order may be taken, also the best one. A `renyi` account instead
divides its delta among the orders at the grant (`rules/renyi.py`).
Rounding: 40-digit decimals; callers round costs up and limits down (`precise.py`).
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext

from app.accounting.curves.quick_units import Near, U
from app.accounting.precise import CONTEXT

_SEARCH = Context(prec=20)  # precision of the search for an order
_SEARCH_STEPS = 19  # to within 3e-3 of ln(a - 1), where the cost is a parabola up to 1e-8
_SMALLEST, _LARGEST = Decimal("1e-4"), Decimal("1e7")  # range of a - 1
_QUANTUM = Decimal("1e-9")
# error bound of a cost computed by floats or with 20 digits, per unit of its terms' magnitudes
_OFF = 16 * U


def epsilon_at(r: Decimal, a: Decimal, delta: Decimal) -> Decimal:
    """The epsilon of a mechanism of Renyi divergence r at order a, at this delta; at least 0."""
    with localcontext(CONTEXT):
        return max(Decimal(0), r + (1 - 1 / a).ln() - (delta.ln() + a.ln()) / (a - 1))


def delta_at(r: Decimal, a: Decimal, epsilon: Decimal) -> Decimal:
    """The delta of a mechanism of Renyi divergence r at order a, at this epsilon; at most 1."""
    with localcontext(CONTEXT):
        exponent = (a - 1) * (r - epsilon + (1 - 1 / a).ln()) - a.ln()
        return min(Decimal(1), exponent.exp())


def renyi_limit(epsilon: Decimal, a: Decimal, delta: Decimal) -> Decimal:
    """The largest divergence at order a that is still (epsilon, delta)-private; may be negative."""
    with localcontext(CONTEXT):
        return epsilon - (1 - 1 / a).ln() + (delta.ln() + a.ln()) / (a - 1)


def rho_limit(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The largest rho whose tight conversion is within (epsilon, delta); 0 if there is none."""
    log_delta = delta.ln(CONTEXT)

    def cost(a: Decimal, log_below: Decimal) -> Decimal:
        log_a = a.ln()
        return (log_below - log_a - epsilon - (log_delta + log_a) / (a - 1)) / a

    near, log_near = float(epsilon), float(log_delta)

    def roughly(x: float) -> Near:
        below = math.exp(x)
        log_a = math.log1p(below)
        tail, a = (log_near + log_a) / below, 1.0 + below
        size = abs(x) + log_a + near + (abs(log_near) + log_a) / below
        return (x - log_a - near - tail) / a, _OFF * size / a

    with localcontext(CONTEXT):
        a = _best(cost, roughly)
        return max(Decimal(0), renyi_limit(epsilon, a, delta) / a)


def epsilon_of_rho(rho: Decimal, delta: Decimal) -> Decimal:
    """The epsilon of a rho-zCDP mechanism at this delta, by the best order."""
    log_delta = delta.ln(CONTEXT)

    def cost(a: Decimal, log_below: Decimal) -> Decimal:
        log_a = a.ln()
        return max(Decimal(0), rho * a + log_below - log_a - (log_delta + log_a) / (a - 1))

    near, log_near = float(rho), float(log_delta)

    def roughly(x: float) -> Near:
        below = math.exp(x)
        log_a = math.log1p(below)
        tail, a = (log_near + log_a) / below, 1.0 + below
        size = near * a + abs(x) + log_a + (abs(log_near) + log_a) / below
        return max(0.0, near * a + x - log_a - tail), _OFF * size

    with localcontext(CONTEXT):
        a = _best(cost, roughly)
        return epsilon_at(rho * a, a, delta)


def _best(cost: Callable[[Decimal, Decimal], Decimal], roughly: Callable[[float], Near]) -> Decimal:
    """Order with the least cost, by golden section search on x = ln(a - 1).

    `cost` takes the order and x. Floats nearly always decide which of two costs is less, and
    then no decimal is computed: the resulting order is the same."""
    with localcontext(_SEARCH):
        ratio = (Decimal(5).sqrt() - 1) / 2
        low, high = _SMALLEST.ln(), _LARGEST.ln()

        def at(x: Decimal) -> Decimal:
            return cost(1 + x.exp(), x)

        def no_more(x: Decimal, y: Decimal) -> bool:
            (here, off), (there, also_off) = roughly(float(x)), roughly(float(y))
            if abs(here - there) > off + also_off:
                return here < there
            return at(x) <= at(y)

        left, right = high - ratio * (high - low), low + ratio * (high - low)
        for _ in range(_SEARCH_STEPS):
            if no_more(left, right):
                high, right = right, left
                left = high - ratio * (high - low)
            else:
                low, left = left, right
                right = low + ratio * (high - low)
        x = (low + high) / 2  # then minimise a parabola through it, and a narrower one
        for h in (high - low, (high - low) / 30):
            before, here, after = at(x - h), at(x), at(x + h)
            bend = before - 2 * here + after
            if bend > 0:
                x += h / 2 * max(Decimal(-2), min(Decimal(2), (before - after) / bend))
        return (1 + x.exp()).quantize(_QUANTUM)
