"""The writer's connection to SQLite, inside this process."""

import asyncio
import fcntl
import os
from collections.abc import Sequence
from typing import Any

import apsw

from app.ledger.stamp import StampChain
from app.store import sqlite_driver
from app.store.connect import Database, prepare_sqlite
from app.store.writer.connection import (
    ConnectionLost,
    Read,
    Rows,
    SnapshotStale,
    Write,
    WriteConflict,
    now_microseconds,
)
from app.store.writer.snapshot import LedgerSnapshot
from app.store.writer.statements import statements


class SQLiteWriterConnection:
    """Statements use `?`; lists are passed as JSON text. The file lock is held during a batch."""

    def __init__(self, database: Database) -> None:
        assert database.url.database is not None
        assert database.write_lock is not None
        self._connection = sqlite_driver.connect(database.url.database)
        prepare_sqlite(self._connection)
        self._native = self._connection.native
        self.known = LedgerSnapshot(now_microseconds)
        self.stamps: StampChain | None = None
        sql = statements(sqlite=True)
        self._guards = (sql.keep_account, sql.keep_book, sql.nothing_to_reuse)
        self._lock = os.open(database.write_lock.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    async def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]:
        await self.begin()
        return self._rows(reads)

    async def begin(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process writes: wait in a thread, not on the event loop
            await asyncio.to_thread(fcntl.flock, self._lock, fcntl.LOCK_EX)
        try:
            self._native.execute("BEGIN IMMEDIATE")
        except apsw.Error:
            await self.rollback()
            raise ConnectionLost from None

    async def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]:
        try:
            for statement, rows in writes:
                if statement in self._guards:
                    self._must_be_so(statement, rows)
                else:
                    self._native.executemany(statement, rows)
            self._native.execute("COMMIT")
        except apsw.ConstraintError:
            raise WriteConflict from None
        except apsw.Error:
            raise ConnectionLost from None
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        return self._rows(then)

    def _must_be_so(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            if not self._native.execute(statement, row).fetchall():
                raise SnapshotStale

    async def read(self, reads: Sequence[Read]) -> list[Rows]:
        return self._rows(reads)

    def _rows(self, reads: Sequence[Read]) -> list[Rows]:
        try:
            return [self._native.execute(text, tuple(values)).fetchall() for text, values in reads]
        except apsw.Error:
            raise ConnectionLost from None

    async def rollback(self) -> None:
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
