"""Integer units by floats, where floats decide them: the same units as by `renyi_curves.py`.

Each formula here is that of the same name there, without epsilon itself, which is an exact number
of units. It returns the rest as a float and a bound on its error. The error of the decimals is
below their guard. If all values within both errors round up to one unit, that is the unit.
Otherwise the result is None and the caller computes the decimals (Ziv 1991). So a unit never
depends on a float.

Assumes: IEEE doubles, and exp, expm1, log, log1p and erf of the C library within four units in the
last place: 2^-50 of the result, which is U below, and erfc within 2 U (the common libraries stay
well within; test_quick_units.py checks the one in use). The errors in each docstring are in U; one
rounding is an eighth of U. A product c e of a rounded e has a relative error of 2^-52, and because
y exp(-y) < 0.37 that moves exp(-c e) by less than U/10.
"""

import math
from collections.abc import Callable
from statistics import NormalDist

from app.accounting.curves.orders import ORDERS
from app.accounting.precise import INFINITE
from app.accounting.units import PICO

U = 2.0**-50
GUARDED = 3e-8  # in units: the guard, and the decimals' own error, are 1e-20 each
ORDERS_NEAR = tuple(float(order) for order in ORDERS)  # exact: all are multiples of a quarter

_NORMAL = NormalDist()

Near = tuple[float, float]  # a number, and a bound on its error


def units_above(base: int, rest: Near, rounds: int = 1) -> int | None:
    """Units that pay for `base` units plus `rounds` times `rest`; None if floats cannot decide.

    The decimals never charge less than one unit for a loss."""
    value, off = rest
    units = value * rounds * PICO
    margin = off * rounds * PICO + abs(units) * U + GUARDED
    if not margin < 0.5:
        return None
    least, most = base + math.ceil(units - margin), base + math.ceil(units + margin)
    least, most = max(1, least), max(1, most)
    return min(least, INFINITE) if least == most else None


def units_on_grid(base: int, formula: Callable[[float], Near], rounds: int = 1) -> list[int | None]:
    return [units_above(base, formula(order), rounds) for order in ORDERS_NEAR]


def pure(e: float) -> Callable[[float], Near]:
    """(ln(1 + exp(-(2a-1) e)) - ln(1 + exp(-e))) / (a-1).

    Error of each logarithm: 1.1 U from its argument and 0.7 U of its own."""
    base = math.log1p(math.exp(-e))

    def at(a: float) -> Near:
        tails = math.log1p(math.exp(-(2.0 * a - 1.0) * e)) - base
        return tails / (a - 1.0), 4.0 * U / (a - 1.0)

    return at


def discrete_laplace(e: float, s: float) -> Callable[[float], Near]:
    """ln(A + (1 - A) exp(-c e)) / (a-1), A = (1 + q (1-p)/(1-q)) / (1 + p), c = 2a - 1.

    expm1(-x) never has a larger relative error than x. So the error of (1-p)/(1-q) < 1 is 2.5 U,
    of the numerator of A 4 U, of the denominator 1.4 U, and of A, which is from 1/2 to 1, 5.6 U.
    The logarithm's argument is at least 1/2 and has error 6.6 U, so the logarithm has error 14
    U."""
    p, less = math.exp(-s), math.expm1(-s)

    def at(a: float) -> Near:
        c = 2.0 * a - 1.0
        upper = (1.0 + math.exp(-c * s) * (less / math.expm1(-c * s))) / (1.0 + p)
        inside = upper + (1.0 - upper) * math.exp(-c * e)
        return math.log(inside) / (a - 1.0), 15.0 * U / (a - 1.0)

    return at


def laplace(e: float) -> Callable[[float], Near]:
    """ln(a/c + (a-1)/c exp(-c e)) / (a-1), c = 2a - 1: the argument, at least 1/2, has error U."""

    def at(a: float) -> Near:
        c = 2.0 * a - 1.0
        inside = a / c + (a - 1.0) / c * math.exp(-c * e)
        return math.log(inside) / (a - 1.0), 4.0 * U / (a - 1.0)

    return at


def randomized_response(e: float, categories: int) -> Callable[[float], Near]:
    """(ln(1 + exp(-(2a-1) e) + (k-2) exp(-a e)) - ln(1 + (k-1) exp(-e))) / (a-1).

    exp(-y) has relative error y/4 + 1 U, and y x / (1 + x) <= ln k + 1 for x = k exp(-y). So
    each argument has relative error 2.5 + (ln k + 1)/4 U, and its logarithm ln k U more."""
    others = float(categories - 2)
    base = math.log1p((others + 1.0) * math.exp(-e))
    off = (8.0 + 3.0 * math.log(categories)) * U

    def at(a: float) -> Near:
        inside = math.exp(-(2.0 * a - 1.0) * e) + others * math.exp(-a * e)
        return (math.log1p(inside) - base) / (a - 1.0), off / (a - 1.0)

    return at


def bounded_range(e: float) -> Callable[[float], Near]:
    """g(a e) - g((a-1) e) + (g(a e) - g(e)) / (a-1) for g(x) = ln((1 - exp(-x)) / x).

    In the decimals' formula the logarithms of a, a - 1 and e cancel. As -1 < x g'(x) < 0, the
    error of g is 1.4 + |g| U. Only for e between 1e-6 and 1000, as there."""
    first = _fall(e)

    def at(a: float) -> Near:
        here, before = _fall(a * e), _fall((a - 1.0) * e)
        off = 4.0 - 1.25 * (here + before) + (4.0 - 1.25 * (here + first)) / (a - 1.0)
        return here - before + (here - first) / (a - 1.0), off * U

    return at


def _fall(x: float) -> float:
    return math.log(-math.expm1(-x) / x)


def pure_rho(e: float) -> Near:
    """e tanh(e/2) - e = -2 e u / (1 + u), u = exp(-e).

    The relative error of u is e/8 + 1 U, and that of the rest less than U."""
    u = math.exp(-e)
    rest = -2.0 * e * u / (1.0 + u)
    return rest, -rest * (e / 8.0 + 3.0) * U


def laplace_rho(e: float) -> Near:
    """exp(-e) - 1."""
    rest = math.expm1(-e)
    return rest, 2.0 * U


def bounded_range_rho(e: float) -> Near:
    """e / (exp(e) - 1) - 1 + g(e), g as above.

    The first part is below 1 and has error 2.5 U. Only for e between 1e-6 and 1000, as there."""
    fall = _fall(e)
    first = e * math.exp(-e) / -math.expm1(-e)
    return first - 1.0 + fall, (5.0 - 1.25 * fall) * U


def pure_mu_squared(e: float) -> Near | None:
    """8 y^2 for the y with erf(y) = tanh(e/2): mu^2, as Phi(mu/2) = 1/(1 + exp(-e)).

    Newton steps, where only the last residual counts, with erf up to a half, beyond with erfc(y)
    = 2u/(1 + u), u = exp(-e). The relative error of tanh is 2 U, that of 2u/(1 + u) is e/8 + 2
    U. A relative change of y moves erf and erfc by at least 0.8 of it; y is squared. The
    decimals' mu is above the true one by a relative amount below 1e-19, which the margin of
    `units_above` covers."""
    u = math.exp(-e)
    goal = -math.expm1(-e) / (1.0 + u)
    low = goal <= 0.5
    if low:
        y = goal * (0.886 + 0.232 * goal * goal)
    else:
        goal = 2.0 * u / (1.0 + u)
        y = -_NORMAL.inv_cdf(goal / 2.0) * math.sqrt(0.5)
    for _ in range(4):
        missing = goal - math.erf(y) if low else math.erfc(y) - goal
        y += missing / (2.0 / math.sqrt(math.pi) * math.exp(-y * y))
    residual = abs(goal - math.erf(y)) if low else abs(math.erfc(y) - goal)
    if not residual <= U * goal:
        return None
    value = 8.0 * y * y
    of_itself = 12.0 if low else 14.0 + e / 3.0
    return value, value * of_itself * U
