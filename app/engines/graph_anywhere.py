"""An EdgeTally where no temporary table can be made: the counts of `graph.py`, a statement each."""

from collections.abc import Callable

from app.engines.dialects import Statement
from app.engines.graph import BOTH_WAYS, COMMON, EDGES, FIRST, TRIANGLES, chosen_edges
from app.engines.layout import Layout
from app.queries.statistics import EdgeTally, GraphCounts


def count_graph_anywhere(
    number: Callable[[Statement], int], layout: Layout, wanted: EdgeTally
) -> GraphCounts:
    """`number` is the one whole number that a statement says."""
    chosen = chosen_edges(layout, wanted)
    edges = f"edges AS ({EDGES.format(chosen=chosen.text)})"

    def counted(text: str, *more: str) -> int:
        whole = f"WITH {', '.join([edges, *more])} {text}"
        return number(Statement(whole, chosen.names, chosen.values))

    joined = f"joined AS ({BOTH_WAYS})"
    triangles = counted(TRIANGLES)
    reached = counted(COMMON.format(which=f"node <= {FIRST:d}"), joined)
    more = counted(COMMON.format(which=f"degree > {reached:d}"), joined)
    return GraphCounts(triangles, max(reached, more))
