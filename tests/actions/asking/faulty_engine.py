"""The real engine with one fault, and prices of the tests."""

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager
from threading import Event
from typing import Any

from app.accounting.units import PICO
from app.data.card import Dataset
from app.errors import EngineUnavailable
from app.ports.engines import Engine, Stop
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    Condition,
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
from tests.actions.service import Service

COUNT = {"kind": "count"}
TENTH = (PICO // 10, 0)
NOTHING = (0, 0)


class FaultyEngine:
    """The real engine with one fault; counts its reads."""

    has_prepared_files = True

    def __init__(self, service: Service, fault: BaseException | Event | None) -> None:
        self._real: Engine = service.stores.engines.engine("duckdb")
        self._fault = fault
        self.asked = 0

    def engine(self, name: str) -> Engine:
        return self

    def columns(self, source: Any) -> Any:
        return self._real.columns(source)

    def inspect(self, source: Any, card: Any) -> Any:
        return self._real.inspect(source, card)

    def prepared(self) -> list[str]:
        return self._real.prepared()

    def drop(self, version_id: str) -> bool:
        return self._real.drop(version_id)

    def inspect_epoch(self, dataset: Dataset, path: str) -> Any:
        return self._real.inspect_epoch(dataset, path)

    def records(self, dataset: Dataset, wanted: Records) -> Iterable[Matrix]:
        return self._real.records(dataset, wanted)

    def prepare(self, dataset: Dataset) -> None:
        self._real.prepare(dataset)

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        return self._real.stoppable(stop)

    def ready(self, dataset: Dataset) -> bool:
        return self._real.ready(dataset)

    def is_missing(self, dataset: Dataset) -> bool:
        """With the fault EngineUnavailable, the data are missing after the charge."""
        return isinstance(self._fault, EngineUnavailable) or self._real.is_missing(dataset)

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        fault = self._fault
        if isinstance(fault, Event):  # only the first read waits
            self._fault = None
        self.asked += 1
        if isinstance(fault, BaseException):
            raise fault
        result = self._real.exact(dataset, tally, asker)
        if fault is not None:
            assert fault.wait(60)
        return result

    def blocks(self, dataset: Dataset, wanted: BlockTally) -> BlockCounts:
        return self._real.blocks(dataset, wanted)

    def graph(self, dataset: Dataset, wanted: GraphCountsRequest, asker: str) -> GraphCounts:
        return self._real.graph(dataset, wanted, asker)

    def steps(self, dataset: Dataset, wanted: StepHistogram) -> StepCounts:
        return self._real.steps(dataset, wanted)

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        return self._real.epochs(dataset, where)

    def keys(self, dataset: Dataset, request: KeyCountsRequest) -> Generator[KeyBatch]:
        self.asked += 1
        if isinstance(self._fault, BaseException):
            raise self._fault
        yield from self._real.keys(dataset, request)

    def close(self) -> None:
        self._real.close()

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        return None


def make_faulty(service: Service, fault: BaseException | Event | None = None) -> FaultyEngine:
    faulty = FaultyEngine(service, fault)
    service.answer_query.engines = service.answer_query.readiness.engines = faulty
    return faulty
