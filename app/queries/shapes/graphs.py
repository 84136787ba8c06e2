"""Triangle counts of a graph, and the effect of one edge on them.

Edges are persons, nodes are public (`data.card.EdgePerson`). Let a_ij be the number of common
neighbours of the nodes i and j. Adding or removing an edge between i and j makes or ends a_ij
triangles, in any graph. So the local sensitivity is LS = max a_ij over all pairs i < j, joined or
not, and at most n - 2. The edge joins i to the neighbours of j and j to those of i: no a_kl changes
by more than 1, nor does LS.
"""

import math
from dataclasses import dataclass

from app.data.card import Card, EdgePerson
from app.data.columns import IntegerColumn
from app.errors import Invalid
from app.queries.tally import Condition, GraphCountsRequest, Tally

NODES_MAX = 1 << 31
SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class GraphShape:
    """Triangles among the edges that meet a condition."""

    edges: GraphCountsRequest
    nodes: int
    alternatives: tuple["GraphShape", ...] = ()  # other shapes of the same query; there are none

    @property
    def tally(self) -> Tally:
        """The rows that count."""
        return self.edges.tally

    @property
    def sensitivity_max(self) -> int:
        return self.nodes - 2

    @property
    def seconds(self) -> float:
        """Public bound on the counting time: 0.1 s for a thousand nodes, about 10 s for a
        hundred thousand."""
        return min(max(self.nodes / 1000, 1.0), SECONDS_MAX * 10) / 10

    def possible(self, triangles: int) -> int:
        """Clamp to the possible counts, which loses none of them."""
        return min(max(triangles, 0), math.comb(self.nodes, 3))


def graph_shape(card: Card, where: Condition | None) -> GraphShape:
    if not isinstance(card.person, EdgePerson):
        raise Invalid.field(
            "/query/kind", "needs a dataset of edges: one whose card declares an edge as person"
        )
    one, other = card.person.ends
    column = card.column(one)
    assert isinstance(column, IntegerColumn), "the card was validated"
    nodes = column.high - column.low + 1
    if not 3 <= nodes <= NODES_MAX:
        raise Invalid.field("/query/kind", f"needs a graph of 3 to {NODES_MAX} nodes")
    return GraphShape(GraphCountsRequest(where, (one, other)), nodes)
