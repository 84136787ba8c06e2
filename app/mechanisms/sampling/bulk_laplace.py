"""Exact sampling of many discrete Laplace draws at once: a tenth of a second for 10^5 of them.

With p = exp(-1 / scale), one coin decides whether the noise is zero; it is nonzero with probability
2 p / (1 + p). Its sign is fair, and its size is 1 + G for a geometric G, P(G >= g) = p^g. The
binary digits of G are independent: P(G = g) is in proportion to the product of p^(2^j) over the
digits j that are set. So digit j is set with probability x / (1 + x), x = p^(2^j). The remainder of
G beyond the first digits is geometric again.

A coin of probability h compares a uniform real number with h. Its first 64 bits decide, unless they
equal those of h; then more bits are drawn. So every draw has its distribution exactly.

Rounding: the bits of h come from decimals with enough digits that no rounding could change them.
"""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from app.caches import owned_cache
from app.mechanisms.release import RandomSource

WORD = 64
DEEP = 45  # exp(-45) is below 2^-64: beyond, almost no draw has a digit that is set
Whole = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Coin:
    """Coin with heads at probability h, given as a function of the decimal context."""

    def __init__(self, probability: Callable[[], Decimal]) -> None:
        self._probability = probability
        self._first = np.uint64(self.leading_bits(WORD))

    def leading_bits(self, bits: int) -> int:
        """floor(2^bits h)"""
        digits = 40 + bits // 3
        while True:
            with localcontext(Context(prec=digits, Emin=-(10**9), Emax=10**9)):
                value = self._probability() * (1 << bits)
                # A few roundings; one of them is of an exponent with up to five digits.
                error = value * Decimal(10) ** (10 - digits)
                if value // 1 < (value - error) and (value + error) < value // 1 + 1:
                    return int(value)
            digits *= 2

    def heads(self, size: int, noise: RandomSource) -> Flags:
        """Toss the coin `size` times, independently."""
        words = np.asarray(noise.words(size), dtype=np.uint64)
        outcomes: Flags = words < self._first
        for index in np.flatnonzero(words == self._first):
            outcomes[index] = self._decided(int(words[index]), noise)
        return outcomes

    def decides(self, word: int, noise: RandomSource) -> bool:
        """True if the uniform number that begins with this word is below h."""
        first = int(self._first)
        return self._decided(word, noise) if word == first else word < first

    def _decided(self, number: int, noise: RandomSource) -> bool:
        """True if the uniform number is below h, given that its first 64 bits equal those of h."""
        bits = WORD
        while True:
            number = number << WORD | noise.below(1 << WORD)
            bits += WORD
            limit = self.leading_bits(bits)
            if number != limit:
                return number < limit


class LaplaceDraws:
    """Coins for one scale."""

    def __init__(self, scale: float) -> None:
        rate = 1 / Fraction(scale)
        digits = 0
        while rate * (1 << digits) < DEEP:
            digits += 1

        def power(times: int) -> Decimal:
            """exp(-rate times), in the current decimal context."""
            return (-Decimal(rate.numerator * times) / Decimal(rate.denominator)).exp()

        def coin_of_digit(digit: int) -> Coin:
            return Coin(lambda: power(1 << digit) / (1 + power(1 << digit)))

        self._nonzero = Coin(lambda: 2 * power(1) / (1 + power(1)))
        self._digits = [coin_of_digit(digit) for digit in range(digits)]
        self._beyond = Coin(lambda: power(1 << digits))

    def draw(self, size: int, noise: RandomSource) -> list[int]:
        draws: Whole = np.zeros(size, dtype=np.int64)
        nonzero = np.flatnonzero(self._nonzero.heads(size, noise))
        count = len(nonzero)
        sizes: Whole = np.ones(count, dtype=np.int64)
        for digit, coin in enumerate(self._digits):
            sizes += coin.heads(count, noise).astype(np.int64) << digit
        bits = np.asarray(noise.words(-(-count // WORD)), dtype=np.uint64).view(np.uint8)
        draws[nonzero] = np.where(np.unpackbits(bits)[:count] == 1, -sizes, sizes)
        numbers: list[int] = draws.tolist()
        for index in nonzero[self._beyond.heads(count, noise)]:
            # Python integers: the sum may not fit 64 bits.
            more = 1
            while self._beyond.heads(1, noise)[0]:
                more += 1
            sign = -1 if numbers[index] < 0 else 1
            numbers[index] += sign * (more << len(self._digits))
        return numbers


@owned_cache(maxsize=256)
def laplace_draws(scale: float) -> LaplaceDraws:
    return LaplaceDraws(scale)
