"""The same quantities from their definitions, in 50 digits, by independent code."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import mpmath as mp

mp.mp.dps = 50
Real = mp.mpf
Number: TypeAlias = Any  # the package has no types


def renyi_of_law(p: Sequence[Number], q: Sequence[Number], order: Number) -> Number:
    total = mp.fsum(x**order * y ** (1 - order) for x, y in zip(p, q, strict=True))
    return mp.log(total) / (order - 1)


def randomized_response(e: Number, categories: int, order: Number) -> Number:
    share = 1 / (mp.exp(e) + categories - 1)
    p = [mp.exp(e) * share, share, *[share] * (categories - 2)]
    q = [share, mp.exp(e) * share, *[share] * (categories - 2)]
    return renyi_of_law(p, q, order)


def laplace(e: Number, order: Number) -> Number:
    """By integration over the three pieces of the log-ratio."""

    def f(x: Number) -> Number:
        return mp.exp(-order * abs(x) * e + (order - 1) * abs(x - 1) * e) * e / 2

    total = mp.quad(f, [0, 1]) + (mp.exp((order - 1) * e) + mp.exp(-order * e)) / 2
    return mp.log(total) / (order - 1)


def discrete_laplace(e: Number, steps: int, order: Number) -> Number:
    s = e / steps
    reach = int(140 / s) + steps
    weights = {x: mp.exp(-s * abs(x)) for x in range(-reach - steps, reach + 1)}
    norm = mp.tanh(s / 2)
    inner = [x for x in weights if x - steps in weights]
    p = [norm * weights[x] for x in inner]
    q = [norm * weights[x - steps] for x in inner]
    return renyi_of_law(p, q, order)


def bounded_range(e: Number, order: Number) -> Number:
    """The largest over the two-point laws with log-ratios t and t - e."""

    def at(t: Number) -> Number:
        p = (mp.exp(e) - mp.exp(t)) / (mp.exp(e) - 1)
        return renyi_of_law([p, 1 - p], [p * mp.exp(-t), (1 - p) * mp.exp(e - t)], order)

    return max(at(e * k / 400) for k in range(1, 400))


def sampled_gaussian(q: Number, s: Number, order: Number) -> Number:
    def density(x: Number, shift: int) -> Number:
        return mp.npdf(x, shift, s)

    def f(x: Number) -> Number:
        base = density(x, 0)
        return base * ((1 - q) + q * density(x, 1) / base) ** order

    ends = [-14 * s, -4 * s, 0, 1, order, order + 4 * s, order + 14 * s]
    return mp.log(mp.quad(f, sorted(ends))) / (order - 1)


def best_epsilon(
    divergence: Callable[[Number], Number], delta: Number, orders: Sequence[Number]
) -> Number:
    return max(
        Real(0),
        min(
            divergence(a) + mp.log1p(-1 / a) - (mp.log(delta) + mp.log(a)) / (a - 1) for a in orders
        ),
    )


def best_delta(
    divergence: Callable[[Number], Number], epsilon: Number, orders: Sequence[Number]
) -> Number:
    return min(
        Real(1),
        min(
            mp.exp((a - 1) * (divergence(a) - epsilon)) / (a - 1) * (1 - 1 / a) ** a for a in orders
        ),
    )


def optimal_delta(epsilons: Sequence[Number], epsilon: Number) -> Number:
    """Sum over every outcome of every randomised response."""
    total = Real(0)
    for signs in product((1, -1), repeat=len(epsilons)):
        loss = mp.fsum(s * e for s, e in zip(signs, epsilons, strict=True))
        if loss > epsilon:
            chance = mp.fprod(
                1 / (1 + mp.exp(-s * e)) for s, e in zip(signs, epsilons, strict=True)
            )
            total += chance * (1 - mp.exp(epsilon - loss))
    return total


def optimal_delta_of_equal(e: Number, count: int, epsilon: Number) -> Number:
    """Kairouz, Oh and Viswanath's sum over the number of flipped responses out of `count`."""
    total = Real(0)
    for flipped in range(count + 1):
        loss = (count - 2 * flipped) * e
        if loss <= epsilon:
            break
        chance = mp.binomial(count, flipped) * mp.exp((count - flipped) * e)
        total += chance / (1 + mp.exp(e)) ** count * (1 - mp.exp(epsilon - loss))
    return total
