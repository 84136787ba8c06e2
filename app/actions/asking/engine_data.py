"""Data access of one query: an engine, the charged version, and the analyst."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from types import TracebackType

from app.actions.asking.leased_run import LeasedRun
from app.data.card import Dataset
from app.ports.engines import Statistics
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    Exact,
    GraphCounts,
    GraphCountsRequest,
    KeyBatch,
    KeyCountsRequest,
    Matrix,
    Records,
    StepCounts,
    StepHistogram,
    Tally,
)


@dataclass(slots=True)
class EngineData:
    """Implements `mechanisms.release.DataReader`. Once closed, it holds nothing of the engine."""

    engine: Statistics
    dataset: Dataset
    asker: str
    run: LeasedRun | None = None
    _open: list[Generator[KeyBatch]] = field(default_factory=list)

    def exact(self, tally: Tally) -> Exact:
        self._go_on()
        return self.engine.exact(self.dataset, tally, self.asker)

    def steps(self, wanted: StepHistogram) -> StepCounts:
        self._go_on()
        return self.engine.steps(self.dataset, wanted)

    def graph(self, wanted: GraphCountsRequest) -> GraphCounts:
        self._go_on()
        return self.engine.graph(self.dataset, wanted, self.asker)

    def blocks(self, wanted: BlockTally) -> BlockCounts:
        self._go_on()
        return self.engine.blocks(self.dataset, wanted)

    def records(self, wanted: Records) -> Iterable[Matrix]:
        return self.engine.records(self.dataset, wanted)

    def keys(self, wanted: KeyCountsRequest) -> Iterable[KeyBatch]:
        self._go_on()
        batches = self.engine.keys(self.dataset, wanted)
        self._open.append(batches)
        return batches

    def checkpoint(self, step: int) -> None:
        if self.run is not None:
            self.run.checkpoint(step)

    def _go_on(self) -> None:
        """Count each read as a move of the run; none begins after the run must end."""
        if self.run is not None:
            self.run.checkpoint(self.run.step)

    def __enter__(self) -> "EngineData":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for batches in self._open:
            batches.close()
