"""Distances compared with the nearest unsafe table by brute force, and with golden values."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise
from typing import Any

import pytest

from app.mechanisms.propose_test_release.local_mean import TrimmedMeanStatistic
from app.mechanisms.propose_test_release.local_statistic import RankStatistic
from app.mechanisms.propose_test_release.rank_distance import (
    rank_distance,
    reach_of,
    smallest_satisfying,
)
from app.queries.shapes.ranks.rank import (
    RankFromAbove,
    RankFromBelow,
    RankRule,
    ShareRank,
    TrimmedRank,
)
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.window import Window
from tests.effort import thorough_after

Table = tuple[int, ...]
TOP = 3
HALF = ShareRank(Fraction(1, 2))
QUARTILES = (ShareRank(Fraction(1, 4)), ShareRank(Fraction(3, 4)))
RULES: list[RankRule] = [
    *(ShareRank(Fraction(a, b)) for a, b in [(1, 2), (1, 10), (1, 3), (2, 3), (9, 10), (1, 1)]),
    *(rule(k) for rule in (RankFromBelow, RankFromAbove) for k in (1, 2, 3)),
]


def shape_of(
    ranks: tuple[RankRule, ...], *, fixed: bool, moves: int, top: int = TOP, statistic: Any = "rank"
) -> RankShape:
    return RankShape(statistic, ranks, None, "x", 0, (0, top), fixed, moves, None)


def windows(shape: RankShape, table: Table, cap: int) -> tuple[Window, ...]:
    """Windows as the engine returns them, without ranks beyond `reach`."""
    reach, n = reach_of(shape, cap), len(table)
    cut = []
    for rule in shape.ranks:
        first, last = max(1, rule(n) - reach), min(n, rule(n) + reach)
        cut.append(Window(shape.bounds, n, first, tuple(sorted(table)[first - 1 : last])))
    return tuple(cut)


def tables(size: int, top: int = TOP) -> list[Table]:
    return list(combinations_with_replacement(range(top + 1), size))


def apart(x: Table, y: Table) -> int:
    """Distance of two tables in added and removed rows."""
    return sum(abs(x.count(v) - y.count(v)) for v in range(TOP + 1))


def value(rule: RankRule, table: Table) -> int:
    return table[rule(len(table)) - 1] if table else 0


def d(shape: RankShape, x: Table, bound: int, cap: int) -> int:
    return RankStatistic(shape).distance(windows(shape, x, cap), bound, cap)


# One row added or removed: exact


@pytest.mark.parametrize("rule", RULES)
def test_under_add_remove_the_distance_is_that_to_the_nearest_unsafe_table(rule: RankRule) -> None:
    cap = 4
    shape = shape_of((rule,), fixed=False, moves=1)
    every = [table for size in range(9) for table in tables(size)]

    @cache
    def local(x: Table) -> int:
        less = [x[:i] + x[i + 1 :] for i in range(len(x))]
        more = [tuple(sorted((*x, v))) for v in range(TOP + 1)]
        return max(abs(value(rule, x) - value(rule, y)) for y in [*less, *more])

    for bound in (1, 2):
        unsafe = [y for y in every if local(y) > bound]
        for x in (x for size in range(5) for x in tables(size)):
            near = [apart(x, y) for y in unsafe if abs(len(x) - len(y)) < cap]
            assert d(shape, x, bound, cap) == min([cap, *near]), (x, bound)


# One row replaced, n fixed: exact for a rank, a range and a trimmed mean


def nearest(
    number: Callable[[Table], Fraction], size: int, x: Table, bound: Fraction, cap: int
) -> int:
    every = tables(size)
    unsafe = [
        y
        for y in every
        if any(abs(number(y) - number(z)) > bound for z in every if apart(y, z) == 2)
    ]
    return min([cap, *(apart(x, y) // 2 for y in unsafe)])


@pytest.mark.parametrize("size", thorough_after(4, [1, 2, 3, 4, 5]))
def test_under_replace_one_the_distance_is_that_to_the_nearest_unsafe_table(size: int) -> None:
    for rank in range(1, size + 1):
        rule = RankFromBelow(rank)
        shape = shape_of((rule,), fixed=True, moves=2)
        for bound in (1, 2):
            for x in tables(size):
                expected = nearest(lambda t: Fraction(t[rank - 1]), size, x, Fraction(bound), 4)  # noqa: B023
                assert d(shape, x, bound, 4) == expected, (x, rank, bound)


@pytest.mark.parametrize("size", [2, 4, 5])
def test_a_range_under_replace_one_has_the_smaller_distance_exactly(size: int) -> None:
    shape = shape_of(QUARTILES, fixed=True, moves=2, statistic="distance")
    low, high = (rule(size) for rule in QUARTILES)

    def number(t: Table) -> Fraction:
        return Fraction(t[high - 1] - t[low - 1])

    for bound in (1, 2):
        for x in tables(size):
            assert d(shape, x, bound, 4) == nearest(number, size, x, Fraction(bound), 4)


@pytest.mark.parametrize(("size", "trim"), [(3, "0.1"), (3, "0.4"), (5, "0.2"), (4, "0.3")])
def test_a_trimmed_mean_has_the_distance_to_the_nearest_unsafe_table(size: int, trim: str) -> None:
    ends = TrimmedRank(Fraction(trim), last=False), TrimmedRank(Fraction(trim), last=True)
    shape = shape_of(ends, fixed=True, moves=2, statistic="mean_between")
    first, last = (rule(size) for rule in ends)

    def number(t: Table) -> Fraction:
        return Fraction(sum(t[first - 1 : last]), last - first + 1)

    for finer, bound in ((3, 3), (3, 8), (2, 4)):  # in units of 2^-finer
        statistic = TrimmedMeanStatistic(shape, finer)
        for x in tables(size):
            found = windows(shape, x, 4), sum(x[first - 1 : last])
            steps = Fraction(bound, 2**finer)
            assert statistic.distance(found, bound, 4) == nearest(number, size, x, steps, 4)
            assert statistic.value(found) == (number(x) * 2**finer) // 1


# Persons with several rows: the requirements of the test, and a saboteur


def violations(shape: RankShape, bound: int, counted_as: RankShape) -> int:
    """Number of pairs with distances more than one apart, or unsafe with a distance above 0."""

    @cache
    def distance(x: Table) -> int:
        return d(counted_as, x, bound, 3)

    def number(x: Table) -> int:
        ends = [value(rule, x) for rule in shape.ranks]
        return ends[-1] - ends[0] if shape.statistic == "distance" else ends[0]

    every = [x for size in range(6) for x in tables(size)]
    return sum(
        abs(distance(x) - distance(y)) > 1
        or (abs(number(x) - number(y)) > bound and max(distance(x), distance(y)) > 0)
        for x in every
        for y in every
        if 0 < apart(x, y) <= shape.moves
    )


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize(
    ("statistic", "ranks"),
    [("rank", (HALF,)), ("rank", (RankFromAbove(2),)), ("distance", QUARTILES)],
)
def test_a_person_changes_a_distance_by_one_and_unsafe_tables_have_distance_0(
    statistic: str, ranks: tuple[RankRule, ...], bound: int, moves: int
) -> None:
    shape = shape_of(ranks, fixed=False, moves=moves, statistic=statistic)
    assert violations(shape, bound, shape) == 0
    if moves > 1:
        row = shape_of(ranks, fixed=False, moves=1, statistic=statistic)
        assert violations(shape, bound, row) > 0


def too_near(ranks: tuple[RankRule, ...], bound: int) -> int:
    """Number of pairs one row apart whose range changes by more than the bound undetected.

    Both ends of one of the tables have a distance above 0.
    """
    wrong = 0
    for size in range(8):
        for x in tables(size):
            for y in (tuple(sorted((*x, v))) for v in range(TOP + 1)):
                ends = [[value(rule, t) for rule in ranks] for t in (x, y)]
                changed = (ends[1][1] - ends[1][0]) - (ends[0][1] - ends[0][0])
                for t in (x, y):
                    apart = [d(shape_of((r,), fixed=False, moves=1), t, bound, 4) for r in ranks]
                    wrong += abs(changed) > bound and min(apart) > 0
    return wrong


def test_one_row_does_not_move_the_two_quartiles_in_opposite_directions() -> None:
    assert too_near(QUARTILES, 1) == 0
    lower, upper = QUARTILES
    for n in range(2000):
        if lower(n + 1) > lower(n):
            assert upper(n + 1) > upper(n)


def test_ranks_that_one_row_moves_in_opposite_directions_get_half_of_the_bound_each() -> None:
    """With the whole bound for each, the median and two thirds of the rows are caught."""
    ranks = (HALF, ShareRank(Fraction(2, 3)))
    assert too_near(ranks, 1) > 0
    shape = shape_of(ranks, fixed=False, moves=1, statistic="distance")
    assert violations(shape, 1, shape) == 0


def test_a_range_under_add_remove_has_at_most_the_distance_to_the_nearest_unsafe_table() -> None:
    """It is seldom less: one end may move while the other moves along."""
    cap, equal = 3, 0
    shape = shape_of(QUARTILES, fixed=False, moves=1, statistic="distance")

    def number(x: Table) -> int:
        return value(QUARTILES[1], x) - value(QUARTILES[0], x)

    @cache
    def local(x: Table) -> int:
        less = [x[:i] + x[i + 1 :] for i in range(len(x))]
        more = [tuple(sorted((*x, v))) for v in range(TOP + 1)]
        return max(abs(number(x) - number(y)) for y in [*less, *more])

    every = [table for size in range(10) for table in tables(size)]
    unsafe = [y for y in every if local(y) > 1]
    some = [x for size in range(7) for x in tables(size)]
    for x in some:
        near = min([cap, *(apart(x, y) for y in unsafe if abs(len(x) - len(y)) < cap)])
        assert d(shape, x, 1, cap) <= near
        equal += d(shape, x, 1, cap) == near
    assert equal > 0.95 * len(some)


# Golden values


SEVEN = (1, 2, 4, 7, 9, 12, 15)
ELEVEN = (5, 6, 6, 7, 7, 7, 8, 8, 9, 9, 10)
SIXTH, THIRD, NINTH = RankFromBelow(6), RankFromBelow(3), RankFromBelow(9)
# Table, upper bound, ranks, whether rows are replaced, B, d.
GOLDEN: list[tuple[Table, int, tuple[RankRule, ...], bool, int, int]] = [
    *((SEVEN, 20, (HALF,), True, bound, found) for bound, found in [(3, 1), (5, 2), (8, 3)]),
    *((SEVEN, 20, (HALF,), False, bound, found) for bound, found in [(3, 1), (5, 2), (8, 3)]),
    *((ELEVEN, 100, (SIXTH,), True, bound, found) for bound, found in [(1, 2), (2, 4), (3, 5)]),
    *((ELEVEN, 100, (HALF,), False, bound, found) for bound, found in [(1, 4), (2, 5), (3, 8)]),
    (SEVEN, 20, (RankFromBelow(2), SIXTH), True, 4, 1),
    (ELEVEN, 100, (THIRD, NINTH), True, 2, 2),
]


@pytest.mark.parametrize(("table", "top", "ranks", "fixed", "bound", "expected"), GOLDEN)
def test_distances_are_the_golden_ones(
    table: Table, top: int, ranks: tuple[RankRule, ...], fixed: bool, bound: int, expected: int
) -> None:
    statistic = "rank" if len(ranks) == 1 else "distance"
    shape = shape_of(ranks, fixed=fixed, moves=1 + fixed, top=top, statistic=statistic)
    assert d(shape, table, bound, 10) == expected
    for cap in range(1, 10):
        assert d(shape, table, bound, cap) == min(cap, expected)


# Values that are read


def test_the_distance_is_the_cap_if_nothing_can_move_that_far() -> None:
    for fixed, moves in ((True, 2), (False, 1), (False, 3)):
        shape = shape_of((HALF,), fixed=fixed, moves=moves)
        assert d(shape, (0, 1, 2), TOP, 7) == 7
        (window,) = windows(shape, (0, 1, 2), 7)
        assert rank_distance(shape, window, HALF, TOP, 7) == 7


def test_bisection_finds_the_least_with_a_constant_number_of_steps() -> None:
    for cap in (1, 2, 8, 64):
        counts = set()
        for first in range(cap + 1):
            found, asked = _least(first, cap)
            assert found == first
            counts.add(asked)
        assert max(counts) - min(counts) <= 1


def _least(first: int, cap: int) -> tuple[int, int]:
    tried: list[int] = []

    def holds(k: int) -> bool:
        tried.append(k)
        return k >= first

    return smallest_satisfying(holds, cap), len(tried)


def test_distances_grow_with_the_bound() -> None:
    for moves in (1, 2):
        shape = shape_of((HALF,), fixed=False, moves=moves, top=20)
        found = [d(shape, SEVEN, bound, 30) for bound in range(1, 21)]
        assert all(a <= b for a, b in pairwise(found))
        assert found[-1] == 30
