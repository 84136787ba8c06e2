"""Renyi curve of Gaussian noise on a Poisson sample, fast enough for a calculator.

Theorem: Mironov, Talwar and Zhang 2019, for adding or removing a record: with rate q, noise of
multiplier s and P = (1-q) N(0, s^2) + q N(1, s^2), Q = N(0, s^2), the worse direction is
D_a(P || Q), and at whole a exp((a-1) D_a) = sum_k C(a,k) (1-q)^(a-k) q^k exp((k^2-k)/(2 s^2)).

Between whole orders (a-1) D_a is convex, so a line between the neighbours bounds it. Below order 2,
Taylor's formula for (1 + y)^a with y = q (X - 1) >= -q, X = dN(1, s^2)/dQ, is closer: its third
term has the sign of -y, so (1 + y)^a <= 1 + a y + c y^2, c = a (a-1)/2 (1 + (2-a)/3 q (1-q)^(a-3)),
and as E y = 0 and E y^2 = q^2 (exp(1/s^2) - 1), (a-1) D_a <= ln(1 + c E y^2). At any order
Minkowski's inequality, |1-q + q X|_a <= 1-q + q |X|_a in L_a(Q), gives
D_a <= a/(a-1) ln(1 + q (exp((a-1)/(2 s^2)) - 1)): near the truth at high orders, where the sum is
long. The least of these bounds is taken, and never more than without sampling.
"""

from decimal import Decimal, localcontext
from functools import lru_cache

from app.accounting.precise import CONTEXT

WHOLE_ORDER_MAX = 1025
_EXPONENT_MAX = 10**8  # decimals end near exp(2.3e9)


def sampled_gaussian(rate: Decimal, multiplier: Decimal, order: Decimal) -> Decimal:
    with localcontext(CONTEXT):
        rho = 1 / (2 * multiplier * multiplier)
        bound = min(rho * order, _minkowski(rate, rho, order))
        below = int(order)
        above = below if order == below else below + 1
        if above > WHOLE_ORDER_MAX or above * above * rho > _EXPONENT_MAX:
            return bound
        if order < 2:
            bound = min(bound, _by_taylor(rate, rho, order))
        high = _log_moment(rate, multiplier, above)
        if order == above:
            return min(bound, high / (order - 1))
        low = _log_moment(rate, multiplier, below) if below > 1 else Decimal(0)
        share = order - below
        return min(bound, ((1 - share) * low + share * high) / (order - 1))


def _minkowski(rate: Decimal, rho: Decimal, order: Decimal) -> Decimal:
    x = (order - 1) * rho
    if x > _EXPONENT_MAX:
        return rho * order
    return order / (order - 1) * (1 + rate * (x.exp() - 1)).ln()


def _by_taylor(rate: Decimal, rho: Decimal, order: Decimal) -> Decimal:
    third = (2 - order) / 3 * rate * (1 - rate) ** (order - 3)
    c = order * (order - 1) / 2 * (1 + third)
    return (1 + c * rate * rate * ((2 * rho).exp() - 1)).ln() / (order - 1)


@lru_cache(maxsize=8192)
def _log_moment(rate: Decimal, multiplier: Decimal, a: int) -> Decimal:
    """(a-1) D_a at a whole order: each term of the sum from the one before."""
    with localcontext(CONTEXT):
        odds = rate / (1 - rate)
        growth = (1 / (multiplier * multiplier)).exp()
        term = total = (1 - rate) ** a
        factor = odds
        for k in range(a):
            term *= factor * (a - k) / (k + 1)
            total += term
            factor *= growth
        # Each step rounds in the fortieth digit; the growth repeats its own error.
        return (total * (1 + Decimal("1e-30"))).ln()
