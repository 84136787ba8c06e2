"""What mechanisms cost in whole units: Renyi curves on the public grid, and rho.

Worked out by floats where these can tell the unit (`quick.py`), and by the decimals of `curves.py`
where they cannot: the units are the decimals' own, on every machine. `epsilon` is in units; several
`rounds` share it evenly.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from app.accounting import curves, quick
from app.accounting.curves import Curve
from app.accounting.precise import CONTEXT, decimal, units_up
from app.accounting.rounding import PICO

Slowly = Callable[[Sequence[int]], Sequence[int]]  # the units at some places of the grid


def pure_curve(epsilon: int, rounds: int = 1) -> Curve:
    e = _each(epsilon, rounds)
    found = quick.units_on_grid(epsilon, quick.pure(_near(epsilon, rounds)), rounds)
    if rounds == 1:
        return _decided(found, lambda places: curves.pure_on_grid(e, places))
    return _decided(found, _rounds(lambda order: curves.pure(e, order), rounds))


def bounded_range_curve(epsilon: int, rounds: int = 1) -> Curve:
    e, near = _each(epsilon, rounds), _near(epsilon, rounds)
    found: list[int | None] = [None] * len(quick.ORDERS_NEAR)
    if _closed(near):
        found = quick.units_on_grid(epsilon, quick.bounded_range(near), rounds)
    return _decided(found, _rounds(lambda order: curves.bounded_range(e, order), rounds))


def discrete_laplace_curve(epsilon: int, steps: Fraction) -> Curve:
    e = _each(epsilon)
    scale = epsilon * steps.denominator / (PICO * steps.numerator)  # of whole numbers: rounded once
    found: list[int | None] = [None] * len(quick.ORDERS_NEAR)
    if scale > 0.0:
        found = quick.units_on_grid(epsilon, quick.discrete_laplace(_near(epsilon), scale))
    return _decided(
        found, lambda places: curves.discrete_laplace_on_grid(e, decimal(steps), places)
    )


def pure_at(epsilon: int, place: int) -> int:
    """`pure_curve` at one place of the grid."""
    found = quick.units_above(epsilon, quick.pure(_near(epsilon))(quick.ORDERS_NEAR[place]))
    return curves.pure_on_grid(_each(epsilon), [place])[0] if found is None else found


def laplace_curve(epsilon: int) -> Curve:
    e = _each(epsilon)
    found = quick.units_on_grid(epsilon, quick.laplace(_near(epsilon)))
    return _decided(found, _rounds(lambda order: curves.laplace(e, order)))


def randomized_response_curve(epsilon: int, categories: int) -> Curve:
    e = _each(epsilon)
    formula = quick.randomized_response(_near(epsilon), categories)
    return _decided(
        quick.units_on_grid(epsilon, formula),
        _rounds(lambda order: curves.randomized_response(e, categories, order)),
    )


def pure_rho(epsilon: int, rounds: int = 1) -> int:
    found = quick.units_above(epsilon, quick.pure_rho(_near(epsilon, rounds)), rounds)
    return _slow_rho(curves.pure_rho, epsilon, rounds) if found is None else found


def laplace_rho(epsilon: int) -> int:
    found = quick.units_above(epsilon, quick.laplace_rho(_near(epsilon)))
    return _slow_rho(curves.laplace_rho, epsilon) if found is None else found


def bounded_range_rho(epsilon: int, rounds: int = 1) -> int:
    near, found = _near(epsilon, rounds), None
    if _closed(near):
        found = quick.units_above(epsilon, quick.bounded_range_rho(near), rounds)
    return _slow_rho(curves.bounded_range_rho, epsilon, rounds) if found is None else found


def _near(epsilon: int, rounds: int = 1) -> float:
    return epsilon / (PICO * rounds)  # of whole numbers: rounded once


def _each(epsilon: int, rounds: int = 1) -> Decimal:
    return decimal(Fraction(epsilon, PICO * rounds))


def _closed(e: float) -> bool:
    """Surely where the decimals use the closed form."""
    return 1.000001e-6 < e < 999.999


def _decided(found: list[int | None], slowly: Slowly) -> Curve:
    open_places = [place for place, units in enumerate(found) if units is None]
    worked_out = dict(zip(open_places, slowly(open_places), strict=True)) if open_places else {}
    return tuple(worked_out[place] if units is None else units for place, units in enumerate(found))


def _rounds(formula: curves.Formula, rounds: int = 1) -> Slowly:
    def slowly(places: Sequence[int]) -> Sequence[int]:
        with localcontext(CONTEXT):
            return curves.on_grid(lambda order: rounds * formula(order), places)

    return slowly


def _slow_rho(formula: Callable[[Decimal], Decimal], epsilon: int, rounds: int = 1) -> int:
    with localcontext(CONTEXT):
        return units_up(rounds * formula(_each(epsilon, rounds)))
