"""The DuckDB engine: exact statistics of CSV and Parquet files, inside this process.

A registered file is prepared once into an immutable database (`prepare.py`); questions read only
that. No text of the driver leaves this file, because drivers quote cells: failures are raised
after the driver's exception has been let go, so that not even a traceback holds it.
"""

from collections.abc import (
    Callable,
    Generator,
    Iterable,
)
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import duckdb

from app.datasets import Card, Dataset, Source
from app.engines.blocks import render_blocks
from app.engines.connect import Limits, connect_to_ingest
from app.engines.epochs import AT, NO_FILE, check_epoch, is_empty, render_epochs
from app.engines.fingerprint import content_hash
from app.engines.fitting import check_fit
from app.engines.graph import count_graph
from app.engines.keys import BATCH, key_batch, render_keys
from app.engines.memo import Memo
from app.engines.paths import resolve_source
from app.engines.prepare import prepare_version, version_path
from app.engines.records import DuckDBRecords
from app.engines.sources import Unreadable, file_digest, file_state, open_table
from app.engines.sql import KEPT_SIZE_MAX, Rendered, render
from app.engines.steps import render_steps
from app.engines.versions import OpenVersions
from app.engines.watchdog import WATCHDOG
from app.errors import EngineFailed, EngineUnavailable, Invalid
from app.interfaces import EpochInspection, Inspection, Stop
from app.queries.statistics import (
    BlockCounts,
    BlockTally,
    Condition,
    EdgeTally,
    Exact,
    GraphCounts,
    KeyBatch,
    KeyTally,
    Matrix,
    Records,
    StepCounts,
    StepTally,
    Tally,
)

T = TypeVar("T")


class DuckDBEngine:
    """Implements `interfaces.Engine`. Safe to call from many threads."""

    def __init__(
        self,
        *,
        home: Path,
        data_roots: tuple[Path, ...],
        memory_limit: str = "1GB",
        threads: int = 2,
        timeout_seconds: float = 30.0,
        ingest_timeout_seconds: float = 3600.0,
        open_versions_max: int = 16,
        memo_size: int = 4096,
    ) -> None:
        self._limits = Limits(home.resolve(), memory_limit, threads)
        self._data_roots = data_roots
        self._timeout_seconds = timeout_seconds
        self._ingest_timeout_seconds = ingest_timeout_seconds
        self._versions = OpenVersions(self._limits, open_versions_max)
        self._memo = Memo(memo_size)
        (self._limits.home / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)

    def inspect(self, source: Source, card: Card) -> Inspection:
        path = resolve_source(source.path, self._data_roots)
        return _readable(lambda: self._inspect(path, card))

    def inspect_epoch(self, dataset: Dataset, path: str) -> EpochInspection:
        try:
            found = resolve_source(path, self._data_roots)
        except Invalid:
            raise Invalid.field(AT, NO_FILE) from None
        return _readable(lambda: self._inspect_epoch(dataset, found))

    def prepare(self, dataset: Dataset) -> None:
        if not self.ready(dataset):
            _readable(lambda: self._prepare(dataset))

    def ready(self, dataset: Dataset) -> bool:
        return version_path(self._limits.home, dataset.version.id).exists()

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        result = self.cached(dataset, tally, asker)
        if result is None:
            result = self._ask(dataset, tally)
            if result is None:
                raise EngineFailed("The question could not be answered.")
            if tally.size() <= KEPT_SIZE_MAX:
                self._memo.put((asker, dataset.version.id, tally), result)
        return result

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        """The asker's result if it is at hand; reads no row and waits for nothing."""
        if tally.size() > KEPT_SIZE_MAX:
            return None
        return self._memo.get((asker, dataset.version.id, tally))

    def steps(self, dataset: Dataset, wanted: StepTally) -> StepCounts:
        """Nothing of it is kept: what comes back is as large as the data make it."""
        found: StepCounts | None
        try:
            with self._versions.cursor(dataset) as (cursor, layout):
                text, parameters = render_steps(layout, wanted)
                with WATCHDOG.watch(cursor, self._timeout_seconds):
                    found = cursor.execute(text, parameters).fetchall()
        except Exception:  # noqa: BLE001 - whatever its class, its text may quote a cell
            found = None
        if found is None:
            raise EngineFailed("The question could not be answered.")
        return found

    def graph(self, dataset: Dataset, wanted: EdgeTally, asker: str) -> GraphCounts:
        """Kept as tallies are. The time limit is for all of its statements together."""
        key = asker, dataset.version.id, wanted
        kept = self._memo.get(key)
        if kept is not None:
            return GraphCounts(*kept[0])
        found: GraphCounts | None
        try:
            with (
                self._versions.cursor(dataset) as (cursor, layout),
                WATCHDOG.watch(cursor, self._timeout_seconds),
            ):
                found = count_graph(cursor, layout, wanted)
        except Exception:  # noqa: BLE001 - whatever its class, its text may quote a cell
            found = None
        if found is None:
            raise EngineFailed("The question could not be answered.")
        if wanted.tally.size() <= KEPT_SIZE_MAX:
            self._memo.put(key, (tuple(found),))
        return found

    def blocks(self, dataset: Dataset, wanted: BlockTally) -> BlockCounts:
        found: BlockCounts | None
        try:
            with self._versions.cursor(dataset) as (cursor, layout):
                text, parameters = render_blocks(layout, wanted, dataset.version.seed)
                with WATCHDOG.watch(cursor, self._timeout_seconds):
                    found = cursor.execute(text, parameters).fetchall()
            if any(type(number) is not int for row in found for number in row):
                found = None
        except Exception:  # noqa: BLE001 - whatever its class, its text may quote a cell
            found = None
        if found is None:
            raise EngineFailed("The question could not be answered.")
        return found

    def records(self, dataset: Dataset, wanted: Records) -> Iterable[Matrix]:
        return DuckDBRecords(self._versions, dataset, wanted, self._timeout_seconds)

    def keys(self, dataset: Dataset, wanted: KeyTally) -> Generator[KeyBatch]:
        """Nothing of it is kept: not in the memo, and here no more than a batch at a time. The time
        limit is for all of it, what is done with the batches too."""
        try:
            with self._versions.cursor(dataset) as (cursor, layout):
                rendered = render_keys(layout, wanted)
                with WATCHDOG.watch(cursor, self._timeout_seconds):
                    cursor.execute(rendered.text, rendered.parameters)
                    while rows := cursor.fetchmany(BATCH):
                        yield key_batch(rows, rendered)
            return
        except Exception:  # noqa: BLE001, S110 - whatever its class, its text may quote a cell
            pass
        raise EngineFailed("The question could not be answered.")

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        """Nothing of it is kept: it is asked once for each epoch."""
        found: list[tuple[int, int]] | None
        try:
            with self._versions.cursor(dataset) as (cursor, layout):
                text, parameters = render_epochs(layout, where, told=dataset.version.number > 1)
                with WATCHDOG.watch(cursor, self._timeout_seconds):
                    found = cursor.execute(text, parameters).fetchall()
        except Exception:  # noqa: BLE001 - whatever its class, its text may quote a cell
            found = None
        if found is None:
            raise EngineFailed("The question could not be answered.")
        by_epoch = dict(found)
        return tuple(by_epoch.get(epoch, 0) for epoch in range(1, dataset.version.number + 1))

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        return WATCHDOG.stoppable(stop)

    def close(self) -> None:
        """Close every version that is not in use; the engine opens them again when asked."""
        self._versions.close()

    def _inspect(self, path: Path, card: Card) -> Inspection:
        state = file_state(path)
        digest = file_digest(path)
        with (
            connect_to_ingest(":memory:", [path], self._limits) as connection,
            WATCHDOG.watch(connection, self._ingest_timeout_seconds),
        ):
            table = open_table(connection, path)
            check_fit(card, table)
            content = content_hash(connection, table)
        if file_state(path) != state:
            raise EngineUnavailable("The source changed while it was read.")
        return Inspection(digest=digest, content=content, place=str(path))

    def _prepare(self, dataset: Dataset) -> None:
        sources = self._sources(dataset)
        prepare_version(dataset, sources, self._limits, self._ingest_timeout_seconds)

    def _sources(self, dataset: Dataset) -> list[Path]:
        """The source, and the files of the epochs after it."""
        paths = [dataset.source.path, *(epoch.path for epoch in dataset.version.appended)]
        try:
            return [resolve_source(path, self._data_roots) for path in paths]
        except Invalid:  # they were there when they were registered
            raise EngineUnavailable("The source is gone.") from None

    def _inspect_epoch(self, dataset: Dataset, path: Path) -> EpochInspection:
        sources = self._sources(dataset)
        state, digest = file_state(path), file_digest(path)
        with (
            connect_to_ingest(":memory:", [*sources, path], self._limits) as connection,
            WATCHDOG.watch(connection, self._ingest_timeout_seconds),
        ):
            tables = [open_table(connection, source) for source in (*sources, path)]
            check_epoch(dataset.card, tables[0], tables[-1])
            content = content_hash(connection, tables[-1])
            empty = is_empty(connection, tables[-1])
            together = content_hash(connection, *tables)
        if file_state(path) != state:
            raise EngineUnavailable("The file changed while it was read.")
        return EpochInspection(digest, content, str(path), together, empty)

    def _ask(self, dataset: Dataset, tally: Tally) -> Exact | None:
        """The result, or None for whatever went wrong."""
        try:
            with self._versions.cursor(dataset) as (cursor, layout):
                rendered = render(layout, tally)
                with WATCHDOG.watch(cursor, self._timeout_seconds):
                    rows = cursor.execute(rendered.text, rendered.parameters).fetchall()
            return _arranged(rows, rendered, len(tally.aggregates), tally.group_count())
        except Exception:  # noqa: BLE001 - whatever its class, its text may quote a cell
            return None


def _arranged(
    rows: list[tuple[int, ...]], rendered: Rendered, aggregate_count: int, group_count: int
) -> Exact:
    """Rows of places and numbers as one list of numbers for each aggregate, absent groups zero."""
    results = [[0] * group_count for _ in range(aggregate_count)]
    keys = rendered.key_count
    for row in rows:
        place = rendered.place(row[:keys])
        if place is None:  # a value that is in none of the groups asked for
            continue
        for result, number in zip(results, row[keys:], strict=True):
            if type(number) is not int:
                raise TypeError("an exact statistic is a whole number")
            result[place] = number
    return tuple(tuple(result) for result in results)


def _readable(work: Callable[[], T]) -> T:
    """What the work returns; whatever keeps it from reading the source becomes one error."""
    unreadable: str
    try:
        return work()
    except (Invalid, EngineUnavailable):
        raise
    except (duckdb.Error, OSError, Unreadable, ValueError, RuntimeError, MemoryError):
        unreadable = "The source cannot be read as the CSV or Parquet file it should be."
    raise EngineUnavailable(unreadable)
