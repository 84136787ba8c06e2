"""The writer's own connection: a whole batch in two round trips, on the bare driver.

`begin_and_read` begins, takes the locks and reads; `write_and_commit` writes, commits durably, and
reads back what is then stored. Between the two the decisions are made in Python, once for both
stores. An ORM session costs eight times the driver here, and a charge must not wait for it.

All of it is spoken by the event loop itself: handing a batch to a thread, and the interpreter's
lock back and forth with every statement, cost more than the statements (decision 0020).
"""

import asyncio
import fcntl
import os
import re
import time
from collections.abc import Sequence
from typing import Any, Protocol

import apsw
import psycopg
import psycopg.pq
from psycopg.generators import execute
from psycopg.waiting import Ready, Wait

from app.ledger.chain import canonical
from app.store import sqlite_driver
from app.store.connect import IDLE_IN_TRANSACTION_MS, LOCK_TIMEOUT_MS, Database, prepare_sqlite
from app.store.statements import statements

Read = tuple[str, Sequence[Any]]
Write = tuple[str, Sequence[Sequence[Any]]]
Rows = list[Any]


class Broken(Exception):
    """The connection or the storage failed; whether a commit happened may be unknown."""


class Clash(Exception):
    """A constraint or a lock stopped the batch; nothing of it happened."""


class HotConnection(Protocol):
    """Used from one event loop, for one thing at a time."""

    async def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]: ...

    async def write_and_commit(
        self, writes: Sequence[Write], then: Sequence[Read]
    ) -> list[Rows]: ...

    async def read(self, reads: Sequence[Read]) -> list[Rows]: ...

    async def rollback(self) -> None: ...

    def close(self) -> None: ...


async def open_hot(database: Database) -> HotConnection:
    if database.is_sqlite:
        return HotSQLite(database)
    return await asyncio.to_thread(HotPostgres, database)  # connecting may wait for seconds


class HotSQLite:
    """Statements use `?`; lists arrive as JSON text. The file lock is held from begin to end."""

    def __init__(self, database: Database) -> None:
        assert database.url.database is not None
        assert database.write_lock is not None
        self._connection = sqlite_driver.connect(database.url.database)
        prepare_sqlite(self._connection)
        self._native = self._connection.native
        self._lock = os.open(database.write_lock.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    async def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process writes: only a thread may wait for it
            await asyncio.to_thread(fcntl.flock, self._lock, fcntl.LOCK_EX)
        try:
            self._native.execute("BEGIN IMMEDIATE")
        except apsw.Error:
            await self.rollback()
            raise Broken from None
        return self._rows(reads)

    async def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]:
        try:
            for statement, rows in writes:
                self._native.executemany(statement, rows)
            self._native.execute("COMMIT")
        except apsw.ConstraintError:
            raise Clash from None
        except apsw.Error:
            raise Broken from None
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        return self._rows(then)

    async def read(self, reads: Sequence[Read]) -> list[Rows]:
        return self._rows(reads)

    def _rows(self, reads: Sequence[Read]) -> list[Rows]:
        try:
            return [self._native.execute(text, tuple(values)).fetchall() for text, values in reads]
        except apsw.Error:
            raise Broken from None

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


class HotPostgres:
    """Prepared statements, and each group of them sent as one text: one round trip.

    Spoken through libpq itself: the driver's cursors cost more here than the server does.
    """

    def __init__(self, database: Database) -> None:
        url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=5)
        except psycopg.Error:
            raise Broken from None
        self._native = self._connection.pgconn
        self._escape = psycopg.pq.Escaping(self._native).escape_literal
        self._names: dict[str, str] = {}
        setup = [
            f"SET lock_timeout = {LOCK_TIMEOUT_MS}",
            f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}",
            "SET synchronous_commit = on",
            "SET client_encoding = 'UTF8'",
            # Every statement finds its rows by a key. Planned once, and never by a scan: the first
            # plans are made while the tables are empty, and would stay when they are not.
            *(f"SET enable_{way} = off" for way in ("seqscan", "hashjoin", "mergejoin")),
            "SET plan_cache_mode = force_generic_plan",
            "SET jit = off",
        ]
        for name, text in statements(sqlite=False).named().items():
            self._names[text] = name
            marks = len(set(re.findall(r"\$\d+", text)))
            kinds = f" ({', '.join(['text'] * marks)})" if marks else ""
            setup.append(f"PREPARE {name}{kinds} AS {text}")
        self._connection.execute(";".join(setup).encode(), prepare=False)

    async def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]:
        return (await self._travel(["BEGIN", *map(self._execute, reads)]))[1:]

    async def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]:
        # Of a text with several statements nothing after the first error is run, so what follows
        # COMMIT is read only if it succeeded.
        runs: list[Read] = []
        for text, rows in writes:
            if "($1::jsonb)" in text:  # all rows at once
                runs.append((text, (canonical(rows),)))
            else:
                runs += [(text, row) for row in rows]
        changes = [self._execute(run) for run in runs]
        done = await self._travel([*changes, "COMMIT", *map(self._execute, then)])
        return done[len(changes) + 1 :]

    async def read(self, reads: Sequence[Read]) -> list[Rows]:
        return await self._travel([self._execute(each) for each in reads])

    def _execute(self, read: Read) -> str:
        text, values = read
        if any("\0" in value for value in values if isinstance(value, str)):
            raise ValueError("PostgreSQL has no text with NUL")
        given = ", ".join(
            "NULL" if value is None else self._escape(str(value).encode()).decode()
            for value in values
        )
        return f"EXECUTE {self._names[text]}{f'({given})' if given else ''}"

    async def _travel(self, texts: Sequence[str]) -> list[Rows]:
        """Rows of each statement, or the first error. The event loop waits on the socket."""
        try:
            self._native.send_query(";".join(texts).encode())
            results = await self._received()
        except (psycopg.Error, OSError):
            raise Broken from None
        for result in results:
            if result.status not in _FINE:
                code = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
                raise Clash if code[:2] == "23" or code in ("40P01", "40001") else Broken
        if len(results) != len(texts):
            raise Broken
        return [_rows(result) for result in results]

    async def _received(self) -> list[psycopg.pq.abc.PGresult]:
        steps = execute(self._native)
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(await _socket_ready(self._native.socket, wanted))
        except StopIteration as done:
            results: list[psycopg.pq.abc.PGresult] = done.value
            return results

    async def rollback(self) -> None:
        try:
            await self._travel(["ROLLBACK"])
        except Broken:
            self.close()

    def close(self) -> None:
        self._connection.close()


async def _socket_ready(descriptor: int, wanted: Wait) -> Ready:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[Ready] = loop.create_future()

    def tell(what: Ready) -> None:
        if not ready.done():
            ready.set_result(what)

    if wanted & Wait.R:
        loop.add_reader(descriptor, tell, Ready.R)
    if wanted & Wait.W:
        loop.add_writer(descriptor, tell, Ready.W)
    try:
        return await ready
    finally:
        if wanted & Wait.R:
            loop.remove_reader(descriptor)
        if wanted & Wait.W:
            loop.remove_writer(descriptor)


_FINE = (psycopg.pq.ExecStatus.TUPLES_OK, psycopg.pq.ExecStatus.COMMAND_OK)
_WHOLE_NUMBERS = (20, 21, 23)  # bigint, smallint, integer


def _rows(result: psycopg.pq.abc.PGresult) -> Rows:
    whole = [result.ftype(column) in _WHOLE_NUMBERS for column in range(result.nfields)]
    return [
        tuple(
            None if value is None else int(value) if number else value.decode()
            for column, number in enumerate(whole)
            for value in [result.get_value(row, column)]
        )
        for row in range(result.ntuples)
    ]


def now_microseconds() -> int:
    return time.time_ns() // 1000
