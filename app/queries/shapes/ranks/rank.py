"""Rank rules: the rank to read among n rows, as a share of them or counted from one end.

Each rule r has r(0) = 0, 1 <= r(n) <= n for n >= 1, and r(n + 1) is r(n) or r(n) + 1: one more row
moves the rank by one or not at all. All proofs about ranks use this. Without rows the value is the
column's lower bound, which is rank 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

RankRule = Callable[[int], int]
LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ShareRank:
    """The least rank that has a share q of the rows at or below it: ceil(q n), at least 1."""

    q: Fraction

    def __call__(self, n: int) -> int:
        return min(n, max(1, -(-n * self.q.numerator // self.q.denominator)))


@dataclass(frozen=True, slots=True)
class RankFromBelow:
    """The k-th smallest; with fewer rows the largest."""

    k: int

    def __call__(self, n: int) -> int:
        return min(n, self.k)


@dataclass(frozen=True, slots=True)
class RankFromAbove:
    """The k-th largest; with fewer rows the smallest."""

    k: int

    def __call__(self, n: int) -> int:
        return min(n, max(1, n - self.k + 1))


@dataclass(frozen=True, slots=True)
class TrimmedRank:
    """The first, or the last, rank that remains after a share is trimmed from either end."""

    trim: Fraction
    last: bool

    def __call__(self, n: int) -> int:
        if n == 0:
            return 0
        cut = n * self.trim.numerator // self.trim.denominator
        return n - cut if self.last else cut + 1


def ranks_of(rule: RankRule, counts: range) -> NDArray[np.int64]:
    """The ranks for these numbers of rows."""
    if isinstance(rule, ShareRank) and counts[-1] * rule.q.denominator <= LARGEST:
        rows = np.array(counts, dtype=np.int64)
        shares = -(-rows * rule.q.numerator // rule.q.denominator)
        return np.minimum(rows, np.maximum(1, shares))
    return np.fromiter(map(rule, counts), np.int64, len(counts))
