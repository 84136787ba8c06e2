"""Smooth sensitivity compared with the maximum over all tables, and with golden values."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import pytest

from app.mechanisms.smooth_sensitivity.rank_bound import (
    SLACK,
    Weights,
    fixed_bound,
    moving_bound,
    reach_of,
    smooth_bound,
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
TOP = 3  # values of the small tables are 0 to this
HALF = ShareRank(Fraction(1, 2))
SHARES = [(1, 2), (1, 10), (1, 3), (2, 3), (9, 10), (1, 1)]
RULES: list[RankRule] = [
    *(ShareRank(Fraction(a, b)) for a, b in SHARES),
    *(rule(k) for rule in (RankFromBelow, RankFromAbove) for k in (1, 2, 3)),
]


def window(table: Table, rank: int, reach: int, bounds: tuple[int, int] = (0, TOP)) -> Window:
    """The window as the engine returns it, without ranks beyond reach + 1."""
    first, last = max(1, rank - reach - 1), min(len(table), rank + reach + 1)
    return Window(bounds, len(table), first, tuple(sorted(table)[first - 1 : last]))


def tables(size: int) -> Iterator[Table]:
    return combinations_with_replacement(range(TOP + 1), size)


def distance(x: Table, y: Table) -> int:
    one, two = Counter(x), Counter(y)
    return sum(((one - two) + (two - one)).values())


def neighbours(table: Table) -> Iterator[Table]:
    """All tables with one row more or less."""
    for i in range(len(table)):
        yield table[:i] + table[i + 1 :]
    for value in range(TOP + 1):
        yield tuple(sorted((*table, value)))


def value(rule: RankRule, table: Table) -> int:
    return table[rule(len(table)) - 1] if table else 0


def near(found: Fraction, expected: float) -> bool:
    return math.isclose(found, expected, rel_tol=1e-12)


def brute(
    local: Callable[[Table], float], away: dict[Table, int], beta: float, reach: int
) -> float:
    """Maximum over all tables within `reach`, and the bound for those beyond."""
    within = (math.exp(-beta * d) * local(y) for y, d in away.items() if d <= reach)
    return max(*within, TOP * math.exp(-beta * (reach + 1)))


@pytest.mark.parametrize("rule", RULES)
def test_under_add_remove_the_bound_is_the_maximum_over_all_tables(rule: RankRule) -> None:
    @cache
    def local(table: Table) -> int:
        here = value(rule, table)
        return max(abs(here - value(rule, other)) for other in neighbours(table))

    everything = [table for size in range(9) for table in tables(size)]
    for reach in (0, 1, 4):
        for x in (table for size in range(5) for table in tables(size)):
            away = {y: distance(x, y) for y in everything if abs(len(y) - len(x)) <= reach}
            there = window(x, rule(len(x)), reach)
            for beta in (0.05, 0.3, 1.5):
                weights = Weights.of(Fraction(beta), 6 * reach + 20)
                found = moving_bound(there, rule, weights, reach)
                assert near(found, brute(local, away, beta, reach)), (x, beta, reach)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_under_replace_one_the_bound_is_the_maximum_over_all_tables(size: int) -> None:
    every = list(tables(size))
    away = {x: {y: distance(x, y) // 2 for y in every} for x in every}
    for first in range(1, size + 1):
        for last in range(first, size + 1):

            def mean(table: Table, first: int = first, last: int = last) -> Fraction:
                return Fraction(sum(table[first - 1 : last]), last - first + 1)

            local = {
                x: max(abs(mean(x) - mean(y)) for y, d in away[x].items() if d <= 1) for x in every
            }
            for reach in (1, size):
                weights = {beta: Weights.of(Fraction(beta), 6 * reach + 20) for beta in (0.1, 0.9)}
                for x in every:
                    low, high = window(x, first, reach), window(x, last, reach)
                    for beta, weight in weights.items():
                        bound = fixed_bound(low, high, first, last, weight, reach)
                        within = max(
                            math.exp(-beta * d) * local[y] for y, d in away[x].items() if d <= reach
                        )
                        far = TOP * math.exp(-beta * (reach + 1)) / (last - first + 1)
                        assert near(bound, max(within, far)), (x, first, last, beta)


def shape_of(statistic: Any, ranks: tuple[RankRule, ...], *, fixed: bool, moves: int) -> RankShape:
    return RankShape(statistic, ranks, None, "x", 0, (0, TOP), fixed, moves, None)


def bound_of(shape: RankShape, x: Table, beta: Fraction) -> Fraction:
    reach = reach_of(shape, beta)
    around = tuple(window(x, rule(len(x)), reach, shape.bounds) for rule in shape.ranks)
    return smooth_bound(shape, around, beta)


QUARTILES = (ShareRank(Fraction(1, 4)), ShareRank(Fraction(3, 4)))
CLAIMS = [
    shape_of("rank", (HALF,), fixed=False, moves=1),
    shape_of("rank", (HALF,), fixed=False, moves=2),
    shape_of("rank", (RankFromAbove(1),), fixed=False, moves=3),
    shape_of("distance", QUARTILES, fixed=False, moves=1),
    shape_of("distance", QUARTILES, fixed=False, moves=2),
    shape_of("distance", QUARTILES, fixed=True, moves=2),
    shape_of("rank", (HALF,), fixed=True, moves=2),
    shape_of(
        "mean_between",
        tuple(TrimmedRank(Fraction(1, 4), last) for last in (False, True)),
        fixed=True,
        moves=2,
    ),
]


def statistic(shape: RankShape, table: Table) -> Fraction:
    if not table:
        return Fraction(0)
    ends = [rule(len(table)) for rule in shape.ranks]
    if shape.statistic == "mean_between":
        kept = table[ends[0] - 1 : ends[1]]
        return Fraction(sum(kept), len(kept))
    values = [table[end - 1] for end in ends]
    return Fraction(values[-1] - (values[0] if shape.statistic == "distance" else 0))


def persons_apart(shape: RankShape) -> Iterator[tuple[Table, Table]]:
    """All pairs of small tables that differ by one person."""
    if shape.fixed:
        for size in (1, 4, 5):
            for x in tables(size):
                yield from ((x, y) for y in tables(size) if distance(x, y) == 2)
        return
    every = [table for size in range(5) for table in tables(size)]
    for x in every:
        yield from ((x, y) for y in every if 0 < distance(x, y) <= shape.moves)


def violations(shape: RankShape, beta: Fraction, made_for: Fraction) -> int:
    """Number of pairs with a change above the bound, or with bounds further apart than beta."""
    bounds: dict[Table, Fraction] = {}

    def bound(x: Table) -> Fraction:
        if x not in bounds:
            bounds[x] = bound_of(shape, x, made_for)
        return bounds[x]

    grows = Fraction(math.exp(float(beta))) * (1 + Fraction(1, 10**14))
    return sum(
        abs(statistic(shape, x) - statistic(shape, y)) > bound(x) or bound(x) > grows * bound(y)
        for x, y in persons_apart(shape)
    )


@pytest.mark.parametrize("shape", CLAIMS)
@pytest.mark.parametrize("beta", thorough_after(1, [Fraction(1, 10), Fraction(3, 4)]))
def test_a_person_changes_no_more_than_the_bound_and_bounds_are_smooth(
    shape: RankShape, beta: Fraction
) -> None:
    assert violations(shape, beta, beta) == 0


@pytest.mark.parametrize("shape", thorough_after(3, CLAIMS))
def test_a_bound_for_a_larger_beta_is_caught(shape: RankShape) -> None:
    assert violations(shape, Fraction(1, 10), Fraction(2, 10)) > 0


def test_a_bound_for_one_row_is_caught_for_persons_with_two() -> None:
    beta = Fraction(1, 2)
    two = shape_of("rank", (HALF,), fixed=False, moves=2)
    one = replace(two, moves=1)
    wrong = [
        (x, y)
        for x, y in persons_apart(two)
        if abs(statistic(two, x) - statistic(two, y)) > bound_of(one, x, beta)
        or bound_of(one, x, beta) > Fraction(math.exp(0.5)) * bound_of(one, y, beta)
    ]
    assert wrong


SEVEN = (1, 2, 4, 7, 9, 12, 15)
EIGHT = (10, 11, 11, 12, 13, 14, 40, 90)
TEN = (2, 3, 5, 5, 6, 7, 8, 8, 9, 30)


class _Between:
    """Mean of some middle ranks of a fixed number of rows."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, n: int) -> int:
        return self.place


def middles(first: int, last: int) -> tuple[RankRule, ...]:
    return _Between(first), _Between(last)


# Values of the maximum over all windows: table, bounds, beta, statistic, whether n is fixed, S.
GOLDEN: list[tuple[Table, int, str, str, tuple[RankRule, ...], bool, float]] = [
    (SEVEN, 20, "0.25", "rank", (HALF,), True, 6.1407652),
    (SEVEN, 20, "0.1", "rank", (HALF,), True, 10.917552),
    (SEVEN, 20, "0.25", "rank", (HALF,), False, 4.7236655),
    (SEVEN, 20, "0.1", "rank", (HALF,), False, 9.9317061),
    (EIGHT, 100, "0.2", "mean_between", middles(4, 5), True, 26.142482),
    (EIGHT, 100, "0.2", "rank", (HALF,), True, 42.807308),
    (EIGHT, 100, "0.2", "rank", (RankFromAbove(1),), True, 62.223537),
    (EIGHT, 100, "0.2", "rank", (RankFromBelow(1),), True, 24.095537),
    (EIGHT, 100, "0.2", "mean_between", middles(3, 6), True, 16.169932),
    (EIGHT, 100, "0.2", "rank", (ShareRank(Fraction(9, 10)),), False, 62.223537),
    (EIGHT, 100, "0.2", "rank", (ShareRank(Fraction(1, 4)),), False, 24.095537),
    (TEN, 50, "0.1", "mean_between", middles(3, 8), True, 6.1404806),
    (SEVEN, 20, "0.25", "distance", QUARTILES, True, 6.6718373),
]


@pytest.mark.parametrize(("table", "high", "beta", "kind", "ranks", "fixed", "expected"), GOLDEN)
def test_the_bounds_are_the_golden_ones(
    table: Table,
    high: int,
    beta: str,
    kind: Any,
    ranks: tuple[RankRule, ...],
    fixed: bool,
    expected: float,
) -> None:
    shape = RankShape(kind, ranks, None, "x", 0, (0, high), fixed, 1, None)
    found = bound_of(shape, table, Fraction(beta) + SLACK)
    assert float(found) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("reach", "expected"), [(10, 6.1407652), (3, 7.3575888)])
def test_the_cut_off_gives_the_golden_bound(reach: int, expected: float) -> None:
    there = window(SEVEN, 4, reach, (0, 20))
    weights = Weights.of(Fraction(1, 4), 6 * reach + 20)
    assert float(fixed_bound(there, there, 4, 4, weights, reach)) == pytest.approx(expected)


def test_evenly_spread_values_have_the_bound_of_the_formula() -> None:
    """x_i = i / (n + 1) on [0, 1]: e^(beta - 1) / (beta n), where 1 / beta is an integer."""
    n = 100
    shape = RankShape("rank", (HALF,), None, "x", 0, (0, n + 1), True, 2, None)
    found = bound_of(shape, tuple(range(1, n + 1)), Fraction(1, 10) + SLACK) / (n + 1)
    assert float(found) == pytest.approx(math.exp(0.1 - 1) / (0.1 * 101), rel=1e-9)
    assert float(found) == pytest.approx(0.040254422, rel=1e-7)


def test_the_median_of_two_values_falls_smoothly_with_the_distance_to_a_tie() -> None:
    """With half of the rows at 0 and half at L, one row decides and S is L.

    Each row away from that tie divides S by exp(beta). Neighbours differ by no more.
    """
    n, length, beta = 101, 1000, Fraction(1, 5)
    shape = RankShape("rank", (HALF,), None, "x", 0, (0, length), True, 2, None)
    for ones in range(51, 60):
        table = (0,) * (n - ones) + (length,) * ones
        expected = length * math.exp(-0.2 * (ones - 51))
        assert near(bound_of(shape, table, beta + SLACK), expected)


def test_a_million_rows_need_only_a_window() -> None:
    shape = RankShape("rank", (HALF,), None, "x", 0, (0, 10**6), False, 1, None)
    beta = Fraction(1, 4)
    rank, reach, n = 500_000, reach_of(shape, Fraction(1, 4)), 1_000_000
    assert reach <= 113
    first = rank - reach - 1
    there = Window((0, 10**6), n, first, tuple(range(first, rank + reach + 2)))
    found = float(smooth_bound(shape, (there,), beta))
    # Gaps of g steps cost g - 1 moves or one more: the maximum of g exp(-beta (g - 1)) is near.
    best = max(g * math.exp(-0.25 * (g - 1)) for g in range(1, 40))
    assert best * math.exp(-0.25) <= found <= best * (1 + 1e-9)
