"""Prepared versions that are open: a few at a time, closed only when nobody is reading them.

One thread at a time uses a cursor: it takes a free one of the version, or makes one, and returns it
afterwards.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import duckdb

from app.data.card import Dataset
from app.engines.files.connect import Limits, connect_to_ask
from app.engines.files.prepare import version_path
from app.engines.sql.layout import Layout


class OpenVersion:
    """One database file, open for reading. Guarded by the lock of OpenVersions."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, layout: Layout) -> None:
        self.connection = connection
        self.layout = layout
        self.free: list[duckdb.DuckDBPyConnection] = []
        self.users = 0

    def close(self) -> None:
        for cursor in self.free:
            cursor.close()
        self.connection.close()


class OpenVersions:
    """The versions queried most recently."""

    def __init__(self, limits: Limits, open_versions_max: int) -> None:
        self._limits = limits
        self._open_versions_max = open_versions_max
        self._open: OrderedDict[str, OpenVersion] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def cursor(self, dataset: Dataset) -> Iterator[tuple[duckdb.DuckDBPyConnection, Layout]]:
        """A cursor for this thread alone, on a version that stays open meanwhile."""
        with self._lock:
            version = self._opened(dataset)
            cursor = version.free.pop() if version.free else version.connection.cursor()
            version.users += 1
        sound = False
        try:
            yield cursor, version.layout
            sound = True
        finally:
            with self._lock:
                version.users -= 1
                version.free.append(cursor)
                if not sound:
                    self._forget(dataset.version.id, version)
                if version.users == 0 and self._open.get(dataset.version.id) is not version:
                    version.close()
                self._close_unused(self._open_versions_max)

    def close(self) -> None:
        """Close the versions that nobody is using."""
        with self._lock:
            self._close_unused(0)

    def drop(self, version_id: str) -> None:
        """Close a deleted version now, or when its last user is done."""
        with self._lock:
            version = self._open.pop(version_id, None)
            if version is not None and version.users == 0:
                version.close()

    def __len__(self) -> int:
        return len(self._open)

    def _opened(self, dataset: Dataset) -> OpenVersion:
        version_id = dataset.version.id
        version = self._open.get(version_id)
        if version is None:
            connection = connect_to_ask(version_path(self._limits.home, dataset), self._limits)
            version = self._open[version_id] = OpenVersion(connection, Layout(dataset.card))
        self._open.move_to_end(version_id)
        return version

    def _forget(self, version_id: str, version: OpenVersion) -> None:
        """Open the version again after a failure: some DuckDB errors end an instance."""
        if self._open.get(version_id) is version:
            del self._open[version_id]

    def _close_unused(self, kept: int) -> None:
        for version_id in list(self._open):
            if len(self._open) <= kept:
                return
            if self._open[version_id].users == 0:
                self._open.pop(version_id).close()
