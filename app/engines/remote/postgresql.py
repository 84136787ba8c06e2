"""The PostgreSQL engine: exact statistics of a table, computed by its server.

The connection's role may read and nothing else: a table that it could change is refused. Every
query is one read-only transaction, which sees one state of the table.

A table can change at any time, so its state is registered too. The state is the table's files, and
the server's counts of rows ever inserted, updated or deleted (current within about a second). A
table in another state is not queried, and nothing is charged. Its rows may be declared as a new
version.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import psycopg
from psycopg import pq, sql
from psycopg.rows import tuple_row
from sqlalchemy import table as named_table
from typing_extensions import override

from app.data.card import Source
from app.engines.remote.connections import Connections, Interruption, find_connection
from app.engines.remote.engine import UNREACHABLE, RemoteEngine
from app.engines.sql.dialects import POSTGRESQL, Statement
from app.engines.table import Table
from app.engines.watchdog import WATCHDOG
from app.errors import EngineFailed, EngineUnavailable

CONNECT_SECONDS = 5
IDLE_MAX = 8  # idle connections kept for each name
SETTINGS = (
    "-c default_transaction_read_only=on -c TimeZone=UTC -c DateStyle=ISO -c search_path= "
    "-c standard_conforming_strings=on -c lock_timeout=10s "
    "-c idle_in_transaction_session_timeout=10min -c client_min_messages=error"
)
# DuckDB's name for each type of PostgreSQL.
_TYPES: Mapping[str, str] = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "bpchar": "VARCHAR",
    "name": "VARCHAR",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "uuid": "UUID",
}
# Refused: a server that does not count writes, or does not use UTF-8. Row policies depend on data
# outside the table, and rows of a foreign table are not counted here: neither has a state. The rows
# of a table include those of all tables that inherit from it, such as partitions.
_TREE = """
WITH RECURSIVE tree (oid) AS (
  SELECT %(oid)s::oid UNION
  SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN tree ON i.inhparent = tree.oid
)
"""
_RELATION = """
SELECT c.oid::bigint, c.relkind::text,
  has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
  row_security_active(c.oid),
  current_setting('track_counts') = 'on' AND current_setting('server_encoding') = 'UTF8'
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
_UNFIT = (
    _TREE
    + """
SELECT count(*) FILTER (WHERE c.relkind NOT IN ('r', 'p')), count(*) FILTER (WHERE
  has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
  OR has_any_column_privilege(c.oid, 'INSERT, UPDATE') OR pg_has_role(c.relowner, 'MEMBER'))
FROM tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid
"""
)
# Why a table cannot be registered; shown to the administrator who names it.
ABSENT = "a table that the database has, as `table` in the schema public or as `schema.table`"
VIEW = (
    "a table: this is a view, which has no state of its own that would show a change; "
    "register a table"
)
NO_ROWS_OF_ITS_OWN = "a table whose rows, and those of its partitions, are in this database"
UNREADABLE = (
    "a table that the connection's role may read: grant it USAGE on the schema and SELECT on the "
    "table"
)
WRITABLE = (
    "a table that the connection's role can only read: this role can also change it or owns it; "
    "use a role that has SELECT and nothing else"
)
ROW_SECURITY = "a table without row security for the connection's role"
UNCOUNTED = "a table of a server with track_counts on and the encoding UTF8"
_COLUMNS = """
SELECT a.attname, t.typname, t.typtype, a.atttypmod FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# The server counts all rows that the tables have ever had.
_STATE = (
    _TREE
    + """
SELECT c.oid::bigint, pg_relation_filenode(c.oid)::bigint,
  pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid),
  pg_stat_get_tuples_deleted(c.oid)
FROM tree JOIN pg_catalog.pg_class AS c ON c.oid = tree.oid WHERE c.relkind = 'r' ORDER BY 1
"""
)
_COLUMN_STATE = """
SELECT string_agg(format('%%s %%s %%s', attnum, attname, atttypid), ',' ORDER BY attnum)
FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
"""
_DATABASE = """
SELECT (SELECT system_identifier FROM pg_control_system()), oid::bigint
FROM pg_catalog.pg_database WHERE datname = current_database()
"""


class PostgresSession:
    """One read-only transaction."""

    def __init__(self, connection: psycopg.Connection[Any], deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def table(self, name: str) -> Table | None:
        oid = self._oid(name)
        if oid is None:
            return None
        columns = self._run(_COLUMNS, (oid,))
        names = tuple(row[0] for row in columns)
        schema, _, plain = name.rpartition(".")
        return Table(
            POSTGRESQL,
            named_table(plain, schema=schema or "public"),
            names,
            tuple(_type_name(*row[1:]) for row in columns),
            names,
        )

    def may_be_path(self, _name: str) -> bool:
        return False

    def state(self, name: str) -> str:
        oid = self._oid(name)
        if oid is None:
            raise EngineUnavailable(UNREACHABLE)  # gone, or this role may no longer read it
        # Without this a transaction keeps its first counts, and a second check would see the same.
        self._run("SELECT pg_catalog.pg_stat_clear_snapshot()", ())
        # A locked table is noticed here, before anything is charged.
        self._run(f"SELECT 1 FROM {_quoted(name)} LIMIT 0", ())  # noqa: S608 - quoted
        files = self._run(_STATE, {"oid": oid})
        if not files:  # a partitioned table without partitions is empty, and may get rows any time
            return "without files"
        return repr((files, self._run(_COLUMN_STATE, (oid,))))

    def place(self, name: str) -> str:
        ((system, database),) = self._run(_DATABASE, ())
        return f"postgresql {system} {database} {self._oid(name)}"

    def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        return self._run(statement.text, statement.parameters)

    def batches(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        self._limit()
        with self._connection.cursor(name="batches", row_factory=tuple_row) as cursor:
            cursor.execute(statement.text.encode(), statement.parameters)
            while rows := cursor.fetchmany(size):
                yield rows

    def must_have_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise EngineFailed("The question could not be answered.")

    def why_no_table(self, name: str) -> str:
        found = self._relation(name)
        return ABSENT if isinstance(found, int) else found  # an int: it has just appeared

    def _oid(self, name: str) -> int | None:
        found = self._relation(name)
        return found if isinstance(found, int) else None

    def _relation(self, name: str) -> int | str:
        """The table's oid, or why it cannot be used."""
        schema, _, plain = name.rpartition(".")
        if not plain or "." in schema:
            return ABSENT
        found = self._run(_RELATION, (schema or "public", plain))
        if not found:
            return ABSENT
        ((oid, kind, readable, secured, counted),) = found
        if kind in ("v", "m"):
            return VIEW
        if kind not in ("r", "p"):
            return NO_ROWS_OF_ITS_OWN
        if not readable:
            return UNREADABLE
        if secured:
            return ROW_SECURITY
        if not counted:
            return UNCOUNTED
        ((elsewhere, writable),) = self._run(_UNFIT, {"oid": oid})
        if writable:
            return WRITABLE
        return NO_ROWS_OF_ITS_OWN if elsewhere else int(oid)

    def _run(self, text: str, parameters: Any) -> list[tuple[Any, ...]]:
        self._limit()
        with self._connection.cursor(row_factory=tuple_row) as cursor:
            # Never prepared: a generic plan would not know how few rows this value has.
            return cursor.execute(text.encode(), parameters, prepare=False).fetchall()

    def _limit(self) -> None:
        """Set the remaining time as limit; the watchdog covers a server that ignores it."""
        left = max(1, int((self._deadline - time.monotonic()) * 1000))
        limit = sql.SQL("SET LOCAL statement_timeout = {}").format(sql.Literal(left))
        self._connection.execute(limit)


class PostgresEngine(RemoteEngine):
    dialect = POSTGRESQL

    def __init__(
        self,
        *,
        connections: Connections,
        timeout_seconds: float = 30.0,
        ingest_timeout_seconds: float = 3600.0,
        memo_size: int = 4096,
        home: Path | None = None,
        **_: Any,
    ) -> None:
        super().__init__(memo_size)
        self._connections = connections
        self._timeout_seconds = timeout_seconds
        self._ingest_timeout_seconds = ingest_timeout_seconds
        self._idle: dict[str, list[psycopg.Connection[Any]]] = {}
        self._idle_lock = Lock()

    @contextmanager
    @override
    def _session(self, source: Source, *, ingesting: bool = False) -> Iterator[PostgresSession]:
        url = find_connection(self._connections, source.connection, "postgresql").url
        seconds = self._ingest_timeout_seconds if ingesting else self._timeout_seconds
        connection = self._begun(url)
        sound = False
        try:
            with WATCHDOG.watch(Interruption(connection.cancel_safe), seconds + 1):
                yield PostgresSession(connection, time.monotonic() + seconds)
            connection.execute("ROLLBACK")
            sound = True
        finally:
            if sound:
                self._give_back(url, connection)
            else:
                connection.close()

    def _begun(self, url: str) -> psycopg.Connection[Any]:
        """A connection in a new transaction; an idle connection may have been closed meanwhile."""
        while True:
            with self._idle_lock:
                idle = self._idle.get(url)
                kept = idle.pop() if idle else None
            try:
                connection = kept or _connected(url)
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return connection
            except (psycopg.Error, OSError, ValueError):
                if kept is None:
                    break
                kept.close()
        raise EngineUnavailable(UNREACHABLE)

    def _give_back(self, url: str, connection: psycopg.Connection[Any]) -> None:
        with self._idle_lock:
            idle = self._idle.setdefault(url, [])
            fine = connection.info.transaction_status == pq.TransactionStatus.IDLE
            if fine and len(idle) < IDLE_MAX:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._idle_lock:
            for idle in self._idle.values():
                while idle:
                    idle.pop().close()


def _connected(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        url,
        autocommit=True,  # transactions are begun and ended explicitly
        connect_timeout=CONNECT_SECONDS,
        client_encoding="utf8",
        options=SETTINGS,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=30_000,
    )


def _quoted(name: str) -> str:
    schema, _, plain = name.rpartition(".")
    parts = (each.replace('"', '""').replace("%", "%%") for each in (schema or "public", plain))
    return ".".join(f'"{each}"' for each in parts)


def _type_name(name: str, kind: str, modifier: int) -> str:
    if kind == "e":
        return "ENUM"
    if name == "numeric":
        if modifier < 4:
            return "DECIMAL"
        digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        return f"DECIMAL({digits},{scale if scale < 1024 else scale - 2048})"
    return _TYPES.get(name, name.upper()) if kind == "b" else name.upper()
