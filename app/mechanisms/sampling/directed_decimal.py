"""Decimal arithmetic with one rounding direction: down for lower bounds, up for upper bounds.

The four operations round as their context says. Python's decimal exp, ln and sqrt are correctly
rounded to nearest, so the next number in the chosen direction is surely beyond the true result. All
numbers here are non-negative.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

ZERO = Decimal(0)


class Directed:
    """Operations of `digits` digits that never exceed (or never fall below) the true result."""

    __slots__ = ("_context", "up")

    def __init__(self, digits: int, *, up: bool) -> None:
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        self.up = up
        self._context = Context(prec=digits, rounding=rounding, Emax=10**12, Emin=-(10**12))

    def of(self, value: Fraction | int) -> Decimal:
        return self._context.divide(Decimal(value.numerator), Decimal(value.denominator))

    def add(self, a: Decimal, b: Decimal) -> Decimal:
        return self._context.add(a, b)

    def subtract(self, a: Decimal, b: Decimal) -> Decimal:
        """a - b, not below 0; the caller rounds b in the other direction."""
        return max(ZERO, self._context.subtract(a, b))

    def times(self, a: Decimal, b: Decimal) -> Decimal:
        return self._context.multiply(a, b)

    def over(self, a: Decimal, b: Decimal) -> Decimal:
        """a / b; b is positive, and the caller rounds it in the other direction."""
        return self._context.divide(a, b)

    def exp(self, a: Decimal) -> Decimal:
        return self._beyond(self._context.exp(a))

    def falls(self, a: Decimal) -> Decimal:
        """exp(-a); the caller rounds a in the other direction."""
        return self._beyond(self._context.exp(a.copy_negate()))  # unary minus would round

    def power(self, a: Decimal, exponent: Decimal) -> Decimal:
        """a^exponent for 0 <= a <= 1 and a positive exponent, which the caller rounds the other
        way."""
        if a == 0:
            return ZERO
        log = self._beyond(self._context.ln(a))
        return self._beyond(self._context.exp(self._context.multiply(log, exponent)))

    def root(self, a: Decimal) -> Decimal:
        return self._beyond(self._context.sqrt(a)) if a else ZERO

    def _beyond(self, a: Decimal) -> Decimal:
        return self._context.next_plus(a) if self.up else self._context.next_minus(a)


@lru_cache(maxsize=64)
def both_ways(digits: int) -> tuple[Directed, Directed]:
    """Operations that round down, and operations that round up."""
    return Directed(digits, up=False), Directed(digits, up=True)
