"""Public tables: files under a data root whose lines the owner shows to everybody.

They are found and read like data sources: the same roots and links, the same hardened connection,
no guessed types. No driver text leaves, and no value. An unusable table is refused with the name of
its field.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from app.data.expressions import LOOKUP_MAX
from app.data.inspection import PrivateFiles
from app.engines.files.connect import Limits, connect_to_ingest
from app.engines.files.paths import SourceFiles, resolve_source
from app.engines.files.read_errors import hide_driver_errors
from app.engines.files.sources import digest_and_states, open_table, source_state
from app.engines.watchdog import WATCHDOG
from app.errors import EngineUnavailable, Invalid

PRIVATE = "a file that is not a dataset's: everybody can read a public table"
WANTED = "a .csv or .parquet file under a data root"


@dataclass(frozen=True, slots=True)
class FilePublicTables:
    """Implements `ports.PublicTables`."""

    limits: Limits
    data_roots: tuple[Path, ...]
    timeout_seconds: float = 60.0

    def beside(self, private: PrivateFiles) -> "FileTableReader":
        return FileTableReader(self.limits, self.data_roots, self.timeout_seconds, private)


@dataclass(frozen=True)
class FileTableReader:
    """Reader for one registration; it locates the private files once."""

    limits: Limits
    data_roots: tuple[Path, ...]
    timeout_seconds: float
    private: PrivateFiles

    def lines(self, path: str, key: str, value: str, *, at: str) -> list[tuple[Any, Any]]:
        source = self._found(path)
        if source is None or source.is_folder:
            raise Invalid.field(f"{at}/path", WANTED)
        if self._is_where_rows_are(source.place):
            raise Invalid.field(f"{at}/path", PRIVATE)
        (self.limits.home / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = hide_driver_errors(lambda: self._read(source, key, value, at), at=f"{at}/path")
        if len(lines) > LOOKUP_MAX:
            raise Invalid.field(f"{at}/path", f"a file of at most {LOOKUP_MAX} lines")
        if digest_and_states(source)[0] in self.private.digests:  # moved, copied, or an old version
            raise Invalid.field(f"{at}/path", PRIVATE)
        return lines

    def _is_where_rows_are(self, path: Path) -> bool:
        """True if the path is at or below a registered path in any root, or is one of its files.

        A registered path counts even if it cannot be used now.
        """
        below = any(each in self._places for each in (path, *path.parents))
        return below or _number(path) in self._files

    @cached_property
    def _places(self) -> set[Path]:
        resolved = set()
        for path in map(_local, self.private.paths):
            for root in self.data_roots:
                with suppress(OSError, RuntimeError, ValueError):
                    resolved.add((root / path).resolve())
        return resolved

    @cached_property
    def _files(self) -> set[tuple[int, int] | None]:
        sources = [self._found(_local(path)) for path in self.private.paths]
        files = (file for source in sources if source is not None for file in source.files)
        return {_number(file) for file in files} - {None}

    def _found(self, path: str) -> SourceFiles | None:
        try:
            return resolve_source(path, self.data_roots)
        except Invalid:
            return None

    def _read(self, source: SourceFiles, key: str, value: str, at: str) -> list[tuple[Any, Any]]:
        state = source_state(source)
        with (
            connect_to_ingest(":memory:", source.files, self.limits) as connection,
            WATCHDOG.watch(connection, self.timeout_seconds),
        ):
            table = open_table(connection, source)
            places = []
            for name, column in (("key", key), ("value", value)):
                position = table.position(column)
                if position is None:
                    raise Invalid.field(f"{at}/{name}", "the name of one column of the file")
                places.append(f"k{position}")
            lines: list[tuple[Any, Any]] = connection.execute(
                f"SELECT {', '.join(places)} FROM {table.relation} "  # noqa: S608 - generated names
                f"LIMIT {LOOKUP_MAX + 1:d}",
                [table.paths],
            ).fetchall()
        if source_state(source) != state:
            raise EngineUnavailable("The file changed while it was read.")
        return lines


def _local(path: str) -> str:
    """The path without Spark's prefix for files of this machine."""
    return re.sub(r"^file:/+", "/", path)


def _number(file: Path) -> tuple[int, int] | None:
    """Identity of a file, independent of its name."""
    try:
        seen = file.stat()
    except OSError:  # it is gone
        return None
    return seen.st_dev, seen.st_ino
