"""Exact discrete noise from `secrets` alone: replaces OpenDP's, which cannot be seeded.

Algorithms: Canonne, Kamath and Steinke 2020, with fractions.
"""

import secrets
from fractions import Fraction


def discrete_laplace(scale: float, size: int) -> list[int]:
    return [_laplace(Fraction(scale)) for _ in range(size)]


def discrete_gaussian(scale: float, size: int) -> list[int]:
    return [_gaussian(Fraction(scale)) for _ in range(size)]


def _laplace(scale: Fraction) -> int:
    """P(z) proportional to exp(-|z| / scale)."""
    while True:
        rest = secrets.randbelow(scale.numerator)
        if not _exp(Fraction(rest, scale.numerator)):
            continue
        whole = 0
        while _exp(Fraction(1)):
            whole += 1
        size = (rest + whole * scale.numerator) // scale.denominator
        negative = secrets.randbelow(2)
        if size or not negative:
            return -size if negative else size


def _gaussian(scale: Fraction) -> int:
    """P(z) proportional to exp(-z^2 / (2 scale^2))."""
    square = scale * scale
    proposed = Fraction(int(scale) + 1)
    while True:
        drawn = _laplace(proposed)
        if _exp((abs(drawn) - square / proposed) ** 2 / (2 * square)):
            return drawn


def _exp(rate: Fraction) -> bool:
    """True with probability exp(-rate)."""
    while rate > 1:
        if not _exp(Fraction(1)):
            return False
        rate -= 1
    count = 1
    while secrets.randbelow(rate.denominator * count) < rate.numerator:
        count += 1
    return count % 2 == 1
