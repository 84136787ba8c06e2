"""Exact selection of one outcome by integer scores, among 100,000 in under a tenth of a second.

`rate` is epsilon / R for scores of range R; d is the distance of a score below the best. A
probability exp(-rate d) is split into exp(-k), k the integer part of rate d, and a rest. One
comparison of 64 bits per outcome decides the first part for all outcomes. The rest is decided for
the few that remain. Every draw has its distribution exactly; its time depends on the scores.
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
    """Visit outcomes in random order, accept each with probability exp(-rate d); return the first
    accepted.

    The order does not depend on the coins, so they may be tossed before. The first accepted
    outcome is any of the accepted ones with the same probability."""
    best, top, bottom = max(scores), rate.numerator, rate.denominator
    words = noise.words(len(scores))
    left = [
        index
        for index, (score, word) in enumerate(zip(scores, words, strict=True))
        if word <= (FIRST_BITS[k] if (k := (best - score) * top // bottom) < DEEP else 0)
    ]
    while True:  # the best is among them and always accepted
        drawn = noise.below(len(left))
        index, left[drawn] = left[drawn], left[-1]
        left.pop()
        if _taken(words[index], (best - scores[index]) * rate, noise):
            return index


def exponential(scores: Sequence[int], rate: Fraction, noise: RandomSource) -> int:
    """Draw an outcome in proportion to exp(-rate d): the distribution of adding Gumbel noise.

    Each outcome with integer part k has floor(2^64 exp(-k)) + 1 tickets, all valid except
    perhaps the last. A drawn outcome is accepted with the rest of its probability."""
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
            members[layer] = [index for index, of_index in enumerate(layers) if of_index == layer]
        word, member = divmod(ticket, size)
        index = members[layer][member]
        if _taken(word, (best - scores[index]) * rate, noise):
            return index


def laplace_noisy_max(scores: Sequence[int], rate: Fraction, noise: RandomSource) -> int:
    """Draw the outcome whose score with discrete Laplace noise is largest, ties broken at random.

    Noise is drawn for the best scores. Another outcome matters only if its noise reaches the
    largest of these, which one coin decides. The excess is geometric again."""
    top, bottom = rate.numerator, rate.denominator
    ahead = heapq.nlargest(AHEAD, range(len(scores)), key=scores.__getitem__)
    noisy = [(scores[index] + discrete_laplace(rate, noise), index) for index in ahead]
    bar = max(value for value, _ in noisy)
    words = noise.words(len(scores))
    first = set(ahead)
    reaching = [
        index
        for index, (score, word) in enumerate(zip(scores, words, strict=True))
        if (k := (bar - score) * top // bottom) <= 0 or word <= (FIRST_BITS[k] if k < DEEP else 0)
    ]
    for index in reaching:
        if index in first:
            continue
        short = bar - scores[index]
        if short < 1:
            noisy.append((scores[index] + discrete_laplace(rate, noise), index))
        elif _taken(words[index], short * rate, noise) and positive_side(rate, noise):
            noisy.append((bar + geometric(rate, noise), index))
    best = max(value for value, _ in noisy)
    winners = [index for value, index in noisy if value == best]
    return winners[noise.below(len(winners))]


def _taken(word: int, exponent: Fraction, noise: RandomSource) -> bool:
    """True with probability exp(-exponent), if the word is the first of a uniform number."""
    whole = min(exponent.numerator // exponent.denominator, DEEP)
    return uniform_below_exp(word, whole, noise) and bernoulli_exp(exponent - whole, noise)
