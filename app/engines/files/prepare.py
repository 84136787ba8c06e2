"""Prepare the immutable version of a dataset: one DuckDB file with one table of clean rows.

It is written aside, flushed and renamed, under a lock that ends with its process. So a version is
complete, or it does not exist. Preparing a prepared version does nothing.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from app.data.card import Card, Dataset
from app.data.columns import CategoryColumn
from app.engines.card_fit import check_fit
from app.engines.files.change_detection import SourceMonitor
from app.engines.files.connect import Limits, connect_to_ingest
from app.engines.files.rows import category_table, file_rows
from app.engines.files.size_limit import limited_size
from app.engines.files.sources import open_table
from app.engines.sql.cleaning import cleaned_rows
from app.engines.sql.dialects import DUCKDB, written
from app.engines.sql.layout import TABLE, has_person_column
from app.engines.watchdog import WATCHDOG
from app.errors import EngineUnavailable, SourceChanged

_VERSION_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PERSONS = ".persons"  # in the file name of a version with a person column


def version_path(home: Path, dataset: Dataset) -> Path:
    """Path of a version. One with a person column has a suffix that older servers did not write.

    So a file without persons, which an older server left, is not used but built again.
    """
    suffix = _PERSONS if has_person_column(dataset.card) else ""
    return _file(home, dataset.version.id, suffix)


def _file(home: Path, version_id: str, suffix: str) -> Path:
    if not _VERSION_ID.fullmatch(version_id):
        raise EngineUnavailable("The version's identifier is not valid.")
    return home / "versions" / f"{version_id}{suffix}.duckdb"


def prepared_versions(home: Path) -> list[str]:
    """Identifiers of all prepared versions."""
    found = {path.stem.removesuffix(_PERSONS) for path in (home / "versions").glob("*.duckdb")}
    return sorted(each for each in found if _VERSION_ID.fullmatch(each))


def drop_version(home: Path, version_id: str) -> bool:
    """Delete a version under either name, with any unfinished file; not while it is being built.

    Readers that have it open can go on: the file exists until the last one closes it.
    """
    dropped = [_dropped(_file(home, version_id, suffix)) for suffix in ("", _PERSONS)]
    return any(dropped)


def _dropped(final: Path) -> bool:
    lock = final.with_suffix(".lock")
    if not final.exists():
        return False
    with _locked(lock, wait=False) as held:
        if not held:
            return False
        final.unlink(missing_ok=True)
        _remove(final.with_suffix(".building"))
        lock.unlink(missing_ok=True)
        _flush(final.parent)
        return True


def clear_unfinished(home: Path) -> None:
    """Delete unfinished versions that killed processes left, because they contain rows."""
    for building in (home / "versions").glob("*.building"):
        lock = building.with_suffix(".lock")
        with _locked(lock, wait=False) as held:
            if held:
                _remove(building)
                if not building.with_suffix(".duckdb").exists():
                    lock.unlink(missing_ok=True)


def prepare_version(
    dataset: Dataset, unchanged: SourceMonitor, limits: Limits, timeout_seconds: float
) -> None:
    """Build the version from its source and epochs, unless it exists.

    Raises SourceChanged if a file is not the registered one, and a duckdb error if it cannot be
    read. Raises OverSize if the version would exceed its size limit.
    """
    final = version_path(limits.home, dataset)
    if final.exists():
        return
    for directory in (final.parent, limits.home / "tmp"):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(final.with_suffix(".lock")):
        if final.exists():
            return
        building = final.with_suffix(".building")
        _remove(building)  # left by a process that was killed
        try:
            _build(dataset, unchanged, building, limits, timeout_seconds)
            _flush(building)
            os.rename(building, final)
            _flush(final.parent)
        finally:
            _remove(building)
            if not final.exists():
                final.with_suffix(".lock").unlink(missing_ok=True)


def _build(
    dataset: Dataset,
    unchanged: SourceMonitor,
    building: Path,
    limits: Limits,
    timeout_seconds: float,
) -> None:
    verified = unchanged.require_unchanged(dataset)
    card = dataset.card
    files = [file for source in verified.sources for file in source.files]
    with (
        connect_to_ingest(str(building), files, limits) as connection,
        WATCHDOG.watch(connection, timeout_seconds),
        limited_size(building, limits.prepared_bytes_max, connection),
    ):
        tables = [open_table(connection, source) for source in verified.sources]
        for table in tables:
            check_fit(card, table)
        write_categories(connection, card)
        raw = [file_rows(card, table) for table in tables]
        rows = written(cleaned_rows(card, raw, dataset.version.seed), DUCKDB)
        connection.execute(f'CREATE TABLE "{TABLE}" AS {rows.text}', rows.parameters)
    if not verified.still_so():
        raise SourceChanged("The source changed while it was read.")


def write_categories(connection: duckdb.DuckDBPyConnection, card: Card) -> None:
    """Create temporary tables (text, code) of the categories; `file_rows` joins them."""
    for i, column in enumerate(card.columns):
        if isinstance(column, CategoryColumn):
            name, texts = category_table(i), column.texts()
            connection.execute(f"CREATE TEMP TABLE {name} (value VARCHAR, code INTEGER)")
            connection.execute(
                f"INSERT INTO {name} SELECT unnest(CAST(? AS VARCHAR[])), "
                "unnest(range(CAST(? AS INTEGER))) % ?",
                [list(texts), len(texts), len(column.values)],
            )


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a file between processes and threads; yields whether it is held.

    The lock is released when its holder dies. Without `wait` it may not be held.
    """
    descriptor, held = _lock(path, wait=wait)
    try:
        yield held
    finally:
        os.close(descriptor)


def _lock(path: Path, *, wait: bool) -> tuple[int, bool]:
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return descriptor, False
        # The previous holder may have deleted the file, and another process made a new one. A lock
        # on a deleted file excludes nobody.
        if _is_at(descriptor, path):
            return descriptor, True
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(building: Path) -> None:
    building.unlink(missing_ok=True)
    building.with_name(building.name + ".wal").unlink(missing_ok=True)
