"""Makes the immutable prepared version of a dataset: one DuckDB file with one table of clean rows.

Written aside, flushed and renamed, under a lock that dies with its process: a version is either
there and whole, or not there. Preparing what is prepared does nothing.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from app.data.card import WITH_FRACTIONS, Card, Dataset
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
_PERSONS = ".persons"  # in the name of a version in which persons are told apart


def version_path(home: Path, dataset: Dataset) -> Path:
    """Where persons are told apart a version bears another name than before they all were: what an
    older server left is not taken for it, but built again."""
    told = _PERSONS if has_person_column(dataset.card) else ""
    return _file(home, dataset.version.id, told)


def _file(home: Path, version_id: str, told: str) -> Path:
    if not _VERSION_ID.fullmatch(version_id):
        raise EngineUnavailable("The version's identifier is not one.")
    return home / "versions" / f"{version_id}{told}.duckdb"


def prepared_versions(home: Path) -> list[str]:
    """The identifiers of all that are there and whole."""
    found = {path.stem.removesuffix(_PERSONS) for path in (home / "versions").glob("*.duckdb")}
    return sorted(each for each in found if _VERSION_ID.fullmatch(each))


def drop_version(home: Path, version_id: str) -> bool:
    """Delete it, under either name, with what was left of building it; not while it is being built.
    Who has it open reads on: a file is there until the last one has closed it."""
    dropped = [_dropped(_file(home, version_id, told)) for told in ("", _PERSONS)]
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
    """What processes that were killed left of versions they were building, under whatever name: it
    has rows in it."""
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
    """Build the version, of its source and the epochs after it, unless it is there.

    Raises SourceChanged if one is not what was registered, and whatever duckdb raises if it cannot
    be read; OverSize if the version would be larger than it may.
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
        _remove(building)  # what a process that was killed left behind
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
    found = unchanged.require_unchanged(dataset)
    card = dataset.card
    files = [file for source in found.sources for file in source.files]
    with (
        connect_to_ingest(str(building), files, limits) as connection,
        WATCHDOG.watch(connection, timeout_seconds),
        limited_size(building, limits.prepared_bytes_max, connection),
    ):
        tables = [open_table(connection, source) for source in found.sources]
        for table in tables:
            check_fit(card, table)
        write_categories(connection, card, dataset.source.reading)
        raw = [file_rows(card, table, dataset.source.reading) for table in tables]
        rows = written(cleaned_rows(card, raw, dataset.version.seed), DUCKDB)
        connection.execute(f'CREATE TABLE "{TABLE}" AS {rows.text}', rows.parameters)
    if not found.still_so():
        raise SourceChanged("The source changed while it was read.")


def write_categories(connection: duckdb.DuckDBPyConnection, card: Card, reading: int) -> None:
    """Temporary tables of the texts that are read as a category, with its place: `file_rows` joins
    them."""
    fractions = reading >= WITH_FRACTIONS
    for i, column in enumerate(card.columns):
        if isinstance(column, CategoryColumn):
            name, texts = category_table(i), column.texts(fractions=fractions)
            connection.execute(f"CREATE TEMP TABLE {name} (value VARCHAR, code INTEGER)")
            connection.execute(
                f"INSERT INTO {name} SELECT unnest(CAST(? AS VARCHAR[])), "
                "unnest(range(CAST(? AS INTEGER))) % ?",
                [list(texts), len(texts), len(column.values)],
            )


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Only one process and thread at a time; the lock is released when its holder dies. Tells
    whether it is held, which without waiting it may not be."""
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
        # Whoever held it may have deleted the file meanwhile, and another one made a new one: a
        # lock on what has no name keeps nobody out.
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
