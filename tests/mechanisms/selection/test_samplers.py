"""Draws of outcomes fit their laws, and those of an epsilon that is 10 % off do not.

Each chi-square test raises a false alarm with probability 1e-6. It misses a rate that is a tenth
off with less than 1e-5 (at least 4.7 standard deviations). Nothing is seeded.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from typing import Any

import mpmath
import pytest
from typing_extensions import override

from app.mechanisms.sampling.bernoulli import (
    DEEP,
    FIRST_BITS,
    bernoulli_exp,
    discrete_laplace,
    geometric,
    leading_bits,
    positive_side,
    uniform_below_exp,
)
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.selection import samplers
from tests.effort import thorough_after
from tests.mechanisms.noise.noise_law import FALSE_ALARM
from tests.mechanisms.selection.selection_law import (
    Law,
    chi_square,
    discrete_laplace_law,
    exponential_law,
    permute_and_flip_law,
)

noise = SystemRandom()
DRAWS = 22_000
PICKS: dict[str, tuple[samplers.Pick, Callable[[Sequence[int], float], Law]]] = {
    "permute and flip": (samplers.permute_and_flip, permute_and_flip_law),
    "exponential": (samplers.exponential, exponential_law),
    "laplace": (samplers.laplace_noisy_max, discrete_laplace_law),
}
SCORES = [8, 6, 5, 1]


def drawn(pick: samplers.Pick, scores: Sequence[int], rate: Fraction, size: int) -> list[int]:
    times = Counter(pick(scores, rate, noise) for _ in range(size))
    return [times[place] for place in range(len(scores))]


# Choices


FITS: dict[str, tuple[list[int], Fraction]] = {
    "counts": (SCORES, Fraction(1, 2)),
    "equal scores": ([5, 5, 5], Fraction(7)),
    "an odd rate": ([0, -1, -2, -3, -4, -5], Fraction(617_283_945_061, 10**12)),
    # The best is 10^20; the law depends only on differences times the rate.
    "large scores": ([10**20, 10**20 - 3 * 10**9, 10**20 - 10**10], Fraction(1, 10**10)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", PICKS)
@pytest.mark.parametrize("what", FITS)
def test_draws_fit_their_law(name: str, what: str) -> None:
    pick, law_of = PICKS[name]
    scores, rate = FITS[what]
    coarse = 10**8 if what == "large scores" else 1  # the noise of such a small rate is smooth
    law = law_of([(score - scores[0]) // coarse for score in scores], float(rate * coarse))
    assert chi_square(drawn(pick, scores, rate, 5_000), law) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("name", PICKS)
@pytest.mark.parametrize("factor", thorough_after(1, [Fraction(10, 11), Fraction(11, 10)]))
def test_an_epsilon_that_is_a_tenth_off_is_rejected(name: str, factor: Fraction) -> None:
    pick, law_of = PICKS[name]
    scores = SCORES[:3] if name == "laplace" else SCORES
    rate = {"laplace": Fraction(1), "exponential": Fraction(3, 4)}.get(name, Fraction(1, 2))
    law = law_of(scores, float(rate))
    assert chi_square(drawn(pick, scores, rate * factor, DRAWS), law) < FALSE_ALARM


@pytest.mark.statistical
def test_permute_and_flip_and_the_exponential_mechanism_are_distinguished() -> None:
    flipped = drawn(samplers.permute_and_flip, SCORES, Fraction(1, 2), 5_000)
    assert chi_square(flipped, exponential_law(SCORES, 0.5)) < FALSE_ALARM
    chosen = drawn(samplers.exponential, SCORES, Fraction(1, 2), 5_000)
    assert chi_square(chosen, permute_and_flip_law(SCORES, 0.5)) < FALSE_ALARM


@pytest.mark.statistical
def test_many_outcomes_of_every_depth_fit_the_law() -> None:
    """Bins of outcomes: the best one, those near it, and all the rest, which are far below."""
    scores = [-(i // 3) for i in range(600)]
    for pick, law_of in (PICKS["exponential"], PICKS["permute and flip"]):
        rate = Fraction(1, 4)
        chances = law_of(scores[:150], 0.25)  # the rest together have less than 1e-5
        law = [chances[0], chances[1], math.fsum(chances[2:9]), math.fsum(chances[9:])]
        places = [pick(scores, rate, noise) for _ in range(1200)]
        counts = [0, 0, 0, 0]
        for place in places:
            counts[0 if place == 0 else 1 if place == 1 else 2 if place < 9 else 3] += 1
        assert chi_square(counts, law) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("ahead", [1, 2])
def test_outcomes_that_must_reach_the_bar_win_as_often_as_if_all_were_drawn(
    ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samplers, "AHEAD", ahead)
    law = discrete_laplace_law([4, 4, 3, 1, 4], 0.6)
    counts = drawn(samplers.laplace_noisy_max, [4, 4, 3, 1, 4], Fraction(3, 5), 5_000)
    assert chi_square(counts, law) > FALSE_ALARM


@pytest.mark.parametrize("name", PICKS)
def test_a_single_outcome_is_always_chosen_and_a_hopeless_one_never(name: str) -> None:
    pick, _ = PICKS[name]
    assert {pick([7], Fraction(1, 3), noise) for _ in range(20)} == {0}
    far = [0, -(10**9), -(10**30)]
    assert {pick(far, Fraction(1), noise) for _ in range(200)} == {0}


@pytest.mark.parametrize("name", PICKS)
def test_equal_scores_of_many_outcomes_are_chosen_evenly(name: str) -> None:
    """60 draws out of 20,000: fewer than 50 different ones have probability below 1e-12."""
    pick, _ = PICKS[name]
    places = {
        pick([3] * 20_000, Fraction(1), noise) for _ in range(60 if name != "laplace" else 20)
    }
    assert len(places) >= (50 if name != "laplace" else 15)
    assert max(places) > 2_000


# Coins


def test_the_leading_bits_are_those_of_the_exponential_function() -> None:
    with mpmath.workprec(4000):
        for whole in (1, 2, 17, DEEP):
            for bits in (64, 128, 1024):
                exact = int(mpmath.floor(mpmath.mpf(2) ** bits * mpmath.exp(-whole)))
                assert leading_bits(whole, bits) == exact
    assert FIRST_BITS[0] == 2**64 - 1
    assert FIRST_BITS[DEEP] == 0 < FIRST_BITS[DEEP - 1]


class Bits(SystemRandom):
    """A sampler with planned words."""

    def __init__(self, *planned: int) -> None:
        super().__init__()
        self.planned = list(planned)

    @override
    def below(self, bound: int) -> int:
        return self.planned.pop(0)


def test_a_word_equal_so_far_is_decided_by_the_following_bits() -> None:
    for whole in (0, 1, 30, DEEP):
        first = leading_bits(whole, 64)
        second = leading_bits(whole, 128) - (first << 64)
        third = leading_bits(whole, 192) - (leading_bits(whole, 128) << 64)
        if whole:
            assert not uniform_below_exp(first, whole, Bits(second + 1))
            assert not uniform_below_exp(first, whole, Bits(second, third + 1))
            assert not uniform_below_exp(first + 1, whole, Bits())
        assert uniform_below_exp(first, whole, Bits(second - 1))
        assert uniform_below_exp(first, whole, Bits(second, third - 1))
        if first:
            assert uniform_below_exp(first - 1, whole, Bits())


def flips(coin: Callable[[], bool], size: int = 10_000) -> list[int]:
    up = sum(coin() for _ in range(size))
    return [up, size - up]


@pytest.mark.statistical
@pytest.mark.parametrize("exponent", ["1/3", "1", "7/2", "0.001", "5"])
def test_heads_have_their_probability(exponent: str) -> None:
    x = Fraction(exponent)
    size = 50_000 if x < 1 / 10 else 10_000
    chance = math.exp(-x)
    counts = flips(lambda: bernoulli_exp(x, noise), size)
    assert chi_square(counts, [chance, 1 - chance]) > FALSE_ALARM
    assert bernoulli_exp(Fraction(0), noise)


@pytest.mark.statistical
def test_the_other_coins_and_numbers_fit_their_laws() -> None:
    rate = Fraction(7, 10)
    side = 1 / (1 + math.exp(-0.7))
    assert chi_square(flips(lambda: positive_side(rate, noise)), [side, 1 - side]) > FALSE_ALARM

    def bins(draw: Callable[[], int], law: list[float], first: int) -> float:
        counts = [0] * len(law)
        for _ in range(8_000):
            counts[min(max(draw() - first, 0), len(law) - 1)] += 1
        return chi_square(counts, law)

    p = math.exp(-0.7)
    falling = [(1 - p) * p**g for g in range(6)]
    law = [*falling, 1 - math.fsum(falling)]
    assert bins(lambda: geometric(rate, noise), law, 0) > FALSE_ALARM
    middle = [(1 - p) / (1 + p) * p ** abs(z) for z in range(-4, 5)]
    tail = (1 - math.fsum(middle)) / 2
    assert bins(lambda: discrete_laplace(rate, noise), [tail, *middle, tail], -5) > FALSE_ALARM


@pytest.mark.statistical
def test_words_are_fair_in_every_bit_and_of_the_requested_number() -> None:
    """Each of 64 counts of 10,000 fair bits is within 350 of 5,000 except with 64 * 2.6e-12."""
    words: Any = noise.words(10_000)
    assert len(words) == 10_000
    assert len(noise.words(0)) == 0
    for bit in range(64):
        assert abs(sum(word >> bit & 1 for word in words) - 5_000) < 350
    assert all(0 <= word < 2**64 for word in words)
    assert next(i for i in count() if noise.words(1)[0] != noise.words(1)[0]) == 0
