"""The writer's own connection: a whole batch in two round trips, on the bare driver.

`begin_and_read` begins, takes the locks and reads; `write_and_commit` writes, commits durably, and
reads back what is then stored. Between the two the decisions are made in Python, once for both
stores. An ORM session costs eight times the driver here, and a charge must not wait for it.
"""

import fcntl
import os
import time
from collections.abc import Sequence
from typing import Any, Protocol

import apsw
import psycopg

from app.store import sqlite_driver
from app.store.connect import IDLE_IN_TRANSACTION_MS, LOCK_TIMEOUT_MS, Database, prepare_sqlite

Read = tuple[str, Sequence[Any]]
Write = tuple[str, Sequence[Sequence[Any]]]
Rows = list[Any]


class Broken(Exception):
    """The connection or the storage failed; whether a commit happened may be unknown."""


class Clash(Exception):
    """A constraint or a lock stopped the batch; nothing of it happened."""


class HotConnection(Protocol):
    def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]: ...

    def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]: ...

    def read(self, reads: Sequence[Read]) -> list[Rows]: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


def open_hot(database: Database) -> HotConnection:
    return HotSQLite(database) if database.is_sqlite else HotPostgres(database)


class HotSQLite:
    """Statements use `?`; lists arrive as JSON text. The file lock is held from begin to end."""

    def __init__(self, database: Database) -> None:
        assert database.url.database is not None
        assert database.write_lock is not None
        self._connection = sqlite_driver.connect(database.url.database)
        prepare_sqlite(self._connection)
        self._native = self._connection.native
        self._lock = os.open(database.write_lock.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            self._native.execute("BEGIN IMMEDIATE")
        except apsw.Error:
            self.rollback()
            raise Broken from None
        return self.read(reads)

    def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]:
        try:
            for statement, rows in writes:
                self._native.executemany(statement, rows)
            self._native.execute("COMMIT")
        except apsw.ConstraintError:
            raise Clash from None
        except apsw.Error:
            raise Broken from None
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        return self.read(then)

    def read(self, reads: Sequence[Read]) -> list[Rows]:
        try:
            return [self._native.execute(text, tuple(values)).fetchall() for text, values in reads]
        except apsw.Error:
            raise Broken from None

    def rollback(self) -> None:
        try:
            if self._native.in_transaction:
                self._native.execute("ROLLBACK")
        except apsw.Error:
            pass  # closing the connection rolls back too
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        self._connection.close()
        os.close(self._lock)


class HotPostgres:
    """Statements use `%s`; each group of them travels as one pipeline, one round trip."""

    def __init__(self, database: Database) -> None:
        url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            self._connection = psycopg.connect(
                url, autocommit=True, prepare_threshold=1, connect_timeout=5
            )
            self._connection.execute(
                f"SET lock_timeout = {LOCK_TIMEOUT_MS};"
                f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS};"
                "SET synchronous_commit = on",
                prepare=False,
            )
        except psycopg.Error:
            raise Broken from None

    def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]:
        return self._travel([("BEGIN", ())], reads)

    def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]:
        # A pipeline stops at its first error, so what follows COMMIT is read only if it succeeded.
        return self._travel([*writes, ("COMMIT", ())], then)

    def read(self, reads: Sequence[Read]) -> list[Rows]:
        return self._travel([], reads)

    def _travel(self, writes: Sequence[Write], reads: Sequence[Read]) -> list[Rows]:
        try:
            with self._connection.pipeline():
                for statement, rows in writes:
                    if len(rows) > 1:
                        with self._connection.cursor() as cursor:
                            cursor.executemany(statement, rows)
                    else:
                        self._connection.execute(statement, rows[0] if rows else None)
                cursors = [self._connection.execute(text, values) for text, values in reads]
            return [cursor.fetchall() for cursor in cursors]
        except (psycopg.IntegrityError, psycopg.errors.DeadlockDetected):
            raise Clash from None
        except psycopg.Error:
            raise Broken from None

    def rollback(self) -> None:
        try:
            self._connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        self._connection.close()


def now_microseconds() -> int:
    return time.time_ns() // 1000
