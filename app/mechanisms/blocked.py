"""Any release of numbers or choices, of what blocks of rows are like instead of a tally.

Price, noise and error are those of the inner release; what it reads is not (`block_shape.py`).
"""

from dataclasses import dataclass
from typing import Any

from app.accounting.loss import Loss
from app.datasets import Card
from app.mechanisms.release import Data, Noise, Release
from app.queries import Query
from app.queries.block_shape import BlockShape
from app.queries.statistics import Exact, Tally

THEOREM = "Nissim, Raskhodnikova and Smith 2007 (sample and aggregate)"


@dataclass(frozen=True, slots=True)
class BlockedRelease:
    inner: Release
    shape: BlockShape

    @property
    def tally(self) -> Tally:
        return self.inner.tally

    @property
    def quick(self) -> bool:
        """What is at hand of a tally is of no use here."""
        return False

    @property
    def loss(self) -> Loss:
        return self.inner.loss

    @property
    def theorem(self) -> str:
        return f"{THEOREM}; {self.inner.theorem}"

    @property
    def spread(self) -> tuple[float, ...]:
        return self.inner.spread

    @property
    def steps(self) -> int | None:
        return None

    @property
    def groups(self) -> int | None:
        return 1

    def read(self, data: Data) -> Exact:
        return self.shape.exact(data.blocks(self.shape.blocks))

    def answer(
        self, exact: Exact, noise: Noise, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        return self.inner.answer(exact, noise, query=query, card=card, confidence=confidence)

    def describe(self) -> dict[str, Any]:
        return {**self.inner.describe(), "blocks": self.shape.blocks.blocks}

    def record(self) -> dict[str, Any]:
        return {**self.inner.record(), "blocks": self.shape.blocks.blocks}

    def expected_error(self, confidence: float) -> dict[str, Any]:
        return self.inner.expected_error(confidence)
