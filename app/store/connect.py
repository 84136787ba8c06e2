"""Connections to the ledger with durable settings, and one lock around every SQLite write.

SQLite: write-ahead log with synchronous FULL, which is safe with several writers from 3.51.3 on.
Every transaction that writes uses `BEGIN IMMEDIATE` and waits for a file lock, because SQLite's own
busy timeout starves writers. PostgreSQL: settings that could lose a committed charge are refused.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url

from app.errors import StoreUnavailable
from app.store import sqlite_driver
from app.store.anchors.files import AnchorFiles

SQLITE_MIN = (3, 51, 3)
LOCK_TIMEOUT_MS = 10_000
IDLE_IN_TRANSACTION_MS = 10_000
LOOK_SECONDS = 5  # to connect, for a look


class FileLock:
    """Exclusive lock between processes and threads; each acquisition opens the file again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def held(self) -> Iterator[None]:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class Database:
    """One ledger database: an engine, and how to begin a transaction on it."""

    url: URL
    engine: Engine
    write_lock: FileLock | None
    anchors: AnchorFiles | None = None  # every commit is reported to them

    def __init__(self, url: str, *, looking: bool = False) -> None:
        """`looking`: nothing is made, set or changed; only `reading` works."""
        parsed = make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite and looking:
            self.url = parsed.set(drivername="sqlite+apsw")
            self.write_lock = None
            path = Path(parsed.database or "")
            self.engine = create_engine(
                self.url, creator=lambda: sqlite_driver.connect_to_look(path)
            )
            return
        if self.is_sqlite:
            self.url = parsed.set(drivername="sqlite+apsw")
            path = Path(parsed.database or "")
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.write_lock = FileLock(path.with_name(path.name + ".lock"))
            self.engine = create_engine(self.url)
        else:
            self.url = parsed.set(drivername="postgresql+psycopg")
            self.write_lock = None
            wait = {"connect_timeout": LOOK_SECONDS} if looking else {}
            self.engine = create_engine(
                self.url, pool_size=5, max_overflow=10, pool_pre_ping=True, connect_args=wait
            )
        event.listen(self.engine, "connect", self._prepare)

    def _prepare(self, connection: Any, _record: Any) -> None:
        if self.is_sqlite:
            prepare_sqlite(connection)
        else:
            with connection.cursor() as cursor:
                cursor.execute(
                    f"SET lock_timeout = {LOCK_TIMEOUT_MS};"
                    f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS};"
                    "SET synchronous_commit = on;"
                    "SET client_encoding = 'UTF8'"
                )
            connection.commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that reads from one consistent snapshot."""
        with self.engine.connect() as connection:
            if self.is_sqlite:
                driver = connection.connection.driver_connection
                assert isinstance(driver, sqlite_driver.Connection)
                driver.begin(write=False)
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection
            connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that commits durably at the end, or changes nothing."""
        if self.write_lock is None:
            with self.engine.begin() as connection:
                yield connection
            return
        with self.write_lock.held(), self.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite_driver.Connection)
            driver.begin(write=True)
            with connection.begin():
                yield connection

    def check_safe(self) -> None:
        """Refuse storage that could lose an acknowledged charge."""
        with self.engine.connect() as connection:
            if self.is_sqlite:
                mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
                synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar()
                if (mode, synchronous) != ("wal", 2):
                    raise StoreUnavailable(
                        "The ledger's SQLite must use WAL with synchronous FULL."
                    )
                return
            for name, safe in (
                ("fsync", "on"),
                ("full_page_writes", "on"),
                ("synchronous_commit", "on"),
                ("server_encoding", "UTF8"),
                ("data_sync_retry", "off"),
                ("transaction_read_only", "off"),
            ):
                if connection.exec_driver_sql(f"SHOW {name}").scalar() != safe:
                    raise StoreUnavailable(f"The ledger's PostgreSQL must have {name} = {safe}.")
            if connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar():
                raise StoreUnavailable(
                    "The ledger's PostgreSQL is a standby; connect to the primary."
                )


def prepare_sqlite(connection: sqlite_driver.Connection) -> None:
    if sqlite_driver.sqlite_version_info < SQLITE_MIN:
        raise StoreUnavailable("SQLite must be 3.51.3 or newer: install the locked apsw.")
    cursor = connection.cursor()
    for pragma in (
        "busy_timeout = 10000",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
