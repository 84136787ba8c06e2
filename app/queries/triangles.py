"""How many triangles a graph has: three nodes, of which each two are joined.

The rows are edges (`datasets.EdgePerson`); with a filter only those that meet it are. Two nodes
that share thousands of neighbours make an edge between them worth thousands of triangles, so noise
for the worst graph, n - 2 of them, would be useless: the mechanisms look at how many it is here.
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
