"""Costs of mechanisms in integer units: Renyi curves on the public grid, and rho.

Floats compute the unit where they can decide it (`quick_units.py`), otherwise the decimals of
`renyi_curves.py` do. So the units are the decimals' own, on every machine. `epsilon` is in units;
several `rounds` share it evenly.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from app.accounting.curves import quick_units, renyi_curves
from app.accounting.curves.renyi_curves import RenyiCurve
from app.accounting.precise import CONTEXT, decimal, units_up
from app.accounting.units import PICO

Slowly = Callable[[Sequence[int]], Sequence[int]]  # maps indices of the grid to their units


def pure_curve(epsilon: int, rounds: int = 1) -> RenyiCurve:
    e = _each(epsilon, rounds)
    quick = quick_units.units_on_grid(epsilon, quick_units.pure(_near(epsilon, rounds)), rounds)
    if rounds == 1:
        return _decided(quick, lambda places: renyi_curves.pure_on_grid(e, places))
    return _decided(quick, _rounds(lambda order: renyi_curves.pure(e, order), rounds))


def bounded_range_curve(epsilon: int, rounds: int = 1) -> RenyiCurve:
    e, near = _each(epsilon, rounds), _near(epsilon, rounds)
    quick: list[int | None] = [None] * len(quick_units.ORDERS_NEAR)
    if _closed(near):
        quick = quick_units.units_on_grid(epsilon, quick_units.bounded_range(near), rounds)
    return _decided(quick, _rounds(lambda order: renyi_curves.bounded_range(e, order), rounds))


def discrete_laplace_curve(epsilon: int, steps: Fraction) -> RenyiCurve:
    e = _each(epsilon)
    scale = epsilon * steps.denominator / (PICO * steps.numerator)  # integers: rounded once
    quick: list[int | None] = [None] * len(quick_units.ORDERS_NEAR)
    if scale > 0.0:
        quick = quick_units.units_on_grid(
            epsilon, quick_units.discrete_laplace(_near(epsilon), scale)
        )
    return _decided(
        quick, lambda places: renyi_curves.discrete_laplace_on_grid(e, decimal(steps), places)
    )


def pure_at(epsilon: int, index: int) -> int:
    """`pure_curve` at one index of the grid."""
    quick = quick_units.units_above(
        epsilon, quick_units.pure(_near(epsilon))(quick_units.ORDERS_NEAR[index])
    )
    return renyi_curves.pure_on_grid(_each(epsilon), [index])[0] if quick is None else quick


def laplace_curve(epsilon: int) -> RenyiCurve:
    e = _each(epsilon)
    quick = quick_units.units_on_grid(epsilon, quick_units.laplace(_near(epsilon)))
    return _decided(quick, _rounds(lambda order: renyi_curves.laplace(e, order)))


def randomized_response_curve(epsilon: int, categories: int) -> RenyiCurve:
    e = _each(epsilon)
    formula = quick_units.randomized_response(_near(epsilon), categories)
    return _decided(
        quick_units.units_on_grid(epsilon, formula),
        _rounds(lambda order: renyi_curves.randomized_response(e, categories, order)),
    )


def pure_rho(epsilon: int, rounds: int = 1) -> int:
    quick = quick_units.units_above(epsilon, quick_units.pure_rho(_near(epsilon, rounds)), rounds)
    return _slow_rho(renyi_curves.pure_rho, epsilon, rounds) if quick is None else quick


def laplace_rho(epsilon: int) -> int:
    quick = quick_units.units_above(epsilon, quick_units.laplace_rho(_near(epsilon)))
    return _slow_rho(renyi_curves.laplace_rho, epsilon) if quick is None else quick


def bounded_range_rho(epsilon: int, rounds: int = 1) -> int:
    near, quick = _near(epsilon, rounds), None
    if _closed(near):
        quick = quick_units.units_above(epsilon, quick_units.bounded_range_rho(near), rounds)
    return _slow_rho(renyi_curves.bounded_range_rho, epsilon, rounds) if quick is None else quick


def _near(epsilon: int, rounds: int = 1) -> float:
    return epsilon / (PICO * rounds)  # integers: rounded once


def _each(epsilon: int, rounds: int = 1) -> Decimal:
    return decimal(Fraction(epsilon, PICO * rounds))


def _closed(e: float) -> bool:
    """True if the decimals surely use the closed form."""
    return 1.000001e-6 < e < 999.999


def _decided(quick: list[int | None], slowly: Slowly) -> RenyiCurve:
    undecided = [index for index, units in enumerate(quick) if units is None]
    computed = dict(zip(undecided, slowly(undecided), strict=True)) if undecided else {}
    return tuple(computed[index] if units is None else units for index, units in enumerate(quick))


def _rounds(formula: renyi_curves.Formula, rounds: int = 1) -> Slowly:
    def slowly(places: Sequence[int]) -> Sequence[int]:
        with localcontext(CONTEXT):
            return renyi_curves.on_grid(lambda order: rounds * formula(order), places)

    return slowly


def _slow_rho(formula: Callable[[Decimal], Decimal], epsilon: int, rounds: int = 1) -> int:
    with localcontext(CONTEXT):
        return units_up(rounds * formula(_each(epsilon, rounds)))
