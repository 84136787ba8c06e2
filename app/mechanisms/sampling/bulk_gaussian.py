"""Exact sampling of many discrete Gaussian draws at once.

Theorem: Canonne, Kamath and Steinke (2020), Algorithm 3. Keep a discrete Laplace draw Y of scale t
with probability exp(-x), x = (|Y| - s^2 / t)^2 / (2 s^2). Kept draws have the discrete Gaussian
distribution of parameter s, as exp(-|y| / t) exp(-x) is a constant times exp(-y^2 / (2 s^2)). This
holds for any t, and t near s keeps most draws.

A draw is kept if a uniform real number is below exp(-x). 64 bits of the number are drawn, and
exp(-x) is computed in floats for all draws at once, with a relative error far below MARGIN. |Y| and
s^2 / t have relative errors below 2^-52, and are at most 2^10 s where x is not above DEEP, so the
error of x is below 2^-35. The 64 bits and this margin leave one draw in 10^9 undecided. Exact
arithmetic with as many bits as needed decides it. So every draw has its distribution exactly.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from app.caches import owned_cache
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.bulk_laplace import WORD, Coin, Whole, laplace_draws

MARGIN = 1e-9
DEEP = 300.0  # larger exponents use exact arithmetic; almost no draw has one
SPARE = 1.7  # Laplace draws per requested draw: more than one in 1.7 is kept


class GaussianDraws:
    """Sampler for one parameter."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._from = float(int(scale) + 1)  # scale of the Laplace draws
        self._exact = Fraction(scale)

    def draw(self, size: int, noise: RandomSource) -> list[int]:
        accepted: list[int] = []
        while len(accepted) < size:
            attempts = int(SPARE * (size - len(accepted))) + 16
            drawn = laplace_draws(self._from).draw(attempts, noise)
            accepted += [drawn[index] for index in self._kept(drawn, noise)]
        return accepted[:size]

    def _kept(self, drawn: list[int], noise: RandomSource) -> Whole:
        """Indices of the draws that are kept."""
        far = np.abs(np.array(drawn, dtype=np.float64)) - self._scale * self._scale / self._from
        x = (far / self._scale) ** 2 / 2.0
        shallow = x <= DEEP
        probability = np.exp(-np.minimum(x, DEEP)) * 2.0**WORD
        words = np.asarray(noise.words(len(drawn)), dtype=np.uint64)
        number = words.astype(np.float64)
        kept = shallow & (number + 1.0 <= probability * (1.0 - MARGIN))
        open_ = ~kept & ~(shallow & (number >= probability * (1.0 + MARGIN)))
        for index in np.flatnonzero(open_):
            kept[index] = self._keeps(drawn[index], int(words[index]), noise)
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
