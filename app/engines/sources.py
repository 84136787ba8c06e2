"""A data file as a relation of columns k0, k1, ... in the file's order, with their names and types.

CSV: a header, commas, double quotes, UTF-8; every field is text and an empty one is missing. No
type is ever guessed from values, so that the card alone decides what a field means.
"""

import csv
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

HEADER_BYTES_MAX = 1 << 20

_CSV_OPTIONS = (
    "auto_detect=false, all_varchar=true, header=true, delim=',', quote='\"', escape='\"', "
    "nullstr='', strict_mode=true, null_padding=false, ignore_errors=false, compression='none', "
    "encoding='utf-8'"
)


class Unreadable(Exception):
    """The file is not what its name says; never carries the driver's text."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """How to read the file: `relation` takes the path as its one parameter."""

    path: Path
    names: tuple[str, ...]
    types: tuple[str, ...]  # DuckDB's names: VARCHAR, BIGINT, DECIMAL(9,2), ...
    relation: str

    def position(self, name: str) -> int | None:
        """Where the column stands, if exactly one bears the name."""
        return self.names.index(name) if self.names.count(name) == 1 else None


def open_table(connection: duckdb.DuckDBPyConnection, path: Path) -> SourceTable:
    """Names and types of the file's columns. Raises Unreadable or a duckdb.Error."""
    if path.suffix == ".csv":
        names = _header(path)
        fields = ", ".join(f"'k{i}': 'VARCHAR'" for i in range(len(names)))
        relation = f"read_csv(?, columns={{{fields}}}, {_CSV_OPTIONS})"
        return SourceTable(path, names, ("VARCHAR",) * len(names), relation)
    described = connection.execute(
        "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning=false)", [str(path)]
    ).fetchall()
    aliases = ", ".join(f"k{i}" for i in range(len(described)))
    return SourceTable(
        path,
        tuple(row[0] for row in described),
        tuple(row[1] for row in described),
        f"read_parquet(?, hive_partitioning=false) AS source({aliases})",
    )


def _header(path: Path) -> tuple[str, ...]:
    with path.open("rb") as file:
        start = file.read(HEADER_BYTES_MAX)
    text = io.StringIO(start.decode("utf-8-sig", errors="replace"), newline="")
    try:
        names = tuple(next(csv.reader(text, strict=True), ()))
    except csv.Error:
        names = ()
    if not names:
        raise Unreadable
    return names


def file_digest(path: Path) -> str:
    """SHA-256 of the file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_state(path: Path) -> tuple[int, ...]:
    """Changes whenever the file is written or replaced: two reads between equal states agree."""
    state = os.stat(path)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
