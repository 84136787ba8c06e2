"""What is asked of blocks of rows: one number of each, and a shape that is asked of these."""

from collections.abc import Callable
from dataclasses import dataclass

from app.queries.choice_shape import ChoiceShape
from app.queries.shape import Shape
from app.queries.statistics import BlockCounts, BlockTally, Exact, Tally


@dataclass(frozen=True, slots=True)
class BlockShape:
    """The inner shape has its exact numbers not from a tally but from what blocks are like."""

    blocks: BlockTally
    inner: Shape | ChoiceShape
    exact: Callable[[BlockCounts], Exact]
    alternatives: tuple["BlockShape", ...] = ()  # other ways to ask the same; there are none

    @property
    def tally(self) -> Tally:
        return self.inner.tally
