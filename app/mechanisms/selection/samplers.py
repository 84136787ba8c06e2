"""Exact draws of one outcome from whole-number scores, among 100,000 in under a tenth of a second.

`rate` is epsilon / R for scores of range R; d is how far a score is below the best. A probability
exp(-rate d) is split into exp(-k), k the whole part of rate d, which is decided for many outcomes
by one comparison of 64 bits each, and the rest, which is decided for the few that are left. Every
draw has its law exactly; how long it takes depends on the scores.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.bernoulli import (
    DEEP,
    FIRST_BITS,
    bernoulli_exp,
    discrete_laplace,
    geometric,
    positive_side,
    uniform_below_exp,
)

Pick = Callable[[Sequence[int], Fraction, RandomSource], int]
AHEAD = 1024


def permute_and_flip(scores: Sequence[int], rate: Fraction, noise: RandomSource) -> int:
    """Outcomes in random order, each taken with probability exp(-rate d); the first that is taken.

    The order does not depend on the coins, so they may be flipped before, and the first taken is
    any of the taken ones with the same probability.
    """
    best, top, bottom = max(scores), rate.numerator, rate.denominator
    words = noise.words(len(scores))
    left = [
        place
        for place, (score, word) in enumerate(zip(scores, words, strict=True))
        if word <= (FIRST_BITS[k] if (k := (best - score) * top // bottom) < DEEP else 0)
    ]
    while True:  # the best is among them and always taken
        drawn = noise.below(len(left))
        place, left[drawn] = left[drawn], left[-1]
        left.pop()
        if _taken(words[place], (best - scores[place]) * rate, noise):
            return place


def exponential(scores: Sequence[int], rate: Fraction, noise: RandomSource) -> int:
    """Each outcome with probability in proportion to exp(-rate d): the law of adding Gumbel noise.

    Outcomes of the same k are proposed with floor(2^64 exp(-k)) + 1 tickets each, of which all but
    perhaps the last are good, and the proposed one is taken with what is left of its probability.
    """
    best, top, bottom = max(scores), rate.numerator, rate.denominator
    layers = [k if (k := (best - score) * top // bottom) < DEEP else DEEP for score in scores]
    sizes = sorted(Counter(layers).items())
    tickets = sum(size * (FIRST_BITS[layer] + 1) for layer, size in sizes)
    members: dict[int, list[int]] = {}
    while True:
        ticket = noise.below(tickets)
        for layer, size in sizes:
            if ticket < size * (FIRST_BITS[layer] + 1):
                break
            ticket -= size * (FIRST_BITS[layer] + 1)
        if layer not in members:
            members[layer] = [place for place, each in enumerate(layers) if each == layer]
        word, member = divmod(ticket, size)
        place = members[layer][member]
        if _taken(word, (best - scores[place]) * rate, noise):
            return place


def laplace_noisy_max(scores: Sequence[int], rate: Fraction, noise: RandomSource) -> int:
    """The outcome whose score with discrete Laplace noise is largest, ties broken at random.

    Noise is drawn for the best scores; of the others only those count whose noise reaches the
    largest of these, which is a coin each, and by how much they pass it is geometric again.
    """
    top, bottom = rate.numerator, rate.denominator
    ahead = heapq.nlargest(AHEAD, range(len(scores)), key=scores.__getitem__)
    noisy = [(scores[place] + discrete_laplace(rate, noise), place) for place in ahead]
    bar = max(value for value, _ in noisy)
    words = noise.words(len(scores))
    first = set(ahead)
    reaching = [
        place
        for place, (score, word) in enumerate(zip(scores, words, strict=True))
        if (k := (bar - score) * top // bottom) <= 0 or word <= (FIRST_BITS[k] if k < DEEP else 0)
    ]
    for place in reaching:
        if place in first:
            continue
        short = bar - scores[place]
        if short < 1:
            noisy.append((scores[place] + discrete_laplace(rate, noise), place))
        elif _taken(words[place], short * rate, noise) and positive_side(rate, noise):
            noisy.append((bar + geometric(rate, noise), place))
    best = max(value for value, _ in noisy)
    winners = [place for value, place in noisy if value == best]
    return winners[noise.below(len(winners))]


def _taken(word: int, exponent: Fraction, noise: RandomSource) -> bool:
    """True with probability exp(-exponent), if the word is the first of a uniform number."""
    whole = min(exponent.numerator // exponent.denominator, DEEP)
    return uniform_below_exp(word, whole, noise) and bernoulli_exp(exponent - whole, noise)
