"""The same rows in every engine: a file for DuckDB, a PostgreSQL table, files for Spark Connect.

`sail` and `spark` are two servers that speak Spark Connect; the engine is the same.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import psycopg
from sqlalchemy import make_url

from app.data.card import Card, Dataset, Epoch, Source, Version
from app.engines.files.duckdb import DuckDBEngine
from app.engines.remote.connections import DataConnection
from app.engines.remote.postgresql import PostgresEngine
from app.engines.remote.spark import SparkEngine
from app.ports.engines import Engine
from tests.engines.remote.tables import Row, write_parquet
from tests.postgres import PostgresServer

SEED = "a seed"
READER = "reader"
SETTLE_SECONDS = 10.0
_POSTGRES_TYPES = {
    "DOUBLE": "DOUBLE PRECISION",
    "FLOAT": "REAL",
    "VARCHAR": "TEXT",
    "TINYINT": "SMALLINT",
}


class Warehouse(Protocol):
    @property
    def engine(self) -> Engine: ...

    def put(self, rows: list[Row], types: dict[str, str]) -> Source:
        """Make a new table of these rows."""
        ...


def registered(warehouse: Warehouse, card: Card, *sources: Source, seed: str = SEED) -> Dataset:
    """A prepared dataset: the first source, with the others as epochs."""
    engine = warehouse.engine
    first, *later = sources
    version = Version(f"v{uuid4().hex}", 1, engine.inspect(first, card).digest, seed)
    dataset = Dataset("d", "name", "", "b", card, first, version, False, 0)
    for source in later:
        digest = engine.inspect_epoch(dataset, source.path).digest
        epochs = (*dataset.version.appended, Epoch(source.path, digest))
        number = dataset.version.number + 1
        version = Version(f"v{uuid4().hex}", number, version.digest, seed, epochs)
        dataset = Dataset("d", "name", "", "b", card, first, version, False, 0)
    engine.prepare(dataset)
    return dataset


@dataclass
class DuckDBWarehouse:
    folder: Path
    name: str = "duckdb"

    def __post_init__(self) -> None:
        (self.folder / "data").mkdir(parents=True)
        self.engine = DuckDBEngine(home=self.folder / "home", data_roots=(self.folder / "data",))

    def put(self, rows: list[Row], types: dict[str, str]) -> Source:
        name = f"{uuid4().hex}.parquet"
        write_parquet(self.folder / "data" / name, rows, types)
        return Source("duckdb", name)


@dataclass
class PostgresWarehouse:
    server: PostgresServer
    name: str = "postgresql"
    partitioned: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        database = f"data_{uuid4().hex[:12]}"
        self.server.create_database(database)
        url = make_url(self.server.url(database)).set(drivername="postgresql")
        self.owner_url = url.render_as_string(hide_password=False)
        self.reader_url = url.set(username=READER).render_as_string(hide_password=False)
        with self.owner() as connection:
            connection.execute(
                f"DO $$ BEGIN CREATE ROLE {READER} LOGIN; "
                "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
            )
        connections = {
            "clinic": DataConnection("postgresql", self.reader_url),
            "owner": DataConnection("postgresql", self.owner_url),
            "nowhere": DataConnection("postgresql", "postgresql://nobody@127.0.0.1:1/none"),
        }
        self.engine = PostgresEngine(connections=connections, **self.options)

    def owner(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.owner_url, autocommit=True)

    def put(self, rows: list[Row], types: dict[str, str]) -> Source:
        name = f"t_{uuid4().hex}"
        fields = ", ".join(
            f'"{column}" {_POSTGRES_TYPES.get(kind, kind)}' for column, kind in types.items()
        )
        marks = ", ".join("%s" for _ in types)
        with self.owner() as connection:
            parted = " PARTITION BY HASH (" + f'"{next(iter(types))}")' if self.partitioned else ""
            connection.execute(f"CREATE TABLE {name} ({fields}){parted}")
            if self.partitioned:
                for part in range(3):
                    connection.execute(
                        f"CREATE TABLE {name}_{part} PARTITION OF {name} "
                        f"FOR VALUES WITH (MODULUS 3, REMAINDER {part})"
                    )
            values = [[row[column] for column in types] for row in rows]
            connection.cursor().executemany(f"INSERT INTO {name} VALUES ({marks})", values)
            connection.execute(f"GRANT SELECT ON {name} TO {READER}")
            self.settled(connection)
        return Source("postgresql", f"public.{name}", "clinic")

    def settled(self, connection: psycopg.Connection[Any]) -> None:
        """Make PostgreSQL count all writes now: a session reports its counts on request."""
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.execute("SELECT 1")


@dataclass
class SparkWarehouse:
    url: str
    folder: Path
    name: str = "spark"

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o755)
        connection = DataConnection("spark", self.url, (str(self.folder),))
        nowhere = DataConnection("spark", "sc://127.0.0.1:1")
        self.engine = SparkEngine(
            connections={"lake": connection, "nowhere": nowhere}, timeout_seconds=120.0
        )

    def put(self, rows: list[Row], types: dict[str, str]) -> Source:
        folder = self.folder / uuid4().hex
        folder.mkdir()
        half = len(rows) // 2
        for part, some in enumerate((rows[:half], rows[half:])):
            write_parquet(folder / f"part-{part}.parquet", some, types)
        return Source("spark", str(folder), "lake")


_SAIL = """
import sys
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
sys.stdin.read()
"""


class SailServer:
    """Sail in a separate process, which ends with its standard input."""

    def __init__(self) -> None:
        environment = {key: value for key, value in os.environ.items() if "SPARK" not in key}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SAIL],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert self._process.stdout is not None
        self.url = f"sc://127.0.0.1:{int(self._process.stdout.readline())}"

    def stop(self) -> None:
        with self._process:  # closes its pipes, and waits
            self._process.kill()


def wait_for(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SETTLE_SECONDS
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
