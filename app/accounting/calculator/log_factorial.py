"""Logarithms of factorials of any size, by Stirling's series.

The error of the series is below the first term left out (Whittaker and Watson, 12.33).
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb

_TERMS = 20
_LARGE = 200  # from here on the error of the series is below 1e-60
_HALF_LN_TWO_PI = Decimal(
    "0.918938533204672741780329736405617639861397473637783412817151540482765695927260397694743298"
)


def log_binomial(n: int, k: int) -> Decimal:
    """ln C(n, k), to about as many digits as the context has."""
    if min(k, n - k) < _LARGE:
        return Decimal(comb(n, k)).ln()
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k)


def log_factorial(n: int) -> Decimal:
    """ln n! for n >= 200"""
    x = Decimal(n)
    total = (x + Decimal("0.5")) * x.ln() - x + _HALF_LN_TWO_PI
    power = 1 / x
    square = power * power
    for coefficient in _stirling():
        total += power * coefficient.numerator / coefficient.denominator
        power *= square
    return total


@lru_cache(maxsize=1)
def _stirling() -> tuple[Fraction, ...]:
    """B(2j) / (2j (2j - 1)), j = 1, 2, ..."""
    bernoulli = [Fraction(1)]
    for m in range(1, 2 * _TERMS + 1):
        bernoulli.append(-sum(comb(m + 1, j) * bernoulli[j] for j in range(m)) / Fraction(m + 1))
    return tuple(bernoulli[2 * j] / (2 * j * (2 * j - 1)) for j in range(1, _TERMS + 1))
