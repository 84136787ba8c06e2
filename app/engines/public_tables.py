"""Public tables: files under a data root whose lines the owner shows to everybody.

Found and read as data sources are: the same roots and links, the same hardened connection, no type
guessed. No text of the driver leaves, and no value: a table that will not do is refused by its
field.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.engines.connect import Limits, connect_to_ingest
from app.engines.paths import SourceFiles, resolve_source
from app.engines.reading import readable
from app.engines.sources import open_table, source_state
from app.engines.watchdog import WATCHDOG
from app.errors import EngineUnavailable, Invalid
from app.expressions import LOOKUP_MAX

WANTED = "a .csv or .parquet file under a data root"


@dataclass(frozen=True, slots=True)
class FilePublicTables:
    """Implements `interfaces.PublicTables`."""

    limits: Limits
    data_roots: tuple[Path, ...]
    timeout_seconds: float = 60.0

    def lines(
        self, path: str, key: str, value: str, *, private: Sequence[str], at: str
    ) -> list[tuple[Any, Any]]:
        found = self._found(path)
        if found is None or found.is_folder:
            raise Invalid.field(f"{at}/path", WANTED)
        if any(self._is_of(found.place, each) for each in private):
            rule = "no file of a dataset's rows: what a public table says is shown to everybody"
            raise Invalid.field(f"{at}/path", rule)
        (self.limits.home / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = readable(lambda: self._read(found, key, value, at), at=f"{at}/path")
        if len(lines) > LOOKUP_MAX:
            raise Invalid.field(f"{at}/path", f"a file of at most {LOOKUP_MAX} lines")
        return lines

    def _is_of(self, place: Path, source: str) -> bool:
        """Is this file, by whatever name, one of the source's?"""
        rows = self._found(source)
        return rows is not None and any(_same(place, file) for file in rows.files)

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


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # it has gone
        return False
