"""Which of many counts reach a bar once noise is added, and what they are then: exactly, and
without drawing the noise of every count that stays far below.

Near the bar and above it noise is drawn and added. For a count that is k below it, k above twice
the noise's scale, one uniform number decides whether its noise is at least k, by comparing its bits
with those of P(Z >= k); 64 of them nearly always settle it, and more are drawn until they do. Where
it is, the noise is drawn given that. The law is that of noise on every count, to the last bit.

(A million counts of one row: 0.1 s, where drawing their noise takes 15.)
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
_MORE = 1.0 + 1e-6  # what floats may be off by, many times over
_LEAST = 2.0**-60


def sample_counts_above(
    counts: Whole, bar: int, *, law: NoiseDistribution, tail: Tail, noise: RandomSource
) -> Iterator[tuple[int, int]]:
    """The places of those whose noisy count is at least `bar`, and their noisy counts."""
    short = bar - counts
    far = short > 2.0 * tail.scale + 1.0 if tail.exact else np.zeros(len(counts), dtype=bool)
    near = np.flatnonzero(~far)
    for place, z in zip(near.tolist(), law.draw(noise, tail.scale, len(near)), strict=True):
        noisy = int(counts[place]) + z
        if noisy >= bar:
            yield place, noisy
    away = np.flatnonzero(far)
    words = np.asarray(noise.words(len(away)), dtype=np.uint64)
    chance = tail.bound(short[away].astype(np.float64)) * _MORE + _LEAST
    for i in np.flatnonzero(words.astype(np.float64) * 2.0**-WORD <= chance).tolist():
        place = int(away[i])
        k = int(short[place])
        if below_chance(int(words[i]), k, tail, noise):
            yield place, int(counts[place]) + tail.beyond(k, noise)


def below_chance(word: int, k: int, tail: Tail, noise: RandomSource) -> bool:
    """Is the uniform number that begins with these 64 bits below P(Z >= k)?"""
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
