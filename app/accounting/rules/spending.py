"""Running totals of an account: a vector of integer units that only its rule can read.

The first number is epsilon, the second delta, and the rest belong to the currency. Sums stop at
INFINITE, which means no bound at all, and stay there. Giving back a charge without a bound does not
restore the bound, because the sum below it is lost.
"""

from collections.abc import Iterable
from operator import add, le

from app.accounting.precise import INFINITE

Spend = tuple[int, ...]


def plus(spend: Spend, cost: Spend) -> Spend:
    # The first number, the pure sum, is the one that loses its bound for good.
    rest = tuple(map(add, spend[1:], cost[1:]))
    if max(rest, default=0) >= INFINITE:
        rest = tuple(min(units, INFINITE) for units in rest)
    return min(spend[0] + cost[0], INFINITE), *rest


def minus(spend: Spend, cost: Spend) -> Spend:
    """Subtract a cost that is given back, never below zero; numbers without a bound stay
    unchanged."""
    return tuple(
        units if units >= INFINITE or back >= INFINITE else max(0, units - back)
        for units, back in zip(spend, cost, strict=True)
    )


def largest(spends: Iterable[Spend]) -> Spend:
    """The largest of each number: no spend exceeds it."""
    return tuple(max(units) for units in zip(*spends, strict=True))


def smallest(spends: Iterable[Spend]) -> Spend:
    """The smallest of each number: every spend reaches it."""
    return tuple(min(units) for units in zip(*spends, strict=True))


def two_largest(spends: list[Spend]) -> Spend:
    """The sum of the two largest of each number: no two spends together exceed it."""
    return tuple(min(sum(sorted(units)[-2:]), INFINITE) for units in zip(*spends, strict=True))


def undominated(spends: Iterable[Spend]) -> list[Spend]:
    """The spends that no other spend reaches or exceeds in every number, each once."""
    distinct = list(dict.fromkeys(spends))
    return [
        spend
        for spend in distinct
        if not any(other != spend and all(map(le, spend, other)) for other in distinct)
    ]
