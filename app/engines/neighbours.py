"""Triangles, and the most neighbours that two nodes have in common: exact for every graph.

Nodes are numbered from 0 by falling degree. The adjacency matrix A is stored by rows; (A A)_ij is
the number of neighbours that i and j share. It is never computed as a whole:

CORE  For the first h nodes it is a dense product, in floats that hold integers below 2^24 exactly.
      Neighbours outside the h nodes are added by sparse products.
REST  Row by row for the later nodes. Let c be the most neighbours known to be shared by a pair. A
      node with at most c neighbours is in no pair that shares more. Node j is in no such pair
      through its c neighbours of largest degree alone. So it is enough to walk from j over its
      other neighbours, and to check the c only for nodes met there. This is done where it is less
      work. So the leaves of a large star are not compared in pairs just because they share its
      centre.

Triangles are counted at the last of their three nodes, over the neighbours before it. No node has
more than sqrt(2 m) of those, so m edges have at most m sqrt(2 m) such paths.

Memory: a few numbers for each edge, and BLOCK paths at a time. `beat` is called between blocks.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np

from app.queries.tally import GraphCounts

CORE = 2048
STRIPE = 256  # rows of the core at a time
BLOCK = 1 << 22
LOOKUP = 32  # cost of checking whether an edge exists, in steps of a product

WholeNumbers = np.ndarray[Any, np.dtype[np.int64]]


def count_neighbours(first: Any, last: Any, beat: Callable[[], object]) -> GraphCounts:
    """Counts of a graph. `first` and `last`: the two nodes of each edge; each edge once."""
    if len(first) == 0:
        return GraphCounts(0, 0)
    graph = Graph(first, last)
    core = min(graph.nodes, CORE, isqrt(8 * len(first)))
    triangles, common = _in_core(graph, core, beat)
    triangles += _after_core(graph, core, beat)
    return GraphCounts(triangles, _most_common(graph, core, common, beat))


class Graph:
    """The adjacency matrix by rows, in increasing order, and the part below its diagonal."""

    def __init__(self, first: Any, last: Any) -> None:
        one, other = np.concatenate((first, last)), np.concatenate((last, first))
        degrees = np.bincount(one)
        falling = np.argsort(-degrees, kind="stable")
        number = np.empty(len(degrees), dtype=np.int32)
        number[falling] = np.arange(len(degrees), dtype=np.int32)
        self.nodes = int(np.count_nonzero(degrees))
        self.matrix = _matrix(number[one], number[other], self.nodes)
        self.degrees: WholeNumbers = degrees[falling][: self.nodes].astype(np.int64)
        one, other = number[first], number[last]
        self.before = _matrix(np.maximum(one, other), np.minimum(one, other), self.nodes)

    @cached_property
    def keys(self) -> WholeNumbers:
        """Keys row * nodes + column of each edge in both directions, in increasing order."""
        rows = np.repeat(np.arange(self.nodes, dtype=np.int64), self.degrees)
        return np.asarray(rows * self.nodes + self.matrix.indices)


def _matrix(rows: Any, columns: Any, nodes: int) -> Any:
    from scipy.sparse import csr_array  # slow to load

    ones = np.ones(len(rows), dtype=np.int32)
    made = csr_array((ones, (rows, columns)), shape=(nodes, nodes))
    made.sort_indices()
    return made


def _in_core(graph: Graph, core: int, beat: Callable[[], object]) -> tuple[int, int]:
    """Triangles among the first nodes, and the most neighbours that two of them share.

    Sums of this many ones are exact in 32-bit floats, in any order of addition.
    """
    inner = graph.matrix[:core, :core].toarray().astype(np.float32)
    outer = graph.matrix[:core, core:]
    back = outer.T.tocsr()
    corners, most = 0, 0
    for low in range(0, core, STRIPE):
        beat()
        high = min(low + STRIPE, core)
        shared = inner[low:high] @ inner
        corners += int((shared * inner[low:high]).sum(dtype=np.float64))
        shared += (outer[low:high] @ back).toarray()
        shared[np.arange(high - low), np.arange(low, high)] = 0
        most = max(most, int(shared.max()))
    return corners // 6, most


def _after_core(graph: Graph, core: int, beat: Callable[[], object]) -> int:
    """Triangles whose last node is not in the core."""
    before = graph.before
    paths = np.diff(_added(np.diff(before.indptr)[before.indices])[before.indptr])
    triangles = 0
    for low, high in _blocks(paths, core, graph.nodes):
        beat()
        rows = before[low:high]
        triangles += int((rows @ before).multiply(rows).sum())
    return triangles


def _most_common(graph: Graph, core: int, common: int, beat: Callable[[], object]) -> int:
    """The most neighbours shared by any two nodes; `common`: the most shared within the core."""
    low = core
    while low < (high := int(np.searchsorted(-graph.degrees, -common))):
        # Only nodes with more neighbours than `common` matter, on both sides.
        walk = Walk(graph, high, common)
        for start, end in _blocks(walk.work, low, high):
            beat()
            common = max(common, walk.most(start, end, beat))
            low = end
            if common > walk.common:
                break
    return common


class Walk:
    """Walk from nodes over their neighbours to find pairs that share more than `common`."""

    def __init__(self, graph: Graph, ends: int, common: int) -> None:
        self.graph, self.common = graph, common
        self._onward = graph.matrix[:, :ends]
        indptr, indices = graph.matrix.indptr, graph.matrix.indices
        begin, after = indptr[:-1].astype(np.int64), indptr[1:].astype(np.int64)
        rare = np.minimum(begin + common, after)
        added = _added(np.diff(self._onward.indptr)[indices])
        all_of_them = added[after] - added[begin]
        few_of_them = (added[after] - added[rare]) * (1 + LOOKUP * common)
        self._few = few_of_them < all_of_them
        self._begin = np.where(self._few, rare, begin)
        self.work: WholeNumbers = np.minimum(few_of_them, all_of_them)

    def most(self, low: int, high: int, beat: Callable[[], object]) -> int:
        """Most neighbours shared by a node from `low` to `high`; exact if more than `common`."""
        nodes = np.arange(low, high)
        few = self._few[low:high]
        onward = self._onward[:, :high]
        most = 0
        for rows, seen in ((nodes[~few], self.common), (nodes[few], 0)):
            if len(rows) == 0:
                continue
            met = self._taken(rows) @ onward
            # Each node shares all its neighbours with itself.
            positions = np.flatnonzero(met.data > seen)
            node = rows[np.searchsorted(met.indptr, positions, side="right") - 1]
            other, shared = met.indices[positions], met.data[positions]
            pairs = node != other
            node, other, shared = node[pairs], other[pairs], shared[pairs]
            if seen < self.common:
                shared = shared + self._left_out(node, other, beat)
            most = max(most, int(shared.max(initial=0)))
        return most

    def _taken(self, rows: WholeNumbers) -> Any:
        """Neighbours of these nodes, or only their rare ones."""
        from scipy.sparse import csr_array

        matrix, begin = self.graph.matrix, self._begin[rows]
        sizes = matrix.indptr[rows + 1] - begin
        starts = _added(sizes)
        places = np.repeat(begin - starts[:-1], sizes) + np.arange(starts[-1])
        kept = matrix.data[places], matrix.indices[places], starts
        return csr_array(kept, shape=(len(rows), self.graph.nodes))

    def _left_out(
        self, node: WholeNumbers, other: WholeNumbers, beat: Callable[[], object]
    ) -> WholeNumbers:
        """Number of skipped neighbours (`common` for each node) that the other node has."""
        graph = self.graph
        shared = np.empty(len(node), dtype=np.int64)
        for low in range(0, len(node), many := BLOCK // self.common + 1):
            beat()
            part = slice(low, low + many)
            places = graph.matrix.indptr[node[part]][:, None] + np.arange(self.common)
            sought = other[part][:, None] * np.int64(graph.nodes) + graph.matrix.indices[places]
            at = np.minimum(np.searchsorted(graph.keys, sought), len(graph.keys) - 1)
            shared[part] = (graph.keys[at] == sought).sum(axis=1)
        return shared


def _added(values: Any) -> WholeNumbers:
    """Cumulative sums, starting with 0."""
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))


def _blocks(work: WholeNumbers, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows from `low` to `high` with at most BLOCK paths, or one row."""
    added = np.cumsum(work[low:high])
    start = low
    while start < high:
        done = 0 if start == low else int(added[start - low - 1])
        end = low + int(np.searchsorted(added, done + BLOCK, side="right"))
        end = min(max(end, start + 1), high)
        yield start, end
        start = end
