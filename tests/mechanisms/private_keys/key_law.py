"""The exact law of an answer about private keys, computed from counts; nothing here draws.

A key of count c is released as v with probability P(Z = v - c) for v >= T, and otherwise withheld.
Keys are independent. Tables are counts by key. A key that nobody has is absent and never released.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from itertools import combinations_with_replacement, product

Counts = dict[str, int]
KeyLaw = dict[int | None, Decimal]  # by released value; None if withheld
DIGITS = 50


def laplace_law(count: int, threshold: int, scale: float, last: int) -> KeyLaw:
    """Law of discrete Laplace noise, with `last` and more as one outcome.

    For two counts of at most `last`, all larger values have the same likelihood ratio. So nothing
    is lost.
    """
    if count == 0:
        return {None: Decimal(1)}
    p = (-1 / Decimal(scale)).exp()

    def reaches(k: int) -> Decimal:  # P(Z >= k)
        return p**k / (1 + p) if k >= 1 else 1 - p ** (1 - k) / (1 + p)

    law: KeyLaw = {v: reaches(v - count) - reaches(v + 1 - count) for v in range(threshold, last)}
    law[last] = reaches(last - count)
    law[None] = 1 - reaches(threshold - count)
    return law


def coin_law(count: int, chances: list[Decimal]) -> KeyLaw:
    """Kept or dropped, with the probability for this many persons."""
    kept = chances[count] if count < len(chances) else Decimal(1)
    return {1: kept, None: 1 - kept}


def hockey_stick(
    one: Counts, two: Counts, law: Callable[[int], KeyLaw], epsilon: Decimal
) -> Decimal:
    """Least delta for which the answer about `one` is (epsilon, delta)-close to that about `two`.

    Keys of equal count have equal laws and change nothing.
    """
    with localcontext() as context:
        context.prec = DIGITS
        keys = [key for key in one.keys() | two.keys() if one.get(key, 0) != two.get(key, 0)]
        laws = [(law(one.get(key, 0)), law(two.get(key, 0))) for key in keys]
        grown = epsilon.exp()
        total = Decimal(0)
        for outcome in product(*(first.keys() for first, _ in laws)):
            p = q = Decimal(1)
            for value, (first, second) in zip(outcome, laws, strict=True):
                p *= first[value]
                q *= second.get(value, Decimal(0))
            total += max(Decimal(0), p - grown * q)
        return total


def rows_of_a_person(rows_max: int, keys: str) -> list[Counts]:
    """Every way to have at most this many rows in these keys, or in none."""
    divisions: set[tuple[tuple[str, int], ...]] = set()
    for chosen in combinations_with_replacement(keys, rows_max):
        for size in range(rows_max + 1):
            part = chosen[:size]
            divisions.add(tuple(sorted((key, part.count(key)) for key in set(part))))
    return [dict(each) for each in sorted(divisions)]


def neighbours(
    relation: str, rows_max: int, others: list[int], keys: str = "abc"
) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of neighbouring tables in which the others have these numbers of rows in each
    key.
    """
    persons = rows_of_a_person(rows_max, keys)
    firsts: list[Counts] = [{}] if relation == "add_remove" else persons
    for there in combinations_with_replacement(others, len(keys)):
        base = dict(zip(keys, there, strict=True))
        for before, after in product(firsts, persons):
            one, two = (
                {key: base[key] + rows.get(key, 0) for key in keys} for rows in (before, after)
            )
            if one != two:
                yield one, two
                yield two, one
