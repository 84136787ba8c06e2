"""Questions that aggregate a statistic of blocks, and the laws of their answers."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

from app.queries.blocks.sample_aggregate import SampleAggregate
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.shapes.selection import SelectionShape
from tests.mechanisms.selection.selection_law import Law
from tests.queries.cards import card, question

ASKED: dict[str, Any] = {
    "kind": "sample_aggregate",
    "statistic": {"kind": "median", "column": "age"},
    "blocks": 4,
    "low": 0,
    "high": 100,
}
GAUSSIAN = {"kind": "gaussian"}
MODE = {"kind": "mode", "column": "city"}
REGRESSION = {
    "kind": "linear_regression",
    "outcome": "age",
    "features": ["income"],
    "coefficient": "income",
}


def shaped(made: Any = None, **changes: Any) -> tuple[SampleAggregate, PostProcessedShape]:
    query = question({**ASKED, **changes}).query
    assert isinstance(query, SampleAggregate)
    shape = query.shape(made or card())
    return query, shape


def apart(law: Callable[[Sequence[int], float], Law], score_range: int, blocks: int) -> float:
    """Largest log-ratio of choices at epsilon 1 over all results of this many blocks. One block
    differs, and the noise is scaled for this range."""
    query, shape = shaped(blocks=blocks)
    assert isinstance(shape.inner, SelectionShape)
    levels = [query.top * i // 4 for i in range(5)]
    laws = {
        places: law(shape.inner.scores((places,), 0), 1 / score_range)
        for places in combinations_with_replacement(levels, blocks)
    }
    return max(
        abs(math.log(p / q))
        for places, one in laws.items()
        for level in levels
        for p, q in zip(one, laws[tuple(sorted((level, *places[1:])))], strict=True)
    )
