"""Decimal arithmetic that rounds one way: down for what must be below, up for what must be above.

The four operations round as their context says. Python's decimal exp, ln and sqrt are correctly
rounded to the nearest, so the number next to theirs on the right side is surely beyond the true
one. Everything here is about numbers that are not negative.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

ZERO = Decimal(0)


class Directed:
    """Operations of so many digits, none of which is above (or below) the true result."""

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
        """b is to be rounded the other way; not below 0."""
        return max(ZERO, self._context.subtract(a, b))

    def times(self, a: Decimal, b: Decimal) -> Decimal:
        return self._context.multiply(a, b)

    def over(self, a: Decimal, b: Decimal) -> Decimal:
        """b is positive, and to be rounded the other way."""
        return self._context.divide(a, b)

    def exp(self, a: Decimal) -> Decimal:
        return self._beyond(self._context.exp(a))

    def falls(self, a: Decimal) -> Decimal:
        """exp(-a); a is to be rounded the other way."""
        return self._beyond(self._context.exp(a.copy_negate()))  # a minus sign would round

    def power(self, a: Decimal, exponent: Decimal) -> Decimal:
        """a^exponent for an a up to 1 and a positive exponent, rounded the other way."""
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
    """Down and up."""
    return Directed(digits, up=False), Directed(digits, up=True)
