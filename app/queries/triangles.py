"""Number of triangles of a graph: three nodes, each two of them joined.

The rows are edges (`data.card.EdgePerson`); with a filter only those that meet it. If two nodes
share thousands of neighbours, an edge between them adds thousands of triangles. Noise for the worst
graph, n - 2 of them, would be useless, so the mechanisms use the actual number of shared
neighbours.
"""

from typing import Literal

from app.data.card import Card
from app.queries.shapes.graphs import GraphShape, graph_shape
from app.queries.shapes.selection import Choice


class Triangles(Choice):
    """`{"kind": "triangles", "where": ...}`"""

    kind: Literal["triangles"]

    def shape(self, card: Card) -> GraphShape:
        return graph_shape(card, self.condition(card))
