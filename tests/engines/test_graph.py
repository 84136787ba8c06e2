"""Graphs in the engine: each edge is stored once, for all ways to write it, and counted exactly."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any
from zlib import crc32

import pytest

from app.data.card import Card, Dataset
from app.engines import neighbours
from app.errors import EngineFailed
from app.queries.tally import AllOf, Compare, Condition, GraphCounts, GraphCountsRequest
from tests.engines.endless import never_end, no_time
from tests.engines.remote.tables import (
    ASKER,
    Room,
    card_of,
    room_in,
    stored,
    write_csv,
    write_parquet,
)

Edges = set[tuple[int, int]]
ENDS = ("a", "b")
EDGE: dict[str, Any] = {"kind": "edge", "ends": list(ENDS)}


def edge_card(nodes: int, *more: dict[str, Any]) -> Card:
    ends = [{"name": name, "type": "integer", "low": 0, "high": nodes - 1} for name in ENDS]
    return card_of(*ends, *more, person=EDGE)


def counted(edges: Edges, nodes: int) -> GraphCounts:
    """Counts by brute force over all triples of nodes."""
    joined: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in edges:
        joined[a].add(b)
        joined[b].add(a)
    triangles = sum(
        b in joined[a] and c in joined[a] and c in joined[b]
        for a, b, c in combinations(range(nodes), 3)
    )
    common = max(len(joined[a] & joined[b]) for a, b in combinations(range(nodes), 2))
    return GraphCounts(triangles, common)


def graph_of(room: Room, dataset: Dataset, where: Condition | None = None) -> GraphCounts:
    return room.engine.graph(dataset, GraphCountsRequest(where, ENDS), ASKER)


def rows_of(edges: Edges) -> list[dict[str, Any]]:
    return [{"a": a, "b": b} for a, b in sorted(edges)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_edge_is_stored_once_with_its_smaller_end_first(room: Room, kind: str) -> None:
    sent = [(3, 1), (1, 3), (1, 3), (2, 2), (0, 4), (5, 0), (-1, 2), (0, 10**18), (None, 1), (1, 0)]
    if kind == "parquet":
        types = {"a": "BIGINT", "b": "BIGINT"}
        write_parquet(room.data / "e.parquet", [{"a": a, "b": b} for a, b in sent], types)
    else:
        write_csv(
            room.data / "e.csv",
            [{"a": a, "b": b} for a, b in sent] + [{"a": "x", "b": 2}, {"a": 0, "b": "9" * 30}],
        )
    dataset = room.prepared(f"e.{kind}", edge_card(5))
    assert sorted(stored(room, dataset)) == [(0, 1), (0, 4), (1, 3)]


def test_one_row_of_each_edge_is_kept_in_either_direction(room: Room) -> None:
    weight = {"name": "w", "type": "integer", "low": 0, "high": 9}
    rows = [{"a": 1, "b": 0, "w": 3}, {"a": 0, "b": 1, "w": 4}, {"a": 2, "b": 1, "w": 5}]
    write_csv(room.data / "e.csv", rows)
    write_csv(room.data / "again.csv", rows[::-1])
    kept = sorted(stored(room, room.prepared("e.csv", edge_card(3, weight))))
    assert [row[:2] for row in kept] == [(0, 1), (1, 2)]
    assert kept == sorted(stored(room, room.prepared("again.csv", edge_card(3, weight))))


@pytest.fixture(scope="module", params=[0.0, 0.15, 0.5, 1.0])
def random_graphs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Room, list[tuple[Dataset, GraphCounts]]]]:
    """Six graphs of 14 nodes, each pair joined with this chance, and their counts."""
    nodes = 14
    with room_in(tmp_path_factory.mktemp("graphs"), memo_size=0) as room:
        graphs = []
        for number in range(6):
            words = (
                (pair, crc32(f"{pair}{number}".encode())) for pair in combinations(range(nodes), 2)
            )
            edges = {pair for pair, word in words if word < request.param * 2**32}
            write_parquet(
                room.data / f"{number}.parquet", rows_of(edges), {"a": "BIGINT", "b": "BIGINT"}
            )
            dataset = room.prepared(f"{number}.parquet", edge_card(nodes))
            graphs.append((dataset, counted(edges, nodes)))
        yield room, graphs


@pytest.mark.parametrize("first", [1, 3, 512])
def test_counts_are_those_of_brute_force(
    random_graphs: tuple[Room, list[tuple[Dataset, GraphCounts]]],
    monkeypatch: pytest.MonkeyPatch,
    first: int,
) -> None:
    """This holds for every size of the first part of nodes."""
    monkeypatch.setattr(neighbours, "CORE", first)
    room, graphs = random_graphs
    for dataset, counts in graphs:
        assert graph_of(room, dataset) == counts


def test_unjoined_nodes_count_as_pairs_and_stars_have_no_triangle(room: Room) -> None:
    """Nodes 0 and 1 share five neighbours without an edge; 7 is the centre of a star."""
    shared = {(end, node) for node in range(2, 7) for end in (0, 1)}
    star = {(7, node) for node in range(8, 30)}
    write_csv(room.data / "e.csv", rows_of(shared | star))
    dataset = room.prepared("e.csv", edge_card(30))
    assert graph_of(room, dataset) == GraphCounts(0, 5)


def test_a_filter_leaves_a_graph_with_fewer_edges(room: Room) -> None:
    weight = {"name": "w", "type": "integer", "low": 0, "high": 9}
    edges = list(combinations(range(4), 2))
    rows = [{"a": a, "b": b, "w": 9 if (a, b) == (0, 1) else 1} for a, b in edges]
    write_csv(room.data / "e.csv", rows)
    dataset = room.prepared("e.csv", edge_card(4, weight))
    assert graph_of(room, dataset) == GraphCounts(4, 2)
    assert graph_of(room, dataset, Compare("w", "<", 5)) == GraphCounts(2, 2)
    assert graph_of(room, dataset) == GraphCounts(4, 2)


def test_a_slow_graph_count_is_interrupted(room: Room) -> None:
    edges = set(combinations(range(40), 2))
    write_csv(room.data / "e.csv", rows_of(edges))
    dataset = room.prepared("e.csv", edge_card(40))
    never_end(room, dataset, "0", "1 + range % 2", rows=10**9)
    none_of_them = AllOf((Compare("b", ">", 1), Compare("b", "<", 2)))  # too many edges are refused
    with no_time(room), pytest.raises(EngineFailed):
        graph_of(room, dataset, none_of_them)
    assert graph_of(room, dataset, Compare("a", ">", 0)).triangles == 39 * 38 * 37 // 6
