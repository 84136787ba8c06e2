"""Data files as a relation of columns k0, k1, ... in the file's order, with their names and types.

CSV: a header, commas, double quotes, UTF-8; every field is text, and an empty one is missing. No
type is guessed from values: the card alone decides what a field means. The Parquet files of a
folder are one relation, with the column order of the first.
"""

import csv
import hashlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

from app.engines.files.paths import SourceFiles, folder_names
from app.errors import Invalid

HEADER_BYTES_MAX = 1 << 20

_CSV_OPTIONS = (
    "auto_detect=false, all_varchar=true, header=true, delim=',', quote='\"', escape='\"', "
    "nullstr='', strict_mode=true, null_padding=false, ignore_errors=false, compression='none', "
    "encoding='utf-8'"
)


FileState = tuple[int, int, int, int, int]


class Unreadable(Exception):
    """The file is not what its name says; never carries the driver's text."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """How to read the files: `relation` takes the list of their paths as its one parameter."""

    paths: list[str]
    names: tuple[str, ...]
    types: tuple[str, ...]  # DuckDB's names: VARCHAR, BIGINT, DECIMAL(9,2), ...
    relation: str

    def position(self, name: str) -> int | None:
        """Index of the column, if exactly one has this name."""
        return self.names.index(name) if self.names.count(name) == 1 else None


def open_table(connection: duckdb.DuckDBPyConnection, source: SourceFiles) -> SourceTable:
    """Names and types of the columns. Raises Unreadable or a duckdb.Error.

    Raises Invalid if the files of a folder are not one table.
    """
    paths = [str(file) for file in source.files]
    if not source.is_folder and source.place.suffix == ".csv":
        names = _header(source.place)
        fields = ", ".join(f"'k{i}': 'VARCHAR'" for i in range(len(names)))
        relation = f"read_csv(?, columns={{{fields}}}, {_CSV_OPTIONS})"
        return SourceTable(paths, names, ("VARCHAR",) * len(names), relation)
    described = _described(connection, paths[0])
    for name, path in zip(source.names[1:], paths[1:], strict=True):
        # DuckDB would drop columns that the first file lacks, and convert other types.
        if sorted(_described(connection, path)) != sorted(described):
            rule = f"files with the same columns: {name} has other names or types than the first"
            raise Invalid.field("/source/path", rule)
    aliases = ", ".join(f"k{i}" for i in range(len(described)))
    return SourceTable(
        paths,
        tuple(name for name, _ in described),
        tuple(kind for _, kind in described),
        f"read_parquet(?, hive_partitioning=false) AS source({aliases})",
    )


def _described(connection: duckdb.DuckDBPyConnection, path: str) -> list[tuple[str, str]]:
    rows = connection.execute(
        "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning=false)", [path]
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def _header(path: Path) -> tuple[str, ...]:
    with path.open("rb") as file:
        start = file.read(HEADER_BYTES_MAX)
    text = io.StringIO(start.decode("utf-8-sig", errors="surrogateescape"), newline="")
    try:
        names = tuple(next(csv.reader(text, strict=True), ()))
        "".join(names).encode()  # fails for bytes that are not UTF-8
    except (csv.Error, UnicodeError):
        names = ()
    if not names:
        raise Unreadable
    return names


def source_digest(source: SourceFiles) -> str:
    """SHA-256 of the file's bytes; for a folder, of its files' names and digests in order."""
    return digest_and_states(source)[0]


def digest_and_states(source: SourceFiles) -> tuple[str, list[FileState]]:
    """The same digest, and the state of each file when it was read."""
    read = [_file_digest(file) for file in source.files]
    states = [state for _, state in read]
    if not source.is_folder:
        return read[0][0], states
    parts = zip(source.names, read, strict=True)
    listing = "".join(f"{digest} {json.dumps(name)}\n" for name, (digest, _) in parts)
    return hashlib.sha256(f"folder\n{listing}".encode()).hexdigest(), states


def source_state(source: SourceFiles) -> tuple[object, ...]:
    """State that changes when a file is written, replaced, added or removed.

    Two reads between equal states agree.
    """
    listed = folder_names(source.place) if source.is_folder else ()
    return listed, *(file_state(os.stat(file)) for file in source.files)


def file_state(seen: os.stat_result) -> FileState:
    """Identity of a file and its times; the last one is the system's own and cannot be set."""
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _file_digest(path: Path) -> tuple[str, FileState]:
    with path.open("rb") as file:
        state = file_state(os.fstat(file.fileno()))
        return hashlib.file_digest(file, "sha256").hexdigest(), state
