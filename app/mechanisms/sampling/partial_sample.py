"""Random real numbers of which only as many bits are drawn as are looked at.

A number is known to lie between two ends, and more bits bring these together. What is done with it
in the end, here rounding to a grid, is decided as soon as both ends give the same; so it is decided
exactly as for the real number itself, whose further bits are never needed.

Coins with a chance that is a function of such numbers are thrown the same way: a uniform number is
compared with the chance, bit after bit. Once thrown, what is not yet drawn of the numbers is as
free as before, because the outcome is the same whatever it will be.

Normal and exponential numbers: von Neumann 1951 and Karney 2016, in their plainest form: a whole
part and a uniform part x, kept with what the density is at x in proportion to that at 0.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.bernoulli import WORD, bernoulli_exp, geometric
from app.mechanisms.sampling.directed_decimal import Directed, both_ways

Ends = tuple[Decimal, Decimal]  # one below, one above, none negative
# Sizes beyond are taken as this one. Scales are above 10^-80 of the width of the bounds to which
# answers are clamped (smooth bounds have a floor and divisors a ceiling), so it changes no answer.
SIZE_MAX = 10**120


class PartialSample:
    """whole + a uniform number between 0 and 1."""

    __slots__ = ("_noise", "_part", "bits", "whole")

    def __init__(self, noise: RandomSource, whole: int = 0) -> None:
        self._noise, self.whole = noise, whole
        self._part = self.bits = 0
        self.more()

    def more(self) -> None:
        self._part = self._part << WORD | self._noise.below(1 << WORD)
        self.bits += WORD

    def low(self, down: Directed) -> Decimal:
        return down.of(self.whole + Fraction(self._part, 1 << self.bits))

    def high(self, up: Directed) -> Decimal:
        return up.of(self.whole + Fraction(self._part + 1, 1 << self.bits))

    def ends(self) -> tuple[Fraction, Fraction]:
        return (
            self.whole + Fraction(self._part, 1 << self.bits),
            self.whole + Fraction(self._part + 1, 1 << self.bits),
        )


def digits_for(*numbers: PartialSample) -> int:
    """So many that rounding is less than what the bits leave open."""
    return 40 + 2 * max(number.bits for number in numbers) // 5


def bernoulli(noise: RandomSource, chance: Callable[[int], Ends], *numbers: PartialSample) -> bool:
    """A coin of this chance, told for a number of digits by its two ends; `numbers` are those that
    it is a function of, and get more bits if they must."""
    uniform = PartialSample(noise)
    while True:
        digits = digits_for(uniform, *numbers)
        down, up = both_ways(digits)
        low, high = chance(digits)
        if uniform.high(up) <= low:
            return True
        if uniform.low(down) >= high:
            return False
        for number in (uniform, *numbers):
            number.more()


def exponential(noise: RandomSource) -> PartialSample:
    """Density exp(-x) for x >= 0: the part x is kept with probability exp(-x)."""
    while True:
        part = PartialSample(noise)

        def chance(digits: int, part: PartialSample = part) -> Ends:
            down, up = both_ways(digits)
            return down.falls(part.high(up)), up.falls(part.low(down))

        if bernoulli(noise, chance, part):
            part.whole = geometric(Fraction(1), noise)
            return part


def half_normal(noise: RandomSource) -> PartialSample:
    """Density in proportion to exp(-x^2 / 2) for x >= 0: (k + x)^2 / 2 is k / 2, by which k is
    drawn, and k (k - 1) / 2 and x (2 k + x) / 2, with which it is kept."""
    while True:
        k = geometric(Fraction(1, 2), noise)
        if not bernoulli_exp(Fraction(k * (k - 1), 2), noise):
            continue
        part = PartialSample(noise)

        def chance(digits: int, part: PartialSample = part, k: int = k) -> Ends:
            down, up = both_ways(digits)

            def falls(x: Decimal, one_way: Directed, other: Directed) -> Decimal:
                half = other.times(other.times(x, other.add(x, Decimal(2 * k))), Decimal("0.5"))
                return one_way.falls(half)

            return falls(part.high(up), down, up), falls(part.low(down), up, down)

        if bernoulli(noise, chance, part):
            part.whole = k
            return part


def rounded(
    centre: Fraction,
    scale: Fraction,
    exponent: int,
    negative: bool,
    size: Callable[[int], Ends],
    numbers: tuple[PartialSample, ...],
) -> int:
    """centre + scale * z to the nearest whole number of steps of 2^-exponent, halves upwards, for a
    z whose size is told by its two ends, as a function of these numbers."""
    steps = Fraction(2) ** exponent
    start, slope = centre * steps + Fraction(1, 2), scale * steps
    while True:
        low, high = (Fraction(min(end, Decimal(SIZE_MAX))) for end in size(digits_for(*numbers)))
        ends = (-high, -low) if negative else (low, high)
        first, last = ((start + slope * end).__floor__() for end in ends)
        if first == last:
            return first
        for number in numbers:
            number.more()
