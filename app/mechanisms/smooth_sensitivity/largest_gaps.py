"""Weighted gaps that may be the largest: a search in floats, for an exact comparison afterwards.

A start i and an end j >= first_i make a gap of value exp(-rate (p_i + q_j)) (u_i + v_j), with whole
numbers p, q, u, v. The search returns all pairs whose value is at least 1 - MARGIN of the largest.

Errors: sums of whole numbers are exact. A value has a relative error below 1e-12, from its exponent
(at most 745 in size, or the float is 0), the exponential and the product. MARGIN is far larger. So
the pair with the largest exact value is among those returned, unless that value is below exp(-700)
times the widest gap. A value above the widest gap has an exponent below 0; the caller has none.

Search: blocks of starts are compared with blocks of ends. In a block of pairs, no value exceeds the
least weight's exponent with the largest u + v. A block whose bound is below the largest value found
so far is dropped; the others are divided by four on both sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MARGIN = 1e-9
SIZES = (64, 16, 4, 1)  # of the blocks
EXPONENT_MAX = 600.0
PAIRS_MAX = 1 << 17  # pairs of blocks that one step compares
WholeArray = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gaps:
    """All gaps to compare. `q` does not fall. `u` and `v` may be arrays of Python's numbers, if
    those are too large."""

    p: WholeArray
    u: WholeArray
    first: WholeArray  # first end of each start
    q: WholeArray
    v: WholeArray
    rate: float


def largest_gaps(gaps: Gaps) -> list[tuple[int, int]] | None:
    """Pairs of start and end that may have the largest positive value.

    None if too many may, or if the numbers are too large for this search.
    """
    if gaps.u.dtype != np.int64:
        return None
    if not len(gaps.p) or not len(gaps.q):
        return []
    starts, ends = np.meshgrid(*(np.arange(-(-len(x) // SIZES[0])) for x in (gaps.p, gaps.q)))
    starts, ends = starts.ravel(), ends.ravel()
    best = 0.0
    for size, smaller in zip(SIZES, (*SIZES[1:], 0), strict=True):
        if len(starts) > PAIRS_MAX:
            return None
        blocks = _Blocks.of(gaps, size)
        starts, ends = blocks.possible(starts, ends)
        best = max(best, blocks.sample(starts, ends))
        bounds = blocks.bounds(starts, ends)
        kept = (bounds > 0) & (bounds >= best * (1 - MARGIN))
        starts, ends = starts[kept], ends[kept]
        if smaller:
            starts, ends = _divided(starts, ends, size // smaller)
            inside = (starts * smaller < len(gaps.p)) & (ends * smaller < len(gaps.q))
            starts, ends = starts[inside], ends[inside]
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Neighbouring starts, and neighbouring ends, as blocks of one size."""

    gaps: Gaps
    size: int
    p: WholeArray  # least of each block
    u: WholeArray  # largest
    first: WholeArray  # least
    v: WholeArray  # largest

    @classmethod
    def of(cls, gaps: Gaps, size: int) -> "_Blocks":
        starts, ends = (np.arange(0, len(x), size) for x in (gaps.p, gaps.q))
        return cls(
            gaps,
            size,
            np.minimum.reduceat(gaps.p, starts),
            np.maximum.reduceat(gaps.u, starts),
            np.minimum.reduceat(gaps.first, starts),
            np.maximum.reduceat(gaps.v, ends),
        )

    def possible(self, starts: WholeArray, ends: WholeArray) -> tuple[WholeArray, WholeArray]:
        """Pairs of blocks with at least one pair in which the end is allowed."""
        last = np.minimum((ends + 1) * self.size, len(self.gaps.q)) - 1
        kept = last >= self.first[starts]
        return starts[kept], ends[kept]

    def bounds(self, starts: WholeArray, ends: WholeArray) -> Reals:
        """No value in a pair of blocks is larger than this."""
        nearest = np.maximum(ends * self.size, self.first[starts])
        return _values(
            self.gaps.rate,
            self.p[starts] + self.gaps.q[nearest],
            self.u[starts] + self.v[ends],
        )

    def sample(self, starts: WholeArray, ends: WholeArray) -> float:
        """The largest value among one pair of each pair of blocks."""
        gaps = self.gaps
        start = starts * self.size
        end = np.maximum(ends * self.size, gaps.first[start])
        within = end < len(gaps.q)
        start, end = start[within], end[within]
        values = _values(gaps.rate, gaps.p[start] + gaps.q[end], gaps.u[start] + gaps.v[end])
        return float(values.max(initial=0.0))


def _values(rate: float, exponents: WholeArray, widths: WholeArray) -> Reals:
    # A bound may combine the least exponents of different pairs; without a limit it may overflow.
    values: Reals = np.exp(np.minimum(-rate * exponents, EXPONENT_MAX)) * widths
    return values


def _divided(starts: WholeArray, ends: WholeArray, parts: int) -> tuple[WholeArray, WholeArray]:
    """The pairs of smaller blocks in these pairs of blocks."""
    inner = np.arange(parts)
    shape = (len(starts), parts, parts)
    smaller_starts = np.broadcast_to((starts[:, None] * parts + inner)[:, :, None], shape)
    smaller_ends = np.broadcast_to((ends[:, None] * parts + inner)[:, None, :], shape)
    return smaller_starts.ravel(), smaller_ends.ravel()
