"""Counting in graphs: exact for any graph, and without graphs that take far longer than others."""

from collections.abc import Iterator
from hashlib import shake_128
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.engines import graph, neighbours
from app.engines.neighbours import Walk, count_neighbours
from app.errors import EngineFailed
from app.queries.tally import GraphCounts, GraphCountsRequest
from tests.engines.clock import WatchdogClock
from tests.engines.remote.tables import ASKER, Room, room_in, write_csv
from tests.engines.test_graph import ENDS, edge_card

Ends = tuple[Any, Any]
SMALL = (
    ("CORE", (1, 2, 5, 2048)),
    ("STRIPE", (1, 256)),
    ("BLOCK", (1, 40, 1 << 22)),
    ("LOOKUP", (0, 0, 1, 32)),
)


def chances(seed: int, *shape: int) -> Any:
    """Reproducible numbers between 0 and 1."""
    words = shake_128(str(seed).encode()).digest(4 * prod(shape))
    return np.frombuffer(words, dtype=np.uint32).reshape(shape) / 2**32


def by_products(one: Any, other: Any) -> GraphCounts:
    """Counts from the whole adjacency matrix."""
    nodes = int(max(one.max(), other.max())) + 1
    matrix = np.zeros((nodes, nodes), dtype=np.int64)
    matrix[one, other] = matrix[other, one] = 1
    shared = matrix @ matrix
    triangles = int((shared * matrix).sum()) // 6
    np.fill_diagonal(shared, 0)
    return GraphCounts(triangles, int(shared.max()))


def graphs(many: int) -> Iterator[Ends]:
    """Even graphs, and graphs in which a few nodes are adjacent to most others."""
    for number in range(many):
        kind = number // 2
        nodes = (3, 6, 12, 40)[kind % 4]
        joined = chances(number, nodes, nodes) < (0.02, 0.1, 0.3, 0.6, 1.1)[kind % 5]
        if number % 2:
            hubs = min(1 + kind % 4, nodes - 1)
            joined &= chances(number + many, nodes, nodes) < 0.2
            joined[:hubs] |= chances(number + 2 * many, hubs, nodes) < (kind % 11) / 10
        one, other = np.nonzero(np.triu(joined, 1))
        if len(one):
            name = np.argsort(chances(number + 3 * many, nodes))
            _, places = np.unique(np.concatenate((name[one], name[other])), return_inverse=True)
            yield places[: len(one)], places[len(one) :]


def counts_differ(monkeypatch: pytest.MonkeyPatch, many: int) -> int:
    """Number of graphs with wrong counts, with parts so small that every code path runs."""
    wrong = 0
    for number, (one, other) in enumerate(graphs(many)):
        for step, (name, values) in enumerate(SMALL):
            monkeypatch.setattr(neighbours, name, values[number // 3**step % len(values)])
        wrong += count_neighbours(one, other, lambda: None) != by_products(one, other)
    return wrong


def test_counts_are_those_of_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counts_differ(monkeypatch, 400) == 0


def test_omitted_neighbours_of_popular_nodes_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The saboteur ignores neighbours that many nodes share."""
    forgotten = lambda self, node, other, beat: np.zeros(len(node), dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(Walk, "_left_out", forgotten)
    assert counts_differ(monkeypatch, 400) > 0


def test_pairs_within_the_core_alone_are_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The saboteur assumes that nodes with many neighbours share the most."""
    monkeypatch.setattr(neighbours, "_most_common", lambda graph, core, common, beat: common)
    assert counts_differ(monkeypatch, 400) > 0


LEAVES = 50_000


def test_leaves_of_a_large_star_are_not_compared_pairwise(tmp_path: Path) -> None:
    """A tree: a centre, its leaves, and one more node behind each.

    Joined through the centre they would be a billion pairs, and the time limit would reveal the
    graph.
    """
    with room_in(tmp_path, timeout_seconds=20.0) as room:
        pairs = [(0, leaf) for leaf in range(1, LEAVES + 1)]
        pairs += [(leaf, leaf + LEAVES) for leaf in range(1, LEAVES + 1)]
        write_csv(room.data / "e.csv", [{"a": a, "b": b} for a, b in pairs])
        dataset = room.prepared("e.csv", edge_card(2 * LEAVES + 1))
        assert room.engine.graph(dataset, GraphCountsRequest(None, ENDS), ASKER) == GraphCounts(
            0, 1
        )


def test_half_of_all_pairs_of_a_thousand_nodes_are_counted() -> None:
    one, other = np.nonzero(np.triu(chances(7, 1000, 1000) < 0.5, 1))
    assert count_neighbours(one, other, lambda: None) == by_products(one, other)


def test_the_time_limit_applies_between_statements(
    room: Room, clock: WatchdogClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bool] = []

    def counts(first: Any, last: Any, beat: Any) -> GraphCounts:
        beat()
        clock.end_the_time()
        heard.append(False)
        beat()
        heard[-1] = True  # not reached: it was interrupted
        return GraphCounts(0, 0)

    write_csv(room.data / "e.csv", [{"a": 0, "b": 1}])
    dataset = room.prepared("e.csv", edge_card(3))
    with monkeypatch.context() as patch:
        patch.setattr(graph, "count_neighbours", counts)
        with pytest.raises(EngineFailed):
            room.engine.graph(dataset, GraphCountsRequest(None, ENDS), ASKER)
    assert heard == [False]
    assert room.engine.graph(dataset, GraphCountsRequest(None, ENDS), ASKER) == GraphCounts(0, 0)
