"""Triangles: the influence of an edge by brute force, and its smooth bound."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations

import pytest

from app.mechanisms.smooth_sensitivity.rank_bound import SLACK
from app.mechanisms.smooth_sensitivity.triangles import smooth_common
from app.queries.tally import GraphCounts
from tests.engines.test_graph import Edges, counted

NODES = 5
PAIRS = list(combinations(range(NODES), 2))
Graph = frozenset[tuple[int, int]]


def graphs() -> Iterator[Graph]:
    """All graphs on this many nodes."""
    for bits in range(1 << len(PAIRS)):
        yield frozenset(pair for i, pair in enumerate(PAIRS) if bits >> i & 1)


def neighbours(graph: Graph) -> Iterator[Graph]:
    for pair in PAIRS:
        yield graph ^ {pair}


@cache
def counts(graph: Graph) -> GraphCounts:
    return counted(set(graph), NODES)


def test_the_most_common_neighbours_are_the_local_sensitivity_and_move_by_one() -> None:
    for graph in graphs():
        here = counts(graph)
        others = [counts(other) for other in neighbours(graph)]
        assert max(abs(here.triangles - other.triangles) for other in others) == here.common
        assert all(abs(here.common - other.common) <= 1 for other in others)
        assert here.common <= NODES - 2


def test_common_neighbours_of_joined_pairs_only_are_not_enough() -> None:
    """The saboteur misses two unjoined nodes with three common neighbours."""
    graph = frozenset((end, node) for node in (2, 3, 4) for end in (0, 1))
    joined = max(
        len({n for n in range(NODES) if {tuple(sorted((a, n))), tuple(sorted((b, n)))} <= graph})
        for a, b in graph
    )
    assert joined < counts(graph).common == 3


@cache
def farthest() -> dict[Graph, list[int]]:
    """A^(k) of every graph, by brute force over k steps."""
    reached = {graph: [counts(graph).common] for graph in graphs()}
    for _ in range(len(PAIRS)):
        last = {graph: found[-1] for graph, found in reached.items()}
        for graph, found in reached.items():
            found.append(max(last[other] for other in (graph, *neighbours(graph))))
    return reached


@pytest.mark.parametrize("beta", [Fraction(1, 20), Fraction(1, 5), Fraction(1, 2), Fraction(2)])
def test_the_bound_is_smooth_and_above_the_smooth_sensitivity(beta: Fraction) -> None:
    grows = math.exp(beta)
    bounds = [smooth_common(common, NODES - 2, beta) for common in range(NODES - 1)]
    for common, bound in enumerate(bounds):
        terms = (math.exp(-beta * k) * min(common + k, NODES - 2) for k in range(2 * len(PAIRS)))
        assert math.isclose(bound, max(terms), rel_tol=1e-12)
    for graph, terms_at in farthest().items():
        least = max(math.exp(-beta * k) * most for k, most in enumerate(terms_at))
        smooth_bound = bounds[counts(graph).common]
        assert counts(graph).common <= smooth_bound
        assert least * (1 - 1e-12) <= smooth_bound <= 2 * grows * least
        for other in neighbours(graph):
            assert smooth_bound <= bounds[counts(other).common] * Fraction(grows) * (
                1 + Fraction(1, 10**9)
            )


def test_the_bound_is_rounded_up_and_no_more() -> None:
    beta = Fraction(1, 3)
    exact = 3 * (1 - SLACK / 2)
    assert exact < smooth_common(3, 10**6, beta) <= 3 * (1 + 2 * SLACK)
    assert smooth_common(10, 10, Fraction(1, 100)) >= 10


@pytest.mark.parametrize(
    ("edges", "nodes", "expected", "smooth"),
    [
        ("01 02 12 13 23 34", 5, GraphCounts(2, 2), {"0.5": 2.0, "0.2": 2.4561923}),
        ("01 02 03 04 05 12", 6, GraphCounts(1, 1), {"0.5": 1.2130613}),
    ],
)
def test_the_bounds_are_the_golden_ones(
    edges: str, nodes: int, expected: GraphCounts, smooth: dict[str, float]
) -> None:
    """The bound of Nissim, Raskhodnikova and Smith (2007) on small graphs, computed by hand."""
    made: Edges = {(int(pair[0]), int(pair[1])) for pair in edges.split()}
    assert counted(made, nodes) == expected
    for beta, bound in smooth.items():
        found = smooth_common(expected.common, nodes - 2, Fraction(beta))
        assert math.isclose(found, bound, abs_tol=1e-7)
