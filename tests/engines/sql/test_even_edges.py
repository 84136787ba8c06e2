"""Intervals with even edges, found by a quotient, are those that comparison finds."""

import math
from bisect import bisect_right
from itertools import pairwise

import pytest

from app.engines.sql import bins
from app.engines.sql.even_bins import find_even
from app.queries.tally import ByEdges, CountRows, Tally
from tests.engines.remote.tables import CARD, Room, Row, write_parquet


def row(income: float) -> Row:
    return dict.fromkeys(column.name for column in CARD.columns) | {"income": income}


# In the second, third and fourth, rounding guesses the upper edge one interval too low.
@pytest.mark.parametrize(("count", "width"), [(100, 0.1), (50, 7.7), (107, 0.1), (107, 3.3)])
def test_values_at_and_beside_even_edges_fall_in_the_interval_that_comparison_finds(
    room: Room, count: int, width: float
) -> None:
    edges = tuple(i * width for i in range(count + 1))
    assert bins._evenly_spaced(edges)
    near = [math.nextafter(edge, way) for edge in edges for way in (-math.inf, edge, math.inf)]
    write_parquet(room.data / "t.parquet", [row(value) for value in near])
    dataset = room.prepared("t.parquet")
    tally = Tally(None, (ByEdges("income", edges),), (CountRows(),))
    expected = [0] * count
    for value in near:
        if edges[0] <= value <= edges[-1]:
            expected[min(bisect_right(edges, value) - 1, count - 1)] += 1
    assert room.ask(dataset, tally) == (tuple(expected),)


def paired(candidates: list[float]) -> tuple[float, ...]:
    return tuple(edge for c in candidates for edge in (c, math.nextafter(c, math.inf)))


# Even edges that a quotient resolves, and candidates with the doubles after them. Both also with a
# first edge that rounds a value's distance, so that no quotient would be right.
@pytest.mark.parametrize(
    ("edges", "is_even"),
    [
        (tuple(i * 2.5 for i in range(401)), True),
        (tuple(i * 10.0 for i in range(101)), True),
        ((*(float(i) for i in range(50)), 1000.25), True),
        (paired([i * 10.0 for i in range(101)]), True),
        (paired([i * 7.0 for i in range(140)]), True),
        (paired([100.0 + i * 0.25 for i in range(30)]), True),
        (paired([i * 0.1 for i in range(200)]), False),
        (paired([i * 0.5 - 10.5 for i in range(100)]), False),
        (tuple(i * 0.5 - 10.0 for i in range(100)), False),
    ],
)
def test_a_quotient_finds_the_same_intervals_as_comparison(
    room: Room, edges: tuple[float, ...], is_even: bool
) -> None:
    assert (find_even(edges) is not None) is is_even
    near = [math.nextafter(edge, way) for edge in edges for way in (-math.inf, edge, math.inf)]
    near += [(low + high) / 2 for low, high in pairwise(edges)]
    near += [5e-324, 1e-310, 1e-300, -5e-324, -1e-300, 0.0, 999.75, 2e3]
    write_parquet(room.data / "t.parquet", [row(value) for value in near])
    dataset = room.prepared("t.parquet")
    tally = Tally(None, (ByEdges("income", edges),), (CountRows(),))
    expected = [0] * (len(edges) - 1)
    for value in near:
        stored = min(max(value, -10.5), 1000.25)  # as clamped by the card
        if edges[0] <= stored <= edges[-1]:
            expected[min(bisect_right(edges, stored) - 1, len(edges) - 2)] += 1
    assert room.ask(dataset, tally) == (tuple(expected),)


def test_uneven_edges_are_not_guessed() -> None:
    assert find_even(tuple(i * i / 40 for i in range(100))) is None
    assert find_even((-1e18, *(float(i) for i in range(100)), 1e18)) is None
    assert not bins._evenly_spaced(tuple(i * i / 40 for i in range(100)))
    assert not bins._evenly_spaced((-1e18, *(float(i) for i in range(100)), 1e18))
