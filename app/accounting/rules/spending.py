"""Running totals of an account: a vector of whole units that only its rule can read.

The first number is epsilon, the second delta, the rest what the currency follows besides. Sums
stop at INFINITE, which is no bound at all, and stay there: a charge without a bound that is given
back does not bring the bound back, because nobody knows any more what was below it.
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
    """What is left of a spend when a cost is given back, never below zero; of what has no bound
    nothing is given back."""
    return tuple(
        units if units >= INFINITE or given >= INFINITE else max(0, units - given)
        for units, given in zip(spend, cost, strict=True)
    )


def largest(spends: Iterable[Spend]) -> Spend:
    """The largest of each number: what no one of the spends exceeds."""
    return tuple(max(units) for units in zip(*spends, strict=True))


def smallest(spends: Iterable[Spend]) -> Spend:
    """The smallest of each number: what every one of the spends reaches."""
    return tuple(min(units) for units in zip(*spends, strict=True))


def two_largest(spends: list[Spend]) -> Spend:
    """The sum of the two largest of each number: what no two of the spends exceed together."""
    return tuple(min(sum(sorted(units)[-2:]), INFINITE) for units in zip(*spends, strict=True))


def undominated(spends: Iterable[Spend]) -> list[Spend]:
    """The spends that no other one reaches or exceeds in every number, each once."""
    distinct = list(dict.fromkeys(spends))
    return [
        spend
        for spend in distinct
        if not any(other != spend and all(map(le, spend, other)) for other in distinct)
    ]
