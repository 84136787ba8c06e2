"""The Spark engine: exact statistics of data too large for one machine, over Spark Connect.

Any server that speaks Spark Connect will do. Sessions use ANSI mode and UTC, so that nothing
overflows silently and days are the same everywhere. A source is a table of the catalogue, or a
folder of Parquet files under one of the connection's roots.

The state of a source is its list of files; writers of such tables never write a file twice. A
source with other files is not queried, and nothing is charged.
"""

import atexit
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from threading import Lock, Thread
from typing import Any

from sqlalchemy import FromClause, table
from sqlalchemy.sql.elements import quoted_name
from typing_extensions import override

from app.data.card import Source
from app.engines.remote.connections import (
    Connections,
    DataConnection,
    Interruption,
    find_connection,
)
from app.engines.remote.engine import UNREACHABLE, RemoteEngine
from app.engines.sql.dialects import SPARK, Statement
from app.engines.table import Table
from app.engines.watchdog import WATCHDOG
from app.errors import EngineFailed, EngineUnavailable
from app.names import new_id

SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
# DuckDB's name for each type of Spark.
_TYPES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
CLOSE_SECONDS = 2.0
NO_TABLE = "a table of the catalogue whose rows are in files that the connection can read"
_PATTERN = set("*?[]{}\\,%")


class SparkSession:
    """One query's use of a connection's session."""

    def __init__(self, session: Any, roots: tuple[str, ...], deadline: float) -> None:
        self._session = session
        self._roots = roots
        self._deadline = deadline

    def table(self, name: str) -> Table | None:
        relation = self._named(name)
        if relation is None:
            return None
        try:
            frame = self._frame(name)
            fields = frame.schema.fields
            if not frame.inputFiles():  # such a table has no state that would show a change
                return None
        except Exception as error:
            if _is_absence(error):
                return None
            raise
        names = tuple(str(field.name) for field in fields)
        types = tuple(_type_name(field.dataType.simpleString()) for field in fields)
        return Table(SPARK, relation, names, types, names)

    def state(self, name: str) -> str:
        frame = self._frame(name)
        columns = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        return repr((sorted(frame.inputFiles()), columns))

    def place(self, name: str) -> str:
        folders = sorted({str(file).rpartition("/")[0] for file in self._frame(name).inputFiles()})
        return f"spark {folders}"

    def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        self.must_have_time()
        found = self._session.sql(statement.text, args=statement.parameters).collect()
        return [tuple(row) for row in found]

    def batches(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        frame = self._session.sql(statement.text, args=statement.parameters)
        batch: list[tuple[Any, ...]] = []
        for row in frame.toLocalIterator():
            batch.append(tuple(row))
            if len(batch) == size:
                yield batch
                self.must_have_time()
                batch = []
        if batch:
            yield batch

    def _frame(self, name: str) -> Any:
        if self._is_path(name):
            return self._session.read.parquet(name)
        return self._session.table(".".join(f"`{part}`" for part in name.split(".")))

    def _named(self, name: str) -> FromClause | None:
        if "`" in name or not name:
            return None
        if self._is_path(name):
            return table(name, schema=quoted_name("parquet", quote=False))
        if self.may_be_path(name):
            return None  # a path outside all roots
        schema, _, plain = name.rpartition(".")
        return table(plain, schema=schema or None)

    def why_no_table(self, _name: str) -> str:
        return NO_TABLE

    def may_be_path(self, name: str) -> bool:
        return "/" in name or ":" in name

    def _is_path(self, name: str) -> bool:
        if _PATTERN & set(name):  # a pattern could leave the folder, and could match new files
            return False
        roots = [root.rstrip("/") for root in self._roots]
        below = [name[len(root) + 1 :] for root in roots if name.startswith(root + "/")]
        return name in roots or any(not {"", ".", ".."} & set(each.split("/")) for each in below)

    def must_have_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise EngineFailed("The question could not be answered.")


class SparkEngine(RemoteEngine):
    dialect = SPARK

    def __init__(
        self,
        *,
        connections: Connections,
        timeout_seconds: float = 30.0,
        ingest_timeout_seconds: float = 3600.0,
        memo_size: int = 4096,
        **_: Any,
    ) -> None:
        super().__init__(memo_size)
        self._connections = connections
        self._timeout_seconds = timeout_seconds
        self._ingest_timeout_seconds = ingest_timeout_seconds
        self._sessions: dict[str, Any] = {}
        self._sessions_lock = Lock()

    @contextmanager
    @override
    def _session(self, source: Source, *, ingesting: bool = False) -> Iterator[SparkSession]:
        connection = find_connection(self._connections, source.connection, "spark")
        seconds = self._ingest_timeout_seconds if ingesting else self._timeout_seconds
        session = self._connected(connection)
        tag = new_id("ask")
        session.addTag(tag)
        sound = False
        try:
            with WATCHDOG.watch(Interruption(lambda: session.interruptTag(tag)), seconds):
                yield SparkSession(session, connection.roots, time.monotonic() + seconds)
            sound = True
        finally:
            session.removeTag(tag)
            if not sound:
                self._forget(connection, session)

    def _connected(self, connection: DataConnection) -> Any:
        with self._sessions_lock:
            found = self._sessions.get(connection.url)
            if found is None:
                found = self._sessions[connection.url] = _opened(connection.url)
            return found

    def _forget(self, connection: DataConnection, session: Any) -> None:
        """Open a new session for the next query after a failure: this one may be lost."""
        with self._sessions_lock:
            if self._sessions.get(connection.url) is session:
                del self._sessions[connection.url]

    def close(self) -> None:
        """Release the sessions, in at most CLOSE_SECONDS.

        Their client tries for minutes to reach a server that is gone.
        """
        closing = Thread(target=self._release, name="spark-close", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _release(self) -> None:
        with self._sessions_lock:
            while self._sessions:
                _, session = self._sessions.popitem()
                try:
                    session.stop()
                except Exception:  # noqa: BLE001, S112 - the server may be gone
                    continue


def _opened(url: str) -> Any:
    for name in [name for name in os.environ if name.startswith("SPARK_")]:
        del os.environ[name]  # such a variable makes the thin client look for a local Spark
    try:
        with warnings.catch_warnings(), _as_a_program():
            warnings.simplefilter("ignore")  # it warns about other installed packages
            from pyspark.sql import SparkSession as Client
    except ImportError:
        raise EngineUnavailable(
            "The package pyspark-client is not installed: pip install 'bursar-server[spark]'"
        ) from None
    try:
        with _as_a_program():
            session = Client.builder.remote(url).create()
        # At exit it would try for minutes to release sessions of a server that is gone; we do that.
        atexit.unregister(getattr(session.client, "_on_exit", print))
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
            if session.conf.get(name) != value:
                raise EngineUnavailable(UNREACHABLE)
        return session
    except Exception:  # noqa: BLE001, S110 - its text names the address, which is secret
        pass
    raise EngineUnavailable(UNREACHABLE)


@contextmanager
def _as_a_program() -> Iterator[None]:
    """Make a program passed as text (python -c) look like a file.

    Otherwise the client assumes a test, looks for a local Spark, and ends the process.
    """
    main = sys.modules["__main__"]
    as_text = main.__spec__ is None and not hasattr(main, "__file__")
    if as_text:
        main.__spec__ = ModuleSpec("__main__", None)
    try:
        yield
    finally:
        if as_text:
            main.__spec__ = None


def _is_absence(error: Exception) -> bool:
    return type(error).__name__ == "AnalysisException"


def _type_name(name: str) -> str:
    if name.startswith("decimal"):
        return name.upper()
    if name.startswith(("char(", "varchar(")):
        return "VARCHAR"
    return _TYPES.get(name, name.upper())
