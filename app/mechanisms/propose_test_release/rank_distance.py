"""Distance of a table from those where a person can move the value at a rank by more than B.

A window from rank a to rank b, ranks 0 and n + 1 being the bounds, is *wide* if x_(b) - x_(a) > B.
Distances count persons, as integers, and are capped at a public number. A cap keeps every distance
1-Lipschitz: one person changes it by at most 1. Propose-test-release needs

    (1)  one person changes d by at most 1;
    (2)  if two tables one person apart have values more than B apart, d = 0 for both.

Fixed n, one row replaced (Dwork and Lei 2009): d is the least b - a - 1 of wide windows with a < b
and a <= r <= b. It is the exact distance to tables of a local sensitivity above B.

Moving n, one row added or removed: the exact distance again. The gaps that a row could move the
value across are the corners of `rank_bound.py`, where their costs are proved; d is the least cost
of a wide one.

Moving n, M > 1 moves per person. Let h(x) be the least k >= 0 for which there is a wide window with

    b - a <= M + k,   a >= r(n) - M - k,   b <= r(n) + M + k,

and d = ceil(h / M). Proof of (2): after p rows were added and q removed, p + q <= M, the value y of
the new rank r' = r(n') lies from x_(r - M) to x_(r + M). At least r + M - q >= r + p >= r' rows are
at or below x_(r + M), so y is not above it. At most r - M - 1 + p <= r - q - 1 <= r' - 1 rows are
below x_(r - M), so y is not below it. So the window from r to r + M, or that from r - M to r, is
wide, and h(x) = 0. By the same argument from the other table h is 0 there too.

Proof of (1): one move changes h by at most 1, so M moves by M, and ceil(h / M) by 1. Take a window
that shows h(x) <= k. If a row is added, the rows at both ends keep their rank or gain one, and so
does r. So b - a, r - a and b - r each grow by at most 1, and the same window shows k + 1. If a row
other than those at a and b is removed, the same holds with one less. If the row at a itself is
removed, a - 1 takes its place, which is no nearer, while b and r fall by one or r stays: again a
change of at most
1. If the row at b is removed, the next one takes its rank. Ranks 0 and n + 1 always exist.

Fixed n is the same h for M = 1.

Time: the number of comparisons does not depend on the values; O(K log K) for K = cap * M.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import sub

from app.mechanisms.smooth_sensitivity.rank_bound import gap_corners
from app.queries.shapes.ranks.rank import RankRule
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.window import Window


def reach_of(shape: RankShape, cap: int) -> int:
    """Number of ranks on each side that matter for distances up to the cap."""
    return _moves(shape) * (cap + 1)


def rank_distance(shape: RankShape, window: Window, rule: RankRule, bound: int, cap: int) -> int:
    """Distance for the value at one rank, in persons; `bound` is B, in steps."""
    moves = _moves(shape)
    if not shape.fixed and moves == 1:
        return _to_a_corner(window, rule, bound, cap)
    return -(-_to_a_window(window, rule(window.count), bound, moves, cap * moves) // moves)


def _moves(shape: RankShape) -> int:
    """Moves per person. With fixed n a person is one replaced row."""
    return 1 if shape.fixed else shape.moves


def _to_a_window(window: Window, rank: int, bound: int, moves: int, cap: int) -> int:
    """h, or the cap if that is less.

    The widest windows, with b - a = M + k, decide whether there is a window for k. If there is
    one for k there is one for k + 1."""
    first, last = rank - moves - cap, rank + moves + cap
    values = [window[min(max(at, 0), window.count + 1)] for at in range(first, last + 1)]

    def has_wide_window(k: int) -> bool:
        low = values[cap - k : cap + moves + 1]  # ranks r - M - k to r
        # the same number of ranks, M + k above
        high = values[cap + moves : cap + 2 * moves + k + 1]
        widest: int = max(map(sub, high, low))
        return widest > bound

    return smallest_satisfying(has_wide_window, cap)


def smallest_satisfying(holds: Callable[[int], bool], cap: int) -> int:
    """Smallest k >= 0 that satisfies a monotone predicate, or the cap.

    The number of bisection steps does not depend on the predicate."""
    low, high = -1, cap
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _to_a_corner(window: Window, rule: RankRule, bound: int, cap: int) -> int:
    n = window.count
    lowest, highest = max(0, rule(n) - cap - 1), min(n + 1, rule(n) + cap + 1)
    values = [window[at] for at in range(lowest, highest + 1)]
    nearest = cap
    corners = (corner.tolist() for corner in gap_corners(rule, n, cap))
    for m, below, end in zip(*corners, strict=True):
        if lowest <= below <= min(n, highest):
            # From `below` to the first b >= end that is far enough.
            start = max(end, lowest) - lowest
            b = lowest + bisect_right(
                values, values[below - lowest] + bound, min(start, len(values))
            )
            if b <= highest:
                nearest = min(nearest, n - m + 2 * (b - end))
        if max(1, lowest) <= end <= highest:
            # From the last a <= below that is far enough, to `end`.
            stop = max(0, min(below, highest) + 1 - lowest)
            a = lowest + bisect_left(values, values[end - lowest] - bound, 0, stop) - 1
            if a >= lowest:
                nearest = min(nearest, n - m + 2 * (below - a))
    return nearest
