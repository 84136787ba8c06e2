"""Bulk Laplace draws: the bits of the coins, ties, the part beyond the digits, and the law."""

import math
from array import array
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from typing_extensions import override

from app.mechanisms.sampling.bulk_laplace import DEEP, WORD, Coin, LaplaceDraws
from app.mechanisms.sampling.system import SystemRandom
from tests.mechanisms.noise.noise_law import DRAWS, FALSE_ALARM, chi_square

SCALES = [0.3, 1.0, 2.5, 10.0, 777.7, 2.0**34 + 0.5, 2.0**55]


class PlannedWords(SystemRandom):
    """The planned words, then the system's."""

    def __init__(self, *words: int) -> None:
        super().__init__()
        self.left = list(words)

    @override
    def words(self, size: int) -> Sequence[int]:
        taken, self.left = self.left[:size], self.left[size:]
        return array("Q", [*taken, *super().words(size - len(taken))])

    @override
    def below(self, bound: int) -> int:
        return self.left.pop(0) if self.left else super().below(bound)


def half_and_a_bit() -> Coin:
    """Heads with probability 1/2 + 2^-70 + 2^-200 / 3, which has no finite binary expansion."""
    return Coin(lambda: Decimal(1) / 2 + Decimal(1) / 2**70 + Decimal(1) / (3 * 2**200))


@pytest.mark.parametrize("scale", SCALES)
def test_the_bits_of_every_coin_are_those_of_its_probability(scale: float) -> None:
    draws = LaplaceDraws(scale)
    with mpmath.workdps(400):
        p = mpmath.exp(-1 / mpmath.mpf(scale))
        expected = {draws._nonzero: 2 * p / (1 + p)}
        for digit, coin in enumerate(draws._digits):
            x = p ** (1 << digit)
            expected[coin] = x / (1 + x)
        expected[draws._beyond] = p ** (1 << len(draws._digits))
        for coin, probability in expected.items():
            for bits in (WORD, 2 * WORD, 4 * WORD):
                assert coin.leading_bits(bits) == int(mpmath.floor(probability * 2**bits))
    assert (1 << len(draws._digits)) / Fraction(scale) >= DEEP


def test_a_word_equal_so_far_is_decided_by_the_following_bits() -> None:
    coin = half_and_a_bit()
    first = 1 << (WORD - 1)
    second = 1 << (2 * WORD - 70)
    assert coin.leading_bits(WORD) == first
    assert coin.heads(3, PlannedWords(first - 1, first + 1, 0)).tolist() == [True, False, True]
    assert coin.heads(1, PlannedWords(first, second - 1)).tolist() == [True]
    assert coin.heads(1, PlannedWords(first, second + 1)).tolist() == [False]
    third = coin.leading_bits(3 * WORD) - ((first << WORD | second) << WORD)
    assert coin.heads(1, PlannedWords(first, second, third + 1)).tolist() == [False]
    fourth = coin.leading_bits(4 * WORD) & ((1 << WORD) - 1)
    assert coin.heads(1, PlannedWords(first, second, third, fourth - 1)).tolist() == [True]


def test_the_part_beyond_the_digits_is_added_and_keeps_its_sign() -> None:
    draws = LaplaceDraws(1.0)
    digits = len(draws._digits)
    nothing = [2**64 - 1] * digits
    for sign_bits, sign in ((0, 1), (2**64 - 1, -1)):
        # Not zero; no digit set; the sign; beyond: a word of zero and then another zero.
        words = [0, *nothing, sign_bits, 0, 0, 2**64 - 1]
        assert draws.draw(1, PlannedWords(*words)) == [sign * (1 + (1 << digits))]


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
def test_draws_fit_the_law(scale: float) -> None:
    assert chi_square(LaplaceDraws(scale).draw(DRAWS, SystemRandom()), scale) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("scale", [1.0, 10.0, 2.0**34 + 0.5])
def test_a_scale_that_is_off_by_a_tenth_is_rejected(scale: float, factor: float) -> None:
    assert chi_square(LaplaceDraws(scale * factor).draw(DRAWS, SystemRandom()), scale) < FALSE_ALARM


@pytest.mark.statistical
def test_single_values_have_their_frequencies() -> None:
    """Counts of -4 to 4 at scale 1.3 over 200,000 draws are each within six standard deviations.

    A false alarm has probability below 9 * 2e-9.
    """
    size, scale = 200_000, 1.3
    draws = LaplaceDraws(scale).draw(size, SystemRandom())
    p = math.exp(-1 / scale)
    for z in range(-4, 5):
        chance = (1 - p) / (1 + p) * p ** abs(z)
        deviation = math.sqrt(size * chance * (1 - chance))
        assert abs(draws.count(z) - size * chance) < 6 * deviation
