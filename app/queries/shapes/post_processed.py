"""What is asked of numbers that are made of the rows by more than adding up: of what blocks are
like, or of a formula over a tally. The inner shape says how far a person can move these numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.queries.block_tally import BlockTally
from app.queries.shapes.selection import SelectionShape
from app.queries.shapes.sums import SumShape
from app.queries.tally import Exact, Tally


@dataclass(frozen=True, slots=True)
class PostProcessedShape:
    """The inner shape's exact numbers are made of what is read from the source."""

    source: BlockTally | Tally
    inner: SumShape | SelectionShape
    exact: Callable[[Any], Exact]  # of what the source gives
    theorem: str
    told: dict[str, Any]  # public, for people and for the ledger
    alternatives: tuple[
        "PostProcessedShape", ...
    ] = ()  # other ways to ask the same; there are none

    @property
    def tally(self) -> Tally:
        return self.inner.tally
