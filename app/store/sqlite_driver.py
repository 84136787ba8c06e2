"""SQLite through apsw, seen by SQLAlchemy as a DB-API driver.

The standard library's sqlite3 uses the machine's SQLite. Up to 3.51.2 that may corrupt a
write-ahead log when two connections write and checkpoint at once. apsw brings its own, newer
SQLite, so the ledger has one journal mode everywhere (`connect.py` checks it).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import URL
from typing_extensions import override

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"
sqlite_version = apsw.sqlite_lib_version()
READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
sqlite_version_info = tuple(int(part) for part in sqlite_version.split("."))


class Error(Exception):
    pass


class DatabaseError(Error):
    pass


class IntegrityError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class InterfaceError(Error):
    pass


class DataError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


def translated(error: apsw.Error) -> DatabaseError:
    if isinstance(error, apsw.ConstraintError):
        return IntegrityError(str(error))
    if isinstance(error, apsw.SQLError | apsw.MisuseError | apsw.BindingsError):
        return ProgrammingError(str(error))
    return OperationalError(str(error))


class Cursor:
    """Cursor that fetches all rows at once, so that no statement stays open across a commit."""

    arraysize = 1

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self._next = 0
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> "Cursor":
        before = self._connection.total_changes()
        try:
            cursor = self._connection.cursor()
            cursor.exec_trace = self._note_columns  # an empty result has its columns only here
            cursor.execute(statement, tuple(parameters))
            self._rows = cursor.fetchall()
        except apsw.Error as error:
            raise translated(error) from error
        self._next = 0
        self.rowcount = self._connection.total_changes() - before
        self.lastrowid = self._connection.last_insert_rowid()
        return self

    def _note_columns(self, cursor: Any, _statement: str, _bindings: Any) -> bool:
        names = [column[0] for column in cursor.get_description()]
        self.description = tuple((name, *[None] * 6) for name in names) or None
        return True

    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]]) -> "Cursor":
        before = self._connection.total_changes()
        try:
            self._connection.executemany(statement, [tuple(each) for each in parameters])
        except apsw.Error as error:
            raise translated(error) from error
        self.rowcount = self._connection.total_changes() - before
        self.description = None
        return self

    def fetchone(self) -> Any:
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Any]:
        until = self._next + (size or self.arraysize)
        rows = self._rows[self._next : until]
        self._next = min(until, len(self._rows))
        return rows

    def fetchall(self) -> list[Any]:
        rows = self._rows[self._next :]
        self._next = len(self._rows)
        return rows

    def close(self) -> None:
        self._rows = []

    def setinputsizes(self, *_: Any) -> None:
        pass


class Connection:
    """Connection in autocommit mode until `begin`; otherwise commit and rollback do nothing."""

    def __init__(self, path: str, flags: int = READ_WRITE) -> None:
        self.native = apsw.Connection(path, flags=flags)

    def cursor(self) -> Cursor:
        return Cursor(self.native)

    def begin(self, *, write: bool) -> None:
        self.cursor().execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def commit(self) -> None:
        if self.native.in_transaction:
            self.cursor().execute("COMMIT")

    def rollback(self) -> None:
        if self.native.in_transaction:
            self.cursor().execute("ROLLBACK")

    def close(self) -> None:
        self.native.close()


def connect(path: str, flags: int = READ_WRITE) -> Connection:
    try:
        return Connection(path, flags)
    except apsw.Error as error:
        raise translated(error) from error


def connect_to_look(path: Path) -> Connection:
    """Open for reading only. Without a write-ahead log not even a side file is made."""
    log = path.with_name(f"{path.name}-wal")
    alone = not log.exists() or log.stat().st_size == 0
    uri = f"file:{quote(str(path))}?mode=ro{'&immutable=1' if alone else ''}"
    return connect(uri, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


class ApswDialect(SQLiteDialect):
    driver = "apsw"
    supports_statement_cache = True
    default_paramstyle = "qmark"

    @classmethod
    @override
    def import_dbapi(cls) -> Any:
        import app.store.sqlite_driver as module

        return module

    @override
    def create_connect_args(self, url: URL) -> Any:
        return [url.database], {}

    @override
    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return sqlite_version_info

    @override
    def do_begin(self, dbapi_connection: Any) -> None:
        """Do nothing: `connect.py` begins, because only it knows whether the transaction writes."""


registry.register("sqlite.apsw", __name__, "ApswDialect")
