"""Public tables: files under a data root whose lines the owner shows to everybody.

Found and read as data sources are: the same roots and links, the same hardened connection, no type
guessed. No text of the driver leaves, and no value: a table that will not do is refused by its
field.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from app.data.card import PrivateFiles
from app.data.expressions import LOOKUP_MAX
from app.engines.files.connect import Limits, connect_to_ingest
from app.engines.files.paths import SourceFiles, resolve_source
from app.engines.files.read_errors import hide_driver_errors
from app.engines.files.sources import digest_and_states, open_table, source_state
from app.engines.watchdog import WATCHDOG
from app.errors import EngineUnavailable, Invalid

PRIVATE = "no file of a dataset's rows: what a public table says is shown to everybody"
WANTED = "a .csv or .parquet file under a data root"


@dataclass(frozen=True, slots=True)
class FilePublicTables:
    """Implements `interfaces.PublicTables`."""

    limits: Limits
    data_roots: tuple[Path, ...]
    timeout_seconds: float = 60.0

    def beside(self, private: PrivateFiles) -> "FileTableReader":
        return FileTableReader(self.limits, self.data_roots, self.timeout_seconds, private)


@dataclass(frozen=True)
class FileTableReader:
    """Of one registration: where rows of datasets are is found out once."""

    limits: Limits
    data_roots: tuple[Path, ...]
    timeout_seconds: float
    private: PrivateFiles

    def lines(self, path: str, key: str, value: str, *, at: str) -> list[tuple[Any, Any]]:
        found = self._found(path)
        if found is None or found.is_folder:
            raise Invalid.field(f"{at}/path", WANTED)
        if self._is_where_rows_are(found.place):
            raise Invalid.field(f"{at}/path", PRIVATE)
        (self.limits.home / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = hide_driver_errors(lambda: self._read(found, key, value, at), at=f"{at}/path")
        if len(lines) > LOOKUP_MAX:
            raise Invalid.field(f"{at}/path", f"a file of at most {LOOKUP_MAX} lines")
        if digest_and_states(found)[0] in self.private.digests:  # moved, copied, or of old rows
            raise Invalid.field(f"{at}/path", PRIVATE)
        return lines

    def _is_where_rows_are(self, place: Path) -> bool:
        """At or below a path that is registered, in any root and whatever is wrong with it now, or
        one of the files that it leads to."""
        below = any(each in self._places for each in (place, *place.parents))
        return below or _number(place) in self._files

    @cached_property
    def _places(self) -> set[Path]:
        found = set()
        for path in map(_local, self.private.paths):
            for root in self.data_roots:
                with suppress(OSError, RuntimeError, ValueError):
                    found.add((root / path).resolve())
        return found

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

    def _read(self, found: SourceFiles, key: str, value: str, at: str) -> list[tuple[Any, Any]]:
        state = source_state(found)
        with (
            connect_to_ingest(":memory:", found.files, self.limits) as connection,
            WATCHDOG.watch(connection, self.timeout_seconds),
        ):
            table = open_table(connection, found)
            places = []
            for name, column in (("key", key), ("value", value)):
                place = table.position(column)
                if place is None:
                    raise Invalid.field(f"{at}/{name}", "the name of one column of the file")
                places.append(f"k{place}")
            lines: list[tuple[Any, Any]] = connection.execute(
                f"SELECT {', '.join(places)} FROM {table.relation} "  # noqa: S608 - generated names
                f"LIMIT {LOOKUP_MAX + 1:d}",
                [table.paths],
            ).fetchall()
        if source_state(found) != state:
            raise EngineUnavailable("The file changed while it was read.")
        return lines


def _local(path: str) -> str:
    """Spark's way to say that a path is of this machine is left out."""
    return re.sub(r"^file:/+", "/", path)


def _number(file: Path) -> tuple[int, int] | None:
    """Which file it is, by whatever name."""
    try:
        seen = file.stat()
    except OSError:  # it has gone
        return None
    return seen.st_dev, seen.st_ino
