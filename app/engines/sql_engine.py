"""Shared part of all SQL engines: statements in, integers out.

An engine provides access to the rows of a dataset (`_asking`); this module renders every statement.
No driver text leaves, because drivers quote cells. A failure is raised after the driver's exception
has been released, so that not even a traceback holds it. If an engine cannot be queried at all,
`_asking` raises EngineUnavailable before any row is read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, ClassVar, Protocol, TypeVar

from app.data.card import Dataset
from app.engines.epochs import render_epochs
from app.engines.result_cache import Memo
from app.engines.sql.blocks import render_blocks
from app.engines.sql.dialects import Statement
from app.engines.sql.keys import BATCH, key_batch, render_keys
from app.engines.sql.layout import Layout
from app.engines.sql.step_histogram import render_steps
from app.engines.sql.tally_statement import KEPT_SIZE_MAX, Rendered, render
from app.engines.watchdog import WATCHDOG
from app.errors import EngineFailed, EngineUnavailable
from app.ports.engines import Stop
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.pieces import is_large, pieces
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
_ONE_LARGE = Lock()  # held by a large statement that takes this process's memory


class EngineSession(Protocol):
    """One query's connection to the rows of one version, under the time limit of a query."""

    @property
    def layout(self) -> Layout: ...

    def rows(self, statement: Statement) -> list[Row]:
        """All rows of the result; integers of any size are int."""
        ...

    def batches(self, statement: Statement, size: int) -> Iterator[list[Row]]:
        """The same rows in batches; each batch is read on demand."""
        ...


class SqlEngine(ABC):
    """Query methods of `ports.Engine`. Safe to call from many threads.

    An engine inside this process takes its memory: it runs large tallies in pieces, whose rows
    never change meanwhile, and one large statement at a time. A database runs one statement, which
    sees one snapshot.
    """

    inside_process: ClassVar[bool] = False

    def __init__(self, memo_size: int) -> None:
        self._memo = Memo(memo_size)

    @abstractmethod
    def _asking(self, dataset: Dataset) -> AbstractContextManager[EngineSession]:
        """Open a session. Raises EngineUnavailable, before any row is read, if that fails."""

    @abstractmethod
    def _graph(self, asking: Any, request: GraphCountsRequest) -> GraphCounts: ...

    @abstractmethod
    def records(self, dataset: Dataset, request: Records) -> Iterable[Matrix]: ...

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        result = self.cached(dataset, tally, asker)
        if result is None:
            read = _tallied_in_pieces if self.inside_process else _tallied
            result = self._ask(dataset, lambda asking: read(asking, tally))
            if tally.size() <= KEPT_SIZE_MAX:
                self._memo.put((asker, dataset.version.id, tally), result)
        return result

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        """The analyst's cached result, or None; reads no row and never waits."""
        if tally.size() > KEPT_SIZE_MAX:
            return None
        return self._memo.get((asker, dataset.version.id, tally))

    def steps(self, dataset: Dataset, request: StepHistogram) -> StepCounts:
        """Counts by step. Never cached: the size of the result depends on the data."""
        return self._ask(
            dataset, lambda asking: _pairs(asking.rows(render_steps(asking.layout, request)))
        )

    def graph(self, dataset: Dataset, request: GraphCountsRequest, asker: str) -> GraphCounts:
        """Counts of a graph, cached like tallies."""
        key = asker, dataset.version.id, request
        kept = self._memo.get(key)
        if kept is not None:
            return GraphCounts(*kept[0])
        counts = self._ask(dataset, lambda asking: self._graph(asking, request))
        if request.tally.size() <= KEPT_SIZE_MAX:
            self._memo.put(key, (tuple(counts),))
        return counts

    def blocks(self, dataset: Dataset, request: BlockTally) -> BlockCounts:
        def read(asking: EngineSession) -> BlockCounts:
            block_rows = asking.rows(render_blocks(asking.layout, request, dataset.version.seed))
            return [tuple(map(_whole, row)) for row in block_rows]

        return self._ask(dataset, read)

    def keys(self, dataset: Dataset, request: KeyCountsRequest) -> Generator[KeyBatch]:
        """Counts by key, batch by batch, never cached.

        The time limit covers everything, including the caller's work on the batches.
        """
        try:
            with self._asking(dataset) as asking:
                rendered = render_keys(asking.layout, request)
                for rows in asking.batches(rendered.statement, BATCH):
                    yield key_batch(rows, rendered)
            return
        except EngineUnavailable:
            raise
        except Exception:  # noqa: BLE001, S110 - the text of any error may quote a cell
            pass
        raise EngineFailed("The question could not be answered.")

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        """Rows that meet a condition, by epoch. Never cached: it is read once for each epoch."""
        has_epochs = dataset.version.number > 1
        counts = self._ask(
            dataset,
            lambda asking: _pairs(
                asking.rows(render_epochs(asking.layout, where, has_epochs=has_epochs))
            ),
        )
        by_epoch = dict(counts)
        return tuple(by_epoch.get(epoch, 0) for epoch in range(1, dataset.version.number + 1))

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        return WATCHDOG.stoppable(stop)

    def _ask(self, dataset: Dataset, read: Callable[[EngineSession], T]) -> T:
        try:
            with self._asking(dataset) as asking:
                return read(asking)
        except EngineUnavailable:
            raise
        except Exception:  # noqa: BLE001, S110 - the text of any error may quote a cell
            pass
        raise EngineFailed("The question could not be answered.")


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise TypeError("an exact statistic must be an integer")
    return number


def _pairs(rows: list[Row]) -> list[tuple[int, int]]:
    if rows and [type(each) for each in rows[0]] != [int, int]:  # all rows have these types
        raise TypeError("an exact statistic must be an integer")
    return rows  # without a copy: there may be millions


def _tallied_in_pieces(asking: EngineSession, tally: Tally) -> Exact:
    with _ONE_LARGE if is_large(tally) else nullcontext():
        return tuple(numbers for piece in pieces(tally) for numbers in _tallied(asking, piece))


def _tallied(asking: EngineSession, tally: Tally) -> Exact:
    rendered = render(asking.layout, tally)
    rows = asking.rows(rendered.statement)
    return _arranged(rows, rendered, len(tally.aggregates), tally.group_count())


def _arranged(rows: list[Row], rendered: Rendered, aggregate_count: int, group_count: int) -> Exact:
    """Result rows as one list of numbers for each aggregate; absent groups are zero."""
    results = [[0] * group_count for _ in range(aggregate_count)]
    keys = rendered.key_count
    for row in rows:
        index = rendered.place(row[:keys])
        if index is None:  # a value outside the requested groups
            continue
        for result, number in zip(results, row[keys:], strict=True):
            result[index] = _whole(number)
    return tuple(tuple(result) for result in results)
