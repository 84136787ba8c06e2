"""Release whose inputs are computed from more than one tally, for example block by block.

Price, noise and error are those of the inner release. Only the data that is read differs
(`queries/shapes/post_processed.py`).
"""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.accounting.loss import Loss
from app.data.card import Card
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.release import DataReader, RandomSource, Release, SingleGroupRelease
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.block_tally import BlockTally
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.tally import Exact, Tally

BLOCK_ROW_NANOSECONDS = 1000.0  # time to assign one row to its block


@dataclass(frozen=True, slots=True)
class PostProcessedRelease(SingleGroupRelease):
    inner: Release
    shape: PostProcessedShape

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
    def standard_deviations(self) -> tuple[float, ...]:
        return self.inner.standard_deviations

    @property
    def work(self) -> Work:
        source = self.shape.source
        if isinstance(source, BlockTally):
            return Work(row_nanoseconds=BLOCK_ROW_NANOSECONDS, results=source.blocks)
        return Work.of(source)

    @override
    def warm(self, confidence: float) -> None:
        self.inner.warm(confidence)

    def read(self, data: DataReader) -> Exact:
        source = self.shape.source
        read = data.blocks(source) if isinstance(source, BlockTally) else data.exact(source)
        return self.shape.exact(read)

    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        return self.inner.answer(exact, noise, query=query, card=card, confidence=confidence)

    def describe(self) -> dict[str, Any]:
        return {**self.inner.describe(), **self.shape.public_facts}

    def ledger_entry(self) -> dict[str, Any]:
        return {**self.inner.ledger_entry(), **self.shape.public_facts}

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        return self.inner.expected_error(confidence, rows)
