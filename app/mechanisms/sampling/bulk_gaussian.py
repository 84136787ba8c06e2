"""Many draws of discrete Gaussian noise at once, exactly.

Theorem: Canonne, Kamath and Steinke (2020), Algorithm 3: a discrete Laplace draw Y of scale t that
is kept with probability exp(-x), x = (|Y| - s^2 / t)^2 / (2 s^2), has the discrete Gaussian law of
parameter s, as exp(-|y| / t) exp(-x) is a constant times exp(-y^2 / (2 s^2)); for any t, and t near
s keeps most.

A draw is kept if a uniform real number is below exp(-x). Of the number 64 bits are drawn, and
exp(-x) is worked out in floats for all draws at once, with an error that is far below MARGIN of it:
|Y| and s^2 / t are within 2^-52 of their size, which is at most 2^10 s where x is not above DEEP,
so x is off by less than 2^-35. Whatever the 64 bits and this margin leave open, one draw in 10^9,
is decided by exact arithmetic and as many bits as it takes. So every draw has its law exactly.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from app.caches import owned_cache
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.bulk_laplace import WORD, Coin, Whole, laplace_draws

MARGIN = 1e-9
DEEP = 300.0  # what is deeper is left to exact arithmetic; hardly any draw is
SPARE = 1.7  # so many Laplace draws for each that is wanted: more than one in 1.7 is kept


class GaussianDraws:
    """The draws of one parameter."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._from = float(int(scale) + 1)  # of the Laplace draws
        self._exact = Fraction(scale)

    def draw(self, size: int, noise: RandomSource) -> list[int]:
        found: list[int] = []
        while len(found) < size:
            wanted = int(SPARE * (size - len(found))) + 16
            drawn = laplace_draws(self._from).draw(wanted, noise)
            found += [drawn[place] for place in self._kept(drawn, noise)]
        return found[:size]

    def _kept(self, drawn: list[int], noise: RandomSource) -> Whole:
        """The places of the draws that are kept."""
        far = np.abs(np.array(drawn, dtype=np.float64)) - self._scale * self._scale / self._from
        x = (far / self._scale) ** 2 / 2.0
        shallow = x <= DEEP
        probability = np.exp(-np.minimum(x, DEEP)) * 2.0**WORD
        words = np.asarray(noise.words(len(drawn)), dtype=np.uint64)
        number = words.astype(np.float64)
        kept = shallow & (number + 1.0 <= probability * (1.0 - MARGIN))
        open_ = ~kept & ~(shallow & (number >= probability * (1.0 + MARGIN)))
        for place in np.flatnonzero(open_):
            kept[place] = self._keeps(drawn[place], int(words[place]), noise)
        return np.flatnonzero(kept)

    def _keeps(self, y: int, word: int, noise: RandomSource) -> bool:
        far = abs(y) - self._exact**2 / Fraction(self._from)
        x = far**2 / (2 * self._exact**2)
        if x == 0:
            return True
        coin = Coin(lambda: (-Decimal(x.numerator) / Decimal(x.denominator)).exp())
        return coin.decides(word, noise)


@owned_cache(maxsize=256)
def gaussian_draws(scale: float) -> GaussianDraws:
    return GaussianDraws(scale)
