"""Renyi curves of mechanisms: R(a) bounds the Renyi divergence of order a in both directions.

Each formula takes positive decimals and gives R(a) at one order a > 1; `on_grid` rounds it up to
units at orders of the public grid. A pure mechanism is described by its e. Logarithms of 40 digits
are slow, so `curve_units.py` uses them only where floats cannot decide the unit.

Sources: Mironov 2017 (Renyi differential privacy); Kairouz, Oh and Viswanath 2015 (randomised
response is the worst pure mechanism); Dong, Durfee and Rogers 2019 with Cesar and Rogers 2020
(bounded range); Canonne, Kamath and Steinke 2020 (discrete Gaussian).
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

from app.accounting.curves.orders import ORDERS, QUARTERS
from app.accounting.precise import CONTEXT, decimal, units_up
from app.caches import owned_cache

RenyiCurve = tuple[int, ...]  # pico units for each of ORDERS
Formula = Callable[[Decimal], Decimal]
_GRID = tuple(decimal(order) for order in ORDERS)
_CANCELS = Decimal("1e-9")


_EVERY = range(len(_GRID))  # all indices of the grid


def on_grid(formula: Formula, indices: Sequence[int] = _EVERY) -> RenyiCurve:
    return tuple(units_up(formula(_GRID[index])) for index in indices)


def _powers_at_orders(x: Decimal, indices: Sequence[int]) -> list[Decimal]:
    """exp(-(2a - 1) x) at the orders, as powers of one number.

    Orders are multiples k of a quarter, so 2a - 1 = (k - 2) / 2. The error of a power is at most
    4100 roundings of the 40th digit."""
    half = (-x / 2).exp()
    return [half ** (QUARTERS[index] - 2) for index in indices]


def pure_on_grid(e: Decimal, indices: Sequence[int] = _EVERY) -> RenyiCurve:
    """`pure` at the orders."""
    with localcontext(CONTEXT):
        base = _log_one_and(-e)
        return tuple(
            units_up(e + ((1 + falls).ln() - base) / (_GRID[index] - 1))
            for index, falls in zip(indices, _powers_at_orders(e, indices), strict=True)
        )


def discrete_laplace_on_grid(
    e: Decimal, steps: Decimal, indices: Sequence[int] = _EVERY
) -> RenyiCurve:
    """`discrete_laplace` at the orders."""
    with localcontext(CONTEXT):
        s = e / steps
        p = (-s).exp()
        units = []
        for index, q, falls in zip(
            indices, _powers_at_orders(s, indices), _powers_at_orders(e, indices), strict=True
        ):
            a = _GRID[index]
            c = 2 * a - 1
            near = c * s <= _CANCELS
            share = _ratio_of_decays_near_zero(s, c) if near else (1 - p) / (1 - q)
            upper = (1 + q * share) / (1 + p)
            units.append(units_up(e + (upper + (1 - upper) * falls).ln() / (a - 1)))
        return tuple(units)


def pure(e: Decimal, a: Decimal) -> Decimal:
    """Any e-private mechanism: randomised response is the worst of them.

    ln[(exp(a e) + exp((1 - a) e)) / (1 + exp(e))] / (a - 1), written so that nothing overflows:
    the numerator over exp(a e) is 1 + exp((1 - 2a) e), the denominator over exp(e) 1 + exp(-e)."""
    with localcontext(CONTEXT):
        return e + (_log_one_and(-(2 * a - 1) * e) - _log_one_and(-e)) / (a - 1)


@owned_cache(maxsize=1024)
def _log_one_and(x: Decimal) -> Decimal:
    """ln(1 + exp(x))"""
    with localcontext(CONTEXT):
        return (1 + x.exp()).ln()


def laplace(e: Decimal, a: Decimal) -> Decimal:
    """Continuous Laplace noise: ln[a/(2a-1) exp((a-1)e) + (a-1)/(2a-1) exp(-a e)] / (a-1)."""
    with localcontext(CONTEXT):
        part = a / (2 * a - 1) + (a - 1) / (2 * a - 1) * ((1 - 2 * a) * e).exp()
        return e + part.ln() / (a - 1)


def discrete_laplace(e: Decimal, steps: Decimal, a: Decimal) -> Decimal:
    """Discrete Laplace noise, p = exp(-s) with s = e / steps, on answers that move by `steps`.

    Let t = (1-p)/(1+p) and q = exp(-(2a-1) s). For a change by d, the sum over z of P(z)^a
    P(z - d)^(1-a) is A exp((a-1) s d) + B exp(-a s d), where

        A = t [1/(1-p) + q/(1-q)],
        B = t [1/(1-p) - 1/(1-q)].

    The two tails, z >= d and z <= 0, give the terms with 1/(1-p). The d - 1 values between them
    form a geometric series of ratio q. It gives the terms with 1/(1-q).

    For one step this is `pure`, and for ever finer steps it falls to `laplace`. With c = 2a - 1,
    A is 1/2 + tanh(s/2) / (2 tanh(c s/2)). It grows with s because sinh(c s) > c sinh(s), and the
    curve grows with A.

    As A, B > 0 and A + B = 1, (a-1) R is convex in d and 0 at d = 0. Consider a vector of
    answers with noise of scales 1/s_i whose changes keep sum s_i d_i <= e. The sum of the curves
    is largest where all of the change is in one answer. So the largest of the scalar curves
    bounds it, with steps_i = e / s_i (which need not be an integer). That is the curve of the
    fewest steps."""
    with localcontext(CONTEXT):
        s = e / steps
        p, q = (-s).exp(), ((1 - 2 * a) * s).exp()
        upper = (1 + q * _ratio_of_decays(s, 2 * a - 1)) / (1 + p)
        return e + (upper + (1 - upper) * ((1 - 2 * a) * e).exp()).ln() / (a - 1)


def _ratio_of_decays(s: Decimal, c: Decimal) -> Decimal:
    """(1 - exp(-s)) / (1 - exp(-c s)) for c > 1; where that cancels, an upper bound."""
    if c * s > _CANCELS:
        return (1 - (-s).exp()) / (1 - (-c * s).exp())
    return _ratio_of_decays_near_zero(s, c)


def _ratio_of_decays_near_zero(s: Decimal, c: Decimal) -> Decimal:
    """Upper bound: (1 - exp(-x)) / x is between 1 - x/2 + x^2/6 - x^3/24 and 1 - x/2 + x^2/6
    (alternating series)."""
    x = c * s
    above = 1 - s / 2 + s * s / 6
    below = 1 - x / 2 + x * x / 6 - x * x * x / 24
    return above / (below * c)


def randomized_response(e: Decimal, categories: int, a: Decimal) -> Decimal:
    """k-ary randomised response, one answer replaced.

    ln[(exp(a e) + exp((1-a) e) + k - 2) / (exp(e) + k - 1)] / (a-1), with numerator and
    denominator divided by exp(a e) and exp(e)."""
    with localcontext(CONTEXT):
        others = categories - 2
        top = 1 + ((1 - 2 * a) * e).exp() + others * (-a * e).exp()
        return e + (top.ln() - (1 + (others + 1) * (-e).exp()).ln()) / (a - 1)


def bounded_range(e: Decimal, a: Decimal) -> Decimal:
    """Exponential mechanism, Gumbel noisy max: the log-ratio has range at most e.

    The curve is ln y + (ln c1 - ln a) / (a - 1). Here u = exp(-e), c1 = (1 - u^a)/(1 - u), c2 =
    (u - u^a)/(1 - u) and y = (a - 1) c1 / (a c2). It is never above a e^2 / 8, which holds
    too."""
    with localcontext(CONTEXT):
        if e < Decimal("1e-6") or e > 1000:  # the closed form cancels: use the bounds
            return min(a * e * e / 8, pure(e, a))
        less = _log_one_less(e)
        log_c1 = _log_one_less(a * e) - less
        log_c2 = _log_one_less((a - 1) * e) - e - less  # u - u^a = u (1 - u^(a-1))
        log_y = _log(a - 1) - _log(a) + log_c1 - log_c2
        return min(a * e * e / 8, log_y + (log_c1 - _log(a)) / (a - 1))


@owned_cache(maxsize=1024)
def _log_one_less(x: Decimal) -> Decimal:
    """ln(1 - exp(-x))"""
    with localcontext(CONTEXT):
        return (1 - (-x).exp()).ln()


@owned_cache(maxsize=1024)
def _log(x: Decimal) -> Decimal:
    with localcontext(CONTEXT):
        return x.ln()


def gaussian(rho: Decimal, a: Decimal) -> Decimal:
    """Gaussian noise, continuous or discrete, and any rho-zCDP mechanism: rho a."""
    with localcontext(CONTEXT):
        return rho * a


# zCDP: a rho with R(a) <= rho a for every a > 1


def pure_rho(e: Decimal) -> Decimal:
    """e tanh(e / 2): tight for any e-private mechanism, and below the classical e^2 / 2."""
    with localcontext(CONTEXT):
        u = (-e).exp()
        return e * (1 - u) / (1 + u)


def laplace_rho(e: Decimal) -> Decimal:
    """e + exp(-e) - 1 (Harrison and Manurangsi 2025)."""
    with localcontext(CONTEXT):
        return e + (-e).exp() - 1


def bounded_range_rho(e: Decimal) -> Decimal:
    """e/(exp(e)-1) - 1 + ln((exp(e)-1)/e), tight; where that cancels, the bound e^2 / 8."""
    with localcontext(CONTEXT):
        least = min(e * e / 8, pure_rho(e))
        if not Decimal("1e-6") < e < 1000:
            return least
        falls = 1 - (-e).exp()
        return min(least, e * (1 - falls) / falls - 1 + e + (falls / e).ln())
