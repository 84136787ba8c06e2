"""Exact sampling of the counts that reach a threshold after noise.

Counts far below the threshold get no draw of their own. Near the threshold and above it noise is
drawn and added. Consider a count that is k below it, k above twice the noise scale. One uniform
number decides whether its noise is at least k, by comparing its bits with those of P(Z >= k). 64
bits nearly always decide, and more are drawn until they do. If the noise is at least k, it is drawn
under that condition. The distribution is that of noise on every count, to the last bit. (A million
counts of one row take 0.1 s; drawing noise for each takes 15 s.)
"""

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np

from app.mechanisms.noise.additive import NoiseDistribution
from app.mechanisms.noise.tails import DIGITS, Tail
from app.mechanisms.release import RandomSource

Whole = np.ndarray[Any, np.dtype[np.int64]]
WORD = 64
_MORE = 1.0 + 1e-6  # many times the largest relative error of the floats
_LEAST = 2.0**-60


def sample_counts_above(
    counts: Whole, bar: int, *, law: NoiseDistribution, tail: Tail, noise: RandomSource
) -> Iterator[tuple[int, int]]:
    """Yield index and noisy count of every count whose noisy value is at least `bar`."""
    short = bar - counts
    far = short > 2.0 * tail.scale + 1.0 if tail.exact else np.zeros(len(counts), dtype=bool)
    near = np.flatnonzero(~far)
    for index, z in zip(near.tolist(), law.draw(noise, tail.scale, len(near)), strict=True):
        noisy = int(counts[index]) + z
        if noisy >= bar:
            yield index, noisy
    away = np.flatnonzero(far)
    words = np.asarray(noise.words(len(away)), dtype=np.uint64)
    chance = tail.bound(short[away].astype(np.float64)) * _MORE + _LEAST
    for i in np.flatnonzero(words.astype(np.float64) * 2.0**-WORD <= chance).tolist():
        index = int(away[i])
        k = int(short[index])
        if below_chance(int(words[i]), k, tail, noise):
            yield index, int(counts[index]) + tail.beyond(k, noise)


def below_chance(word: int, k: int, tail: Tail, noise: RandomSource) -> bool:
    """True if the uniform number that begins with these 64 bits is below P(Z >= k)."""
    bits, digits = WORD, DIGITS
    while True:
        low, high = tail.between(k, digits)
        whole = Decimal(1 << bits)
        if word + 1 <= Context(prec=2 * digits, rounding=ROUND_FLOOR).multiply(low, whole):
            return True
        if word >= Context(prec=2 * digits, rounding=ROUND_CEILING).multiply(high, whole):
            return False
        word = word << WORD | noise.below(1 << WORD)
        bits += WORD
        digits += DIGITS
