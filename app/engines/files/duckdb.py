"""The DuckDB engine: exact statistics of CSV files, Parquet files and folders of Parquet files.

It runs inside this process. A registered source is prepared once as an immutable database
(`prepare.py`); queries read only that. No driver text leaves it (`read_errors.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from sqlalchemy import Select
from typing_extensions import override

from app.data.card import Card, Dataset, Source
from app.data.inspection import EpochInspection, Inspection, SourceColumns
from app.engines.card_check import Figures, figures
from app.engines.card_fit import check_fit
from app.engines.content_hash import content_of, content_statement
from app.engines.epochs import POINTER, check_epoch, is_empty
from app.engines.files.change_detection import SourceMonitor
from app.engines.files.connect import Limits, connect_to_ingest
from app.engines.files.paths import WANTED, SourceFiles, resolve_source
from app.engines.files.prepare import (
    clear_unfinished,
    drop_version,
    prepare_version,
    prepared_versions,
    version_path,
    write_categories,
)
from app.engines.files.read_errors import hide_driver_errors
from app.engines.files.rows import file_rows, file_table
from app.engines.files.sources import SourceTable, open_table, source_digest, source_state
from app.engines.files.versions import OpenVersions
from app.engines.graph import count_graph
from app.engines.records import DuckDBRecords, KeptRecords
from app.engines.sql.dialects import DUCKDB, Statement, written
from app.engines.sql.layout import Layout
from app.engines.sql_engine import SqlEngine
from app.engines.watchdog import WATCHDOG
from app.engines.whole_row_hash import named_rows, whole_rows_of, whole_rows_statement
from app.errors import EngineUnavailable, Invalid
from app.queries.tally import GraphCounts, GraphCountsRequest, Matrix, Records


@dataclass(frozen=True, slots=True)
class DuckDBAsking:
    """A cursor for this thread alone, on a version that stays open meanwhile."""

    cursor: duckdb.DuckDBPyConnection
    layout: Layout

    def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        return self.cursor.execute(statement.text, statement.parameters).fetchall()

    def batches(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        self.cursor.execute(statement.text, statement.parameters)
        while rows := self.cursor.fetchmany(size):
            yield rows


class DuckDBEngine(SqlEngine):
    """Implements `ports.Engine`. Safe to call from many threads."""

    has_prepared_files = True
    inside_process = True

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
        prepared_bytes_max: int = 64 * 10**9,
        **_: Any,
    ) -> None:
        super().__init__(memo_size)
        self._limits = Limits(
            home.resolve(), memory_limit, threads, prepared_bytes_max=prepared_bytes_max
        )
        self._data_roots = data_roots
        self._unchanged = SourceMonitor(data_roots)
        self._there: set[str] = set()  # versions known to be prepared; a check costs 70 us
        self._timeout_seconds = timeout_seconds
        self._ingest_timeout_seconds = ingest_timeout_seconds
        self._versions = OpenVersions(self._limits, open_versions_max)
        (self._limits.home / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)

    def columns(self, source: Source) -> SourceColumns:
        files = resolve_source(source.path, self._data_roots)

        def read() -> SourceColumns:
            with connect_to_ingest(":memory:", files.files, self._limits) as connection:
                table = open_table(connection, files)
                typed = files.is_folder or files.place.suffix != ".csv"
                return SourceColumns(tuple(table.names), tuple(table.types), typed)

        return hide_driver_errors(read, at="/source/path")

    def inspect(self, source: Source, card: Card) -> Inspection:
        found = resolve_source(source.path, self._data_roots)
        return hide_driver_errors(lambda: self._inspect(found, card), at="/source/path")

    def inspect_epoch(self, dataset: Dataset, path: str) -> EpochInspection:
        try:
            found = resolve_source(path, self._data_roots)
        except Invalid:
            raise Invalid.field(POINTER, WANTED) from None
        return hide_driver_errors(lambda: self._inspect_epoch(dataset, found), at=POINTER)

    def prepare(self, dataset: Dataset) -> None:
        if not self.ready(dataset):
            hide_driver_errors(lambda: self._prepare(dataset))

    def ready(self, dataset: Dataset) -> bool:
        return dataset.version.id in self._there and self._unchanged.unchanged_fast(dataset)

    def is_missing(self, dataset: Dataset) -> bool:
        if version_path(self._limits.home, dataset).exists():
            return False
        self._there.discard(dataset.version.id)
        return True

    def prepared(self) -> list[str]:
        clear_unfinished(self._limits.home)
        return prepared_versions(self._limits.home)

    def drop(self, version_id: str) -> bool:
        dropped = drop_version(self._limits.home, version_id)
        self._versions.drop(version_id)
        self._there.discard(version_id)
        self._unchanged.forget(version_id)
        return dropped

    def figures(self, dataset: Dataset) -> Figures:
        """Private counts, for the owner alone. Raises SourceChanged."""
        return hide_driver_errors(lambda: self._figures(dataset))

    @contextmanager
    @override
    def _asking(self, dataset: Dataset) -> Iterator[DuckDBAsking]:
        with (
            self._versions.cursor(dataset) as (cursor, layout),
            WATCHDOG.watch(cursor, self._timeout_seconds),
        ):
            yield DuckDBAsking(cursor, layout)

    @override
    def _graph(self, asking: DuckDBAsking, request: GraphCountsRequest) -> GraphCounts:
        return count_graph(asking.cursor, asking.layout, request)

    @override
    def records(self, dataset: Dataset, request: Records) -> Iterable[Matrix]:
        records = DuckDBRecords(self._versions, dataset, request, self._timeout_seconds)
        return KeptRecords(records.read)

    def close(self) -> None:
        """Close every version that is not in use; a later query opens it again."""
        self._versions.close()

    def _inspect(self, source: SourceFiles, card: Card) -> Inspection:
        state = source_state(source)
        digest = source_digest(source)
        with (
            connect_to_ingest(":memory:", source.files, self._limits) as connection,
            WATCHDOG.watch(connection, self._ingest_timeout_seconds),
        ):
            table = open_table(connection, source)
            check_fit(card, table)
            content = content_hash(connection, table)
            celled = _whole_rows(connection, card, table)
        if source_state(source) != state:
            raise EngineUnavailable("The source changed while it was read.")
        return Inspection(digest, content, str(source.place), _parts(source), celled)

    def _figures(self, dataset: Dataset) -> Figures:
        source_files = self._unchanged.require_unchanged(dataset).sources
        files = [file for source in source_files for file in source.files]
        with (
            connect_to_ingest(":memory:", files, self._limits) as connection,
            WATCHDOG.watch(connection, self._ingest_timeout_seconds),
        ):
            tables = [open_table(connection, source) for source in source_files]
            write_categories(connection, dataset.card)
            sources = [file_rows(dataset.card, table) for table in tables]

            def ask(statement: Select[*tuple[Any, ...]]) -> Sequence[Any]:
                sql = written(statement, DUCKDB)
                row = connection.execute(sql.text, sql.parameters).fetchone()
                assert row is not None, "an aggregate without groups has one row"
                return row

            return figures(dataset, [file_table(table) for table in tables], sources, ask)

    def _prepare(self, dataset: Dataset) -> None:
        if self.is_missing(dataset):
            limits, seconds = self._limits, self._ingest_timeout_seconds
            prepare_version(dataset, self._unchanged, limits, seconds)
        self._unchanged.require_unchanged(dataset)  # another process may have prepared it
        self._there.add(dataset.version.id)

    def _inspect_epoch(self, dataset: Dataset, added: SourceFiles) -> EpochInspection:
        sources = [*self._unchanged.require_unchanged(dataset).sources, added]
        state, digest = source_state(added), source_digest(added)
        files = [file for source in sources for file in source.files]
        with (
            connect_to_ingest(":memory:", files, self._limits) as connection,
            WATCHDOG.watch(connection, self._ingest_timeout_seconds),
        ):
            tables = [_one_table(connection, source) for source in sources]
            check_epoch(dataset.card, tables[0], tables[-1])
            content = content_hash(connection, tables[-1])
            empty = is_empty(connection, tables[-1])
            together = content_hash(connection, *tables)
        if source_state(added) != state:
            raise EngineUnavailable("The file changed while it was read.")
        location, parts = str(added.place), _parts(added)
        return EpochInspection(digest, content, location, together, empty, parts)


def _whole_rows(
    connection: duckdb.DuckDBPyConnection, card: Card, source: SourceTable
) -> str | None:
    if card.cells is None:
        return None
    write_categories(connection, card)
    table = file_table(source)
    named = named_rows(table)
    raw = file_rows(card, source, named.rows)
    statement = written(whole_rows_statement(card, raw, named.text), DUCKDB)
    row = connection.execute(statement.text, statement.parameters).fetchone()
    assert row is not None, "an aggregate without groups has one row"
    return whole_rows_of(table, row)


def _parts(source: SourceFiles) -> tuple[str, ...]:
    """Paths of a folder's files: each file is registered too, as its rows are in the folder's."""
    return tuple(map(str, source.files)) if source.is_folder else ()


def _one_table(connection: duckdb.DuckDBPyConnection, source: SourceFiles) -> SourceTable:
    try:
        return open_table(connection, source)
    except Invalid as refused:  # it names the field of a registration
        raise Invalid.field(POINTER, refused.fields[0].rule) from None


def content_hash(connection: duckdb.DuckDBPyConnection, *tables: SourceTable) -> str:
    """Hash the rows of all files together; their columns have the same names. Reads each file once.

    The hash is independent of the order of rows, the format and the column names. It finds the same
    data under another name. It does not find changed data: one added, dropped or altered column,
    row or cell gives another hash. Equal columns whose values are paired into other rows give the
    same hash.

    Raises duckdb.Error for a file that cannot be read to its end.
    """
    statement = written(content_statement([file_table(table) for table in tables]), DUCKDB)
    row = connection.execute(statement.text, statement.parameters).fetchone()
    assert row is not None, "an aggregate without groups has one row"
    return content_of(row)
