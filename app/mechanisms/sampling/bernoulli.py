"""Exact coins: heads with probability exp(-x), from random integers and exact arithmetic.

Theorem: Canonne, Kamath and Steinke (2020), Algorithms 1 and 2: exp(-x) for rational x, and the
geometric and discrete Laplace distributions built from it. For integer x there is a second way:
compare a uniform real number, whose bits are drawn as needed, with the bits of exp(-x). It decides
many coins at once, each by its first 64 bits except one in 2^64.
Rounding: none. The bits of exp(-x) come from correctly rounded decimals, with more digits until no
rounding could change them.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from app.mechanisms.release import RandomSource

WORD = 64
DEEP = 45  # exp(-45) is below 2^-64: beyond, later bits decide


def bernoulli_exp(exponent: Fraction, noise: RandomSource) -> bool:
    """True with probability exp(-exponent), for an exponent of 0 or more."""
    whole, rest = divmod(exponent.numerator, exponent.denominator)
    while whole > 0:  # ends at the first tail
        if not _heads_within_one(1, 1, noise):
            return False
        whole -= 1
    return _heads_within_one(rest, exponent.denominator, noise)


def _heads_within_one(top: int, bottom: int, noise: RandomSource) -> bool:
    """Coin of exp(-x) for x = top / bottom <= 1: the first k at which a coin of x / k fails is
    odd."""
    k = 1
    while noise.below(bottom * k) < top:
        k += 1
    return k % 2 == 1


@lru_cache(maxsize=1024)
def leading_bits(whole: int, bits: int) -> int:
    """First bits of exp(-whole): floor(2^bits exp(-whole)). For exp(0) = 0.111... all ones."""
    if whole == 0:
        return (1 << bits) - 1
    digits = 40 + bits // 3
    while True:
        with localcontext(Context(prec=digits, Emin=-(10**9), Emax=10**9)):
            value = Decimal(-whole).exp() * (1 << bits)
            rest = value % 1
            if Decimal("1e-30") < rest < 1 - Decimal("1e-30"):
                return int(value)
        digits *= 2


FIRST_BITS = tuple(leading_bits(whole, WORD) for whole in range(DEEP + 1))


def uniform_below_exp(word: int, whole: int, noise: RandomSource) -> bool:
    """True if the uniform number that begins with these 64 bits is below exp(-whole)."""
    bits = WORD
    while word == leading_bits(whole, bits):
        word = word << WORD | noise.below(1 << WORD)
        bits += WORD
    return word < leading_bits(whole, bits)


def geometric(rate: Fraction, noise: RandomSource) -> int:
    """Draw an integer G >= 0 with P(G >= g) = exp(-rate g)."""
    bottom = rate.denominator
    part = noise.below(bottom)
    while not _heads_within_one(part, bottom, noise):
        part = noise.below(bottom)
    whole = 0
    while _heads_within_one(1, 1, noise):
        whole += 1
    return (part + bottom * whole) // rate.numerator


def discrete_laplace(rate: Fraction, noise: RandomSource) -> int:
    """Draw Z with P(Z = z) in proportion to exp(-rate |z|)."""
    while True:
        size, negative = geometric(rate, noise), noise.below(2) == 1
        if size or not negative:
            return -size if negative else size


def positive_side(rate: Fraction, noise: RandomSource) -> bool:
    """True with probability 1 / (1 + exp(-rate)). For discrete Laplace noise, P(Z >= z) =
    exp(-rate z) / (1 + exp(-rate)) for z >= 1."""
    while noise.below(2):
        if bernoulli_exp(rate, noise):
            return False
    return True
