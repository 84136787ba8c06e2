"""Random real numbers whose bits are drawn only as needed.

A number is known to lie between two ends, and more bits narrow the interval. The final operation,
here rounding to a grid, is decided as soon as both ends give the same result. So the decision is
exactly that for the real number itself, whose further bits are never needed.

Coins whose probability is a function of such numbers work the same way: a uniform number is
compared with the probability, bit after bit. After the toss the undrawn bits of the numbers are as
random as before, because the outcome does not depend on them.

Normal and exponential numbers: von Neumann 1951 and Karney 2016, in their simplest form: an integer
part and a uniform part x, kept with probability density(x) / density(0).
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.bernoulli import WORD, bernoulli_exp, geometric
from app.mechanisms.sampling.directed_decimal import Directed, both_ways

Ends = tuple[Decimal, Decimal]  # lower and upper bound, both non-negative
# Larger sizes are replaced by this one. Scales are above 10^-80 of the width of the bounds to which
# answers are clamped (smooth bounds have a floor and divisors a ceiling), so it changes no answer.
SIZE_MAX = 10**120


class PartialSample:
    """An integer plus a uniform number between 0 and 1."""

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
    """Number of digits at which rounding is smaller than the interval left by the drawn bits."""
    return 40 + 2 * max(number.bits for number in numbers) // 5


def bernoulli(noise: RandomSource, chance: Callable[[int], Ends], *numbers: PartialSample) -> bool:
    """Toss a coin whose probability is a function of `numbers`.

    `chance` returns lower and upper bound of the probability for a number of digits. The numbers
    receive more bits if needed."""
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
    """Draw with density exp(-x) for x >= 0: the fractional part x is kept with probability
    exp(-x)."""
    while True:
        part = PartialSample(noise)

        def chance(digits: int, part: PartialSample = part) -> Ends:
            down, up = both_ways(digits)
            return down.falls(part.high(up)), up.falls(part.low(down))

        if bernoulli(noise, chance, part):
            part.whole = geometric(Fraction(1), noise)
            return part


def half_normal(noise: RandomSource) -> PartialSample:
    """Draw with density in proportion to exp(-x^2 / 2) for x >= 0.

    (k + x)^2 / 2 = k / 2 + k (k - 1) / 2 + x (2 k + x) / 2. The first term is the law from which
    k is drawn. The other two are the logarithms, negated, of the probabilities of keeping k
    and x."""
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
    """Round centre + scale * z to the nearest multiple of 2^-exponent, halves upwards; count the
    steps.

    `size` returns lower and upper bound of |z| as a function of `numbers`."""
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
