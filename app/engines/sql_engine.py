"""What every engine that is asked in SQL shares: statements in, whole numbers out.

An engine says how rows of a dataset are asked (`_asking`); everything that may be asked is rendered
here, once. No text of a driver leaves, because drivers quote cells: a failure is raised after the
driver's exception has been let go, so that not even a traceback holds it. What keeps an engine from
being asked at all is EngineUnavailable, raised by `_asking` before any row is read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from app.data.card import Dataset
from app.engines.epochs import render_epochs
from app.engines.result_cache import Memo
from app.engines.sql.blocks import render_blocks
from app.engines.sql.dialects import Statement
from app.engines.sql.keys import BATCH, key_batch, render_keys
from app.engines.sql.layout import Layout
from app.engines.sql.steps import render_steps
from app.engines.sql.tally_statement import KEPT_SIZE_MAX, Rendered, render
from app.engines.watchdog import WATCHDOG
from app.errors import EngineFailed, EngineUnavailable
from app.ports import Stop
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

T = TypeVar("T")
Row = tuple[Any, ...]


class EngineSession(Protocol):
    """One question's connection to the rows of one version, under the time limit of a question."""

    @property
    def layout(self) -> Layout: ...

    def rows(self, statement: Statement) -> list[Row]:
        """All rows of the result; whole numbers are int, of whatever size."""
        ...

    def batches(self, statement: Statement, size: int) -> Iterator[list[Row]]:
        """The same, some at a time; the next are read when they are asked for."""
        ...


class SqlEngine(ABC):
    """The asking half of `interfaces.Engine`. Safe to call from many threads."""

    def __init__(self, memo_size: int) -> None:
        self._memo = Memo(memo_size)

    @abstractmethod
    def _asking(self, dataset: Dataset) -> AbstractContextManager[EngineSession]:
        """Raises EngineUnavailable if the rows cannot be asked; none was read then."""

    @abstractmethod
    def _graph(self, asking: Any, wanted: GraphCountsRequest) -> GraphCounts: ...

    @abstractmethod
    def records(self, dataset: Dataset, wanted: Records) -> Iterable[Matrix]: ...

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        result = self.cached(dataset, tally, asker)
        if result is None:
            result = self._ask(dataset, lambda asking: _tallied(asking, tally))
            if tally.size() <= KEPT_SIZE_MAX:
                self._memo.put((asker, dataset.version.id, tally), result)
        return result

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        """The asker's result if it is at hand; reads no row and waits for nothing."""
        if tally.size() > KEPT_SIZE_MAX:
            return None
        return self._memo.get((asker, dataset.version.id, tally))

    def steps(self, dataset: Dataset, wanted: StepHistogram) -> StepCounts:
        """Nothing of it is kept: what comes back is as large as the data make it."""
        return self._ask(
            dataset, lambda asking: _pairs(asking.rows(render_steps(asking.layout, wanted)))
        )

    def graph(self, dataset: Dataset, wanted: GraphCountsRequest, asker: str) -> GraphCounts:
        """Kept as tallies are."""
        key = asker, dataset.version.id, wanted
        kept = self._memo.get(key)
        if kept is not None:
            return GraphCounts(*kept[0])
        found = self._ask(dataset, lambda asking: self._graph(asking, wanted))
        if wanted.tally.size() <= KEPT_SIZE_MAX:
            self._memo.put(key, (tuple(found),))
        return found

    def blocks(self, dataset: Dataset, wanted: BlockTally) -> BlockCounts:
        def read(asking: EngineSession) -> BlockCounts:
            found = asking.rows(render_blocks(asking.layout, wanted, dataset.version.seed))
            return [tuple(map(_whole, row)) for row in found]

        return self._ask(dataset, read)

    def keys(self, dataset: Dataset, wanted: KeyCountsRequest) -> Generator[KeyBatch]:
        """Nothing of it is kept: not in the memo, and here no more than a batch at a time. The time
        limit is for all of it, what is done with the batches too."""
        try:
            with self._asking(dataset) as asking:
                rendered = render_keys(asking.layout, wanted)
                for rows in asking.batches(rendered.statement, BATCH):
                    yield key_batch(rows, rendered)
            return
        except EngineUnavailable:
            raise
        except Exception:  # noqa: BLE001, S110 - whatever its class, its text may quote a cell
            pass
        raise EngineFailed("The question could not be answered.")

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        """Nothing of it is kept: it is asked once for each epoch."""
        told = dataset.version.number > 1
        found = self._ask(
            dataset,
            lambda asking: _pairs(asking.rows(render_epochs(asking.layout, where, told=told))),
        )
        by_epoch = dict(found)
        return tuple(by_epoch.get(epoch, 0) for epoch in range(1, dataset.version.number + 1))

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        return WATCHDOG.stoppable(stop)

    def _ask(self, dataset: Dataset, read: Callable[[EngineSession], T]) -> T:
        try:
            with self._asking(dataset) as asking:
                return read(asking)
        except EngineUnavailable:
            raise
        except Exception:  # noqa: BLE001, S110 - whatever its class, its text may quote a cell
            pass
        raise EngineFailed("The question could not be answered.")


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise TypeError("an exact statistic is a whole number")
    return number


def _pairs(rows: list[Row]) -> list[tuple[int, int]]:
    if rows and [type(each) for each in rows[0]] != [int, int]:  # a column is of one type
        raise TypeError("an exact statistic is a whole number")
    return rows  # as they are: there may be millions


def _tallied(asking: EngineSession, tally: Tally) -> Exact:
    rendered = render(asking.layout, tally)
    rows = asking.rows(rendered.statement)
    return _arranged(rows, rendered, len(tally.aggregates), tally.group_count())


def _arranged(rows: list[Row], rendered: Rendered, aggregate_count: int, group_count: int) -> Exact:
    """Rows of places and numbers as one list of numbers for each aggregate, absent groups zero."""
    results = [[0] * group_count for _ in range(aggregate_count)]
    keys = rendered.key_count
    for row in rows:
        place = rendered.place(row[:keys])
        if place is None:  # a value that is in none of the groups asked for
            continue
        for result, number in zip(results, row[keys:], strict=True):
            result[place] = _whole(number)
    return tuple(tuple(result) for result in results)
