"""Ports to data: engines, public tables, and the stop of a run."""

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from app.data.card import Card, Dataset, Source
from app.data.inspection import EpochInspection, Inspection, PrivateFiles, SourceColumns
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


class Stop(Protocol):
    """Signals that a read must end."""

    @property
    def ended(self) -> bool: ...

    def notifying(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call the listener when this ends, from any thread; at once if it has ended."""
        ...


class Statistics(Protocol):
    """Exact statistics of prepared rows. Synchronous; called from a thread."""

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        """The tally of the prepared version. Raises EngineFailed, always with the same text."""
        ...

    def steps(self, dataset: Dataset, request: StepHistogram) -> StepCounts:
        """Counts of a column's values by bins. Raises EngineFailed, always with the same text."""
        ...

    def graph(self, dataset: Dataset, request: GraphCountsRequest, asker: str) -> GraphCounts:
        """Counts of the graph in the rows. Raises EngineFailed, always with the same text."""
        ...

    def blocks(self, dataset: Dataset, request: BlockTally) -> BlockCounts:
        """Statistics of blocks of rows. Raises EngineFailed, always with the same text."""
        ...

    def records(self, dataset: Dataset, request: Records) -> Iterable[Matrix]:
        """Rows of the prepared version in batches, in no order; every iteration yields all of them.

        Iterating raises EngineFailed, always with the same text.
        """
        ...

    def keys(self, dataset: Dataset, request: KeyCountsRequest) -> Generator[KeyBatch]:
        """Keys of the prepared version in batches, each key once; batches are read on demand.

        Any batch may raise EngineFailed, always with the same text.
        """
        ...

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        """Interrupt this thread's reads when the stop has ended; they then fail."""
        ...


class Engine(Statistics, Protocol):
    """Exact statistics over one kind of data source. Synchronous; called from a thread."""

    # True if prepared data stay on disk. If False, `prepare` only checks the source, at every
    # query.
    has_prepared_files: bool

    def columns(self, source: Source) -> SourceColumns:
        """Names and types of a source's columns; reads no row.

        Raises Invalid for a place where there is no source, EngineUnavailable for one that cannot
        be read.
        """
        ...

    def inspect(self, source: Source, card: Card) -> Inspection:
        """Check the card against names and types, never against values.

        Raises Invalid for a card that does not fit, EngineUnavailable for a source that cannot be
        read.
        """
        ...

    def inspect_epoch(self, dataset: Dataset, path: str) -> EpochInspection:
        """Check a file of new rows against the card and the first file, by names and types.

        Raises Invalid for a file that does not fit, EngineUnavailable for one that cannot be read.
        """
        ...

    def prepare(self, dataset: Dataset) -> None:
        """Make the dataset's version ready for queries, before any charge.

        Raises SourceChanged if the source differs from the registered one, EngineUnavailable if it
        is gone or cannot be read.
        """
        ...

    def ready(self, dataset: Dataset) -> bool:
        """True if the dataset can be queried without `prepare`.

        The version must be prepared, and a quick check must find the source unchanged. Called
        before every charge, by callers that must not wait. Reads no row.
        """
        ...

    def is_missing(self, dataset: Dataset) -> bool:
        """True if the prepared version has been deleted meanwhile. Reads no row."""
        ...

    def prepared(self) -> list[str]:
        """All versions that are prepared on this server, needed or not."""
        ...

    def drop(self, version_id: str) -> bool:
        """Delete the prepared files of an unneeded version; False if there were none."""
        ...

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        """The tally, if it was read for this analyst and is cached; never waits.

        Another analyst's result is not used: its presence would reveal what they asked.
        """
        ...

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        """Number of rows of each epoch that meet the condition. Raises EngineFailed."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


class Engines(Protocol):
    def engine(self, name: str) -> Engine:
        """The engine of this name. Raises Invalid if there is none."""
        ...


class MadeUpTables(Protocol):
    """Tables of made-up rows, for rehearsals: no file and no other source is opened."""

    def open(
        self, dataset: Dataset, rows: list[dict[str, Any]]
    ) -> AbstractContextManager[tuple[Statistics, Dataset]]:
        """Statistics of these rows, cleaned as a registered file is, and a dataset to ask about.

        That dataset has the card and nothing else of the registered one."""
        ...


class TableReader(Protocol):
    def lines(self, path: str, key: str, value: str, *, at: str) -> list[tuple[Any, Any]]:
        """Key and value of each line. Raises Invalid, naming fields below `at`.

        A private file is refused too.
        """
        ...


class PublicTables(Protocol):
    """Files whose lines their owner shows to everybody."""

    def beside(self, private: PrivateFiles) -> TableReader: ...
