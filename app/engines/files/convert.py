"""Convert a CSV file to a Parquet file of the same texts, and read the columns of a source.

Every field stays the text that our CSV reader reads, or missing. No type is guessed, so both files
have the same fingerprint and lead to the same loss. The file is written aside, flushed and renamed:
it is complete, or it does not exist.
"""

import os
import shutil
from pathlib import Path

import duckdb

from app.engines.files.connect import Limits, connect_to_ingest
from app.engines.files.paths import PATTERN_LETTERS, SourceFiles
from app.engines.files.read_errors import hide_driver_errors
from app.engines.files.sources import SourceTable, open_table, source_state
from app.engines.watchdog import WATCHDOG
from app.errors import EngineUnavailable, Invalid


def read_schema(source: SourceFiles, limits: Limits) -> SourceTable:
    """Names and types of the columns; reads only the header of CSV, or the schema of Parquet."""

    def read() -> SourceTable:
        with connect_to_ingest(":memory:", source.files, limits) as connection:
            return open_table(connection, source)

    return hide_driver_errors(read)


class Conversion:
    """One conversion: `run` in one thread, call `fraction` and `stop` from another."""

    def __init__(self, csv: Path, target: Path, limits: Limits, timeout_seconds: float) -> None:
        if PATTERN_LETTERS & set(f"{csv}{target}"):
            letters = " ".join(sorted(PATTERN_LETTERS))
            raise Invalid(f"{csv.name}: the path must not contain any of {letters}")
        self._source = SourceFiles(csv, (csv,))
        self._target = target
        # A leading dot and another suffix, so that it is never mistaken for data.
        self._aside = target.with_name(f".{target.name}.{os.getpid()}")
        self._limits = limits
        self._timeout_seconds = timeout_seconds
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._stopped = False
        self._made = False

    def run(self) -> None:
        """Convert the file. Raises Invalid or EngineUnavailable, and then there is no file."""
        if self._target.exists():
            raise Invalid(f"{self._target.name} is in the data root already: move it away first.")
        try:
            hide_driver_errors(self._write)
            if self._stopped:
                raise EngineUnavailable("The conversion was stopped.")
            shutil.copymode(self._source.place, self._aside)
            os.rename(self._aside, self._target)
            self._made = True
            _flush(self._target.parent)
        finally:
            self._aside.unlink(missing_ok=True)

    def undo(self) -> None:
        """Delete the file if this conversion made it."""
        if self._made:
            self._target.unlink(missing_ok=True)

    def fraction(self) -> float:
        """Progress between 0 and 1."""
        connection = self._connection
        percent = 0.0 if connection is None else float(connection.query_progress())
        return min(max(percent / 100, 0.0), 1.0)

    def stop(self) -> None:
        """Stop the conversion. Repeat the call: one before the statement runs is lost."""
        self._stopped = True
        if (connection := self._connection) is not None:
            connection.interrupt()

    def _write(self) -> None:
        state = source_state(self._source)
        paths = (self._source.place, self._aside)
        with (
            connect_to_ingest(":memory:", paths, self._limits, progress=True) as connection,
            WATCHDOG.watch(connection, self._timeout_seconds),
        ):
            table = open_table(connection, self._source)
            _must_differ(table.names)
            columns = ", ".join(f"k{i} AS {_quoted(name)}" for i, name in enumerate(table.names))
            rows = f"SELECT {columns} FROM {table.relation}"  # noqa: S608 - quoted names
            aside = str(self._aside).replace("'", "''")
            self._connection = connection
            try:
                connection.execute(
                    f"COPY ({rows}) TO '{aside}' (FORMAT parquet, COMPRESSION zstd, "
                    "USE_TMP_FILE false)",
                    [table.paths],
                )
            finally:
                self._connection = None
        if source_state(self._source) != state:
            raise EngineUnavailable("The source changed while it was read.")
        _flush(self._aside)


def _must_differ(names: tuple[str, ...]) -> None:
    if len({name.casefold() for name in names}) != len(names) or "" in names:
        raise Invalid(
            "The header must name every column, and no two alike (letter case does not count): "
            "Parquet could not distinguish them."
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
