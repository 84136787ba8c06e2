"""The writer's connection to PostgreSQL: prepared statements in one pipeline.

Uses libpq directly, in pipeline mode. The driver's cursors cost more than the server does here, and
so does parsing a statement's text again.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import psycopg
import psycopg.pq
from psycopg.pq import ExecStatus

from app.ledger.stamp import StampChain
from app.store.connect import IDLE_IN_TRANSACTION_MS, LOCK_TIMEOUT_MS, Database
from app.store.writer.connection import (
    ConnectionLost,
    Read,
    Rows,
    SnapshotStale,
    Write,
    WriteConflict,
)
from app.store.writer.snapshot import LedgerSnapshot
from app.store.writer.statements import statements

DIVISION_BY_ZERO = "22012"  # raised by a guard when the snapshot is outdated
_WHOLE_NUMBERS = (20, 21, 23)  # bigint, smallint, integer
_FINE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
ROWS_AT_ONCE = (64, 16, 4)
Run = tuple[bytes, list[bytes | None] | None]  # a prepared statement's name, or plain SQL with None
BEGIN, COMMIT, ROLLBACK = (b"BEGIN", None), (b"COMMIT", None), (b"ROLLBACK", None)


class PostgresWriterConnection:
    def __init__(self, database: Database) -> None:
        url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=5)
        except psycopg.Error:
            raise ConnectionLost from None
        self.known = LedgerSnapshot()
        self.stamps: StampChain | None = None
        self._native = self._connection.pgconn
        self._names: dict[str, bytes] = {}
        self._first: list[Run] = []  # statements to send with the next write
        setup = [
            f"SET lock_timeout = {LOCK_TIMEOUT_MS}",
            f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}",
            "SET synchronous_commit = on",
            "SET client_encoding = 'UTF8'",
            # Every statement finds its rows by a key. The first plans are made while the tables
            # are empty and are kept. So scans are forbidden.
            *(f"SET enable_{way} = off" for way in ("seqscan", "hashjoin", "mergejoin")),
            "SET plan_cache_mode = force_generic_plan",
            "SET jit = off",
        ]
        for name, text in statements(sqlite=False).named().items():
            self._names[text] = name.encode()
            setup.append(f"PREPARE {name} AS {text}")
            if is_insert(text):
                setup += [f"PREPARE {name}_{n} AS {rows_at_once(text, n)}" for n in ROWS_AT_ONCE]
        self._connection.execute(";".join(setup).encode(), prepare=False)
        self._native.nonblocking = 1
        self._native.enter_pipeline_mode()

    async def begin(self) -> None:
        self._first = [BEGIN]

    async def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]:
        return (await self._travel([BEGIN, *map(self._run, reads)]))[1:]

    async def write_and_commit(self, writes: Sequence[Write], then: Sequence[Read]) -> list[Rows]:
        changes, self._first = self._first, []
        changes += [run for text, rows in writes for run in self._runs(text, rows)]
        done = await self._travel([*changes, COMMIT, *map(self._run, then)])
        return done[len(changes) + 1 :]

    async def read(self, reads: Sequence[Read]) -> list[Rows]:
        return await self._travel([self._run(each) for each in reads])

    def _runs(self, text: str, rows: Sequence[Sequence[Any]]) -> Iterator[Run]:
        """Runs for these rows; an INSERT takes many rows, because a run costs as much as a row."""
        start = 0
        for size in ROWS_AT_ONCE if is_insert(text) else ():
            while len(rows) - start >= size:
                together = chain.from_iterable(rows[start : start + size])
                yield self._names[text] + b"_%d" % size, _given(together)
                start += size
        for row in rows[start:]:
            yield self._run((text, row))

    def _run(self, read: Read) -> Run:
        text, values = read
        return self._names[text], _given(values)

    async def _travel(self, runs: list[Run]) -> list[Rows]:
        """Send the statements in one round trip, and return the rows of each.

        Raises the first error; the server runs nothing after it. The event loop waits on the
        socket.
        """
        native = self._native
        try:
            for name, values in runs:
                if values is None:
                    native.send_query_params(name, None)
                else:
                    native.send_query_prepared(name, values)
            native.pipeline_sync()
            results = await self._received()
        except (psycopg.Error, OSError):
            raise ConnectionLost from None
        except BaseException:  # the remaining results would be mistaken for those of the next batch
            self.close()
            raise
        for result in results:
            if result.status not in _FINE:
                raise _error(result)
        if len(results) != len(runs):
            raise ConnectionLost
        return [_rows(result) for result in results]

    async def _received(self) -> list[psycopg.pq.abc.PGresult]:
        """Results of the statements, in order."""
        native = self._native
        results: list[psycopg.pq.abc.PGresult] = []
        ended = False  # a None follows each statement's result; two in a row are an error
        while True:
            await _ready(native.socket, write=bool(native.flush()))
            native.consume_input()
            while not native.is_busy():
                result = native.get_result()
                if result is None and ended:
                    raise psycopg.OperationalError
                ended = result is None
                if result is None:
                    continue
                if result.status == ExecStatus.PIPELINE_SYNC:
                    return results
                results.append(result)

    async def rollback(self) -> None:
        if self._first:  # nothing has begun
            self._first = []
            return
        try:
            await self._travel([ROLLBACK])
        except ConnectionLost:
            self.close()

    def close(self) -> None:
        self._connection.close()


def is_insert(text: str) -> bool:
    return text.startswith("INSERT ") and text.endswith(")")


def rows_at_once(text: str, rows: int) -> str:
    """The same INSERT for `rows` rows."""
    before, values = text.split(" VALUES ")
    width = values.count("$")
    marks = [[f"${row * width + i}" for i in range(1, width + 1)] for row in range(rows)]
    return f"{before} VALUES " + ", ".join(f"({', '.join(each)})" for each in marks)


def _given(values: Iterable[Any]) -> list[bytes | None]:
    encoded = [
        None if value is None else (value if type(value) is str else str(value)).encode()
        for value in values
    ]
    if b"\0" in b"".join(value for value in encoded if value):
        raise ValueError("PostgreSQL text cannot contain NUL")
    return encoded


async def _ready(descriptor: int, *, write: bool) -> None:
    """Wait until the socket can be read, or with `write` also until it can be written."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, tell)
    if write:
        loop.add_writer(descriptor, tell)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
        if write:
            loop.remove_writer(descriptor)


def _error(result: psycopg.pq.abc.PGresult) -> Exception:
    code = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
    if code == DIVISION_BY_ZERO:
        return SnapshotStale()
    return WriteConflict() if code[:2] == "23" or code in ("40P01", "40001") else ConnectionLost()


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
