"""Real numbers for the ledger: decimal arithmetic, with the same digits on every machine.

Python's decimal exp, ln and sqrt are correctly rounded. So a formula evaluated in one fixed context
gives one result everywhere, unlike floats, whose exp differs between C libraries. 40 digits leave
an error far below the guard of 1e-20, which is added before a cost rounds up to a whole unit and
subtracted before a limit rounds down. A formula used here must keep its absolute error below it.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from app.accounting.units import PICO, UNITS_MAX

CONTEXT = Context(prec=40, Emax=10**9, Emin=-(10**9))
GUARD = Decimal("1e-20")
INFINITE = UNITS_MAX  # number of units that means no bound at all; sums stop there


def decimal(value: Fraction | int) -> Decimal:
    """The fraction to 40 digits."""
    with localcontext(CONTEXT):
        return Decimal(value.numerator) / Decimal(value.denominator)


def units_up(value: Decimal, unit: int = PICO) -> int:
    """Units that pay for a computed value: never below the true one."""
    with localcontext(CONTEXT):
        if not value.is_finite():
            return INFINITE
        units = int(((value + GUARD) * unit).to_integral_value(ROUND_CEILING))
        return min(max(0, units), INFINITE)


def units_down(value: Decimal, unit: int = PICO) -> int:
    """Units that a computed limit allows: never above the true one; -1 allows nothing."""
    with localcontext(CONTEXT):
        if not value.is_finite():
            raise ValueError("a limit must be finite")
        units = int(((value - GUARD) * unit).to_integral_value(ROUND_FLOOR))
        return min(max(-1, units), INFINITE - 1)
