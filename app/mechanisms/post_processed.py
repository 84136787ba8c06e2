"""Any release of numbers or choices, of numbers that are made of more than a tally.

Price, noise and error are those of the inner release; what it reads is not (`post_processed.py`).
"""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.accounting.loss import Loss
from app.data.card import Card
from app.mechanisms.release import AtOnce, Data, Noise, Release
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.block_tally import BlockTally
from app.queries.shapes.post_processed import DerivedShape
from app.queries.tally import Exact, Tally

BLOCK_ROW_NANOSECONDS = 1000.0  # to sort a row into its block


@dataclass(frozen=True, slots=True)
class DerivedRelease(AtOnce):
    inner: Release
    shape: DerivedShape

    @property
    def tally(self) -> Tally:
        return self.inner.tally

    @property
    def loss(self) -> Loss:
        return self.inner.loss

    @property
    def theorem(self) -> str:
        return f"{self.shape.theorem}; {self.inner.theorem}"

    @property
    def spread(self) -> tuple[float, ...]:
        return self.inner.spread

    @property
    def work(self) -> Work:
        source = self.shape.source
        if isinstance(source, BlockTally):
            return Work(row_nanoseconds=BLOCK_ROW_NANOSECONDS, results=source.blocks)
        return Work.of(source)

    @override
    def warm(self, confidence: float) -> None:
        self.inner.warm(confidence)

    def read(self, data: Data) -> Exact:
        source = self.shape.source
        read = data.blocks(source) if isinstance(source, BlockTally) else data.exact(source)
        return self.shape.exact(read)

    def answer(
        self, exact: Exact, noise: Noise, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        return self.inner.answer(exact, noise, query=query, card=card, confidence=confidence)

    def describe(self) -> dict[str, Any]:
        return {**self.inner.describe(), **self.shape.told}

    def record(self) -> dict[str, Any]:
        return {**self.inner.record(), **self.shape.told}

    def expected_error(self, confidence: float) -> dict[str, Any]:
        return self.inner.expected_error(confidence)
