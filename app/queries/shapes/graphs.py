"""What is counted of a graph, and how one edge can change it.

Edges are persons, nodes are public (`datasets.EdgePerson`). Let a_ij be how many neighbours the
nodes i and j have in common. An edge between i and j that comes or goes makes or ends a_ij
triangles, whatever else there is: so the local sensitivity is LS = max a_ij over all pairs i < j,
be they joined or not, and n - 2 at most. The edge joins i to the neighbours of j and j to those of
i: no a_kl changes by more than 1, nor does LS.
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
    alternatives: tuple["GraphShape", ...] = ()  # other ways to ask the same; there are none

    @property
    def tally(self) -> Tally:
        """The rows that count."""
        return self.edges.tally

    @property
    def sensitivity_max(self) -> int:
        return self.nodes - 2

    @property
    def seconds(self) -> float:
        """A public bound for the time that counting takes: a tenth of a second for a thousand
        nodes, and some ten seconds for a hundred thousand."""
        return min(max(self.nodes / 1000, 1.0), SECONDS_MAX * 10) / 10

    def possible(self, triangles: int) -> int:
        """Within what a count can be, which leaves out nothing that it is."""
        return min(max(triangles, 0), math.comb(self.nodes, 3))


def graph_shape(card: Card, where: Condition | None) -> GraphShape:
    if not isinstance(card.person, EdgePerson):
        raise Invalid.field("/query/kind", "a dataset of edges: its card has an edge as person")
    one, other = card.person.ends
    column = card.column(one)
    assert isinstance(column, IntegerColumn), "the card was checked"
    nodes = column.high - column.low + 1
    if not 3 <= nodes <= NODES_MAX:
        raise Invalid.field("/query/kind", f"a graph of 3 to {NODES_MAX} nodes")
    return GraphShape(GraphCountsRequest(where, (one, other)), nodes)
