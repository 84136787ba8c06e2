"""Shape of numbers computed from more than sums of rows: from blocks, or by a formula over a tally.

The inner shape states how far a person can move these numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.queries.block_tally import BlockTally
from app.queries.shapes.selection import SelectionShape
from app.queries.shapes.sums import SumShape
from app.queries.tally import Exact, Tally


@dataclass(frozen=True, slots=True)
class PostProcessedShape:
    """The inner shape's exact numbers are computed from the data of the source."""

    source: BlockTally | Tally
    inner: SumShape | SelectionShape
    exact: Callable[[Any], Exact]  # function of the source's data
    theorem: str
    public_facts: dict[str, Any]  # for people and for the ledger
    alternatives: tuple[
        "PostProcessedShape", ...
    ] = ()  # other shapes of the same query; there are none

    @property
    def tally(self) -> Tally:
        return self.inner.tally
