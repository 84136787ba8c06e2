"""Tail probabilities of integer noise: P(Z >= k) for k >= 1, to any number of digits.

Discrete Laplace noise of scale s: exp(-k/s) / (1 + exp(-1/s)). Discrete Gaussian noise of parameter
s: the sum of exp(-z^2 / (2 s^2)) over z >= k, divided by the same sum over all z (Canonne, Kamath
and Steinke 2020). It is summed for parameters up to WIDE. Beyond, the same authors' bound by a
normal law is used (Proposition 25: P(Z >= k) <= P(N >= k - 1)).
Rounding: every result is a pair of decimals with the probability between them. A computation of n
digits has a relative error below 10^(20 - n), and the pair is that far apart.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from app.accounting.curves.gaussian import normal_cdf, normal_quantile
from app.caches import owned_cache
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.bernoulli import bernoulli_exp, geometric

DIGITS = 60
WIDE = 1000.0
Numbers = np.ndarray[Any, np.dtype[np.float64]]
_LOST = 20  # digits lost of those computed


class Tail(Protocol):
    @property
    def scale(self) -> float: ...

    @property
    def exact(self) -> bool:
        """True if the probability can be computed to any number of digits."""
        ...

    def between(self, k: int, digits: int = DIGITS) -> tuple[Decimal, Decimal]:
        """Lower and upper bound of P(Z >= k), for k >= 1."""
        ...

    def reach(self, limit: Decimal) -> int:
        """The least k >= 1 whose upper bound of P(Z >= k) is at most `limit`."""
        ...

    def bound(self, k: Numbers) -> Numbers:
        """Approximate upper bounds of P(Z >= k), for many k at once."""
        ...

    def beyond(self, k: int, noise: RandomSource) -> int:
        """Draw Z given that Z >= k, for k above twice the scale."""
        ...


@dataclass(frozen=True, slots=True)
class LaplaceTail:
    scale: float

    @property
    def exact(self) -> bool:
        return True

    @property
    def rate(self) -> Fraction:
        return 1 / Fraction(self.scale)

    def between(self, k: int, digits: int = DIGITS) -> tuple[Decimal, Decimal]:
        return _laplace(self.scale, k, digits)

    def reach(self, limit: Decimal) -> int:
        with localcontext(_context(DIGITS)):
            rate = _decimal(self.rate)
            k = max(1, int((-(limit * (1 + (-rate).exp())).ln() / rate).to_integral_value()))
        while self.between(k)[1] > limit:
            k += 1
        while k > 1 and self.between(k - 1)[1] <= limit:
            k -= 1
        return k

    def bound(self, k: Numbers) -> Numbers:
        return np.asarray(np.exp(-k / self.scale))

    def beyond(self, k: int, noise: RandomSource) -> int:
        return k + geometric(self.rate, noise)


@dataclass(frozen=True, slots=True)
class GaussianTail:
    scale: float

    @property
    def exact(self) -> bool:
        return self.scale <= WIDE

    def between(self, k: int, digits: int = DIGITS) -> tuple[Decimal, Decimal]:
        if not self.exact:
            with localcontext(_context(DIGITS)):
                above = normal_cdf(-(k - 1) / Decimal(self.scale)) * (1 + Decimal("1e-30"))
            return Decimal(0), above
        tails = _gaussian(self.scale, digits)
        if k > len(tails):
            return Decimal(0), _apart(tails[-1], digits)[1]
        return _apart(tails[k - 1], digits)

    def reach(self, limit: Decimal) -> int:
        if not self.exact:
            with localcontext(_context(DIGITS)):
                steps = normal_quantile(1 - min(limit, Decimal("0.5"))) * Decimal(self.scale)
                k = 1 + int(steps.to_integral_value(ROUND_CEILING))
            return k if self.between(k)[1] <= limit else k + 1
        low, high = 0, len(_gaussian(self.scale, DIGITS))  # at `high` the probability is negligible
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.between(middle)[1] <= limit else (middle, high)
        return high

    def bound(self, k: Numbers) -> Numbers:
        """P(N >= x) <= exp(-x^2 / 2) / 2 for x >= 0."""
        return np.asarray(np.exp(-(((k - 1) / self.scale) ** 2) / 2) / 2)

    def beyond(self, k: int, noise: RandomSource) -> int:
        """Rejection sampling: draw j in proportion to exp(-j k / s^2), accept with exp(-j^2 /
        2s^2).

        The product is in proportion to exp(-(k + j)^2 / 2s^2)."""
        squared = Fraction(self.scale) ** 2
        while True:
            j = geometric(k / squared, noise)
            if bernoulli_exp(j * j / (2 * squared), noise):
                return k + j


@owned_cache(maxsize=4096)
def _laplace(scale: float, k: int, digits: int) -> tuple[Decimal, Decimal]:
    rate = 1 / Fraction(scale)
    with localcontext(_context(digits)):
        return _apart((-_decimal(k * rate)).exp() / (1 + (-_decimal(rate)).exp()), digits)


@owned_cache(maxsize=8)
def _gaussian(scale: float, digits: int) -> tuple[Decimal, ...]:
    """P(Z >= 1), P(Z >= 2), ... down to 10^-digits.

    The sum starts where terms are the square of that, so the omitted terms are below the
    rounding error."""
    kept = math.ceil(scale * math.sqrt(2 * math.log(10) * digits)) + 1
    last = math.ceil(scale * math.sqrt(2 * math.log(10) * 2 * digits)) + 2
    with localcontext(_context(digits)):
        falls = (-1 / _decimal(Fraction(scale) ** 2)).exp()  # exp(-1 / s^2)
        term = ratio = falls.sqrt()
        terms = []
        for _ in range(last):
            terms.append(term)
            ratio *= falls
            term *= ratio
        sums = list(accumulate(reversed(terms)))
        whole = 1 + 2 * sums[-1]
        return tuple(tail / whole for tail in sums[: -kept - 1 : -1])


def _apart(value: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    off = Decimal(f"1e{_LOST - digits}")
    below, above = _context(digits), _context(digits)
    below.rounding, above.rounding = ROUND_FLOOR, ROUND_CEILING
    one = Decimal(1)
    return (
        below.multiply(value, below.subtract(one, off)),
        above.multiply(value, above.add(one, off)),
    )


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _context(digits: int) -> Context:
    return Context(prec=digits, Emax=10**9, Emin=-(10**9))
