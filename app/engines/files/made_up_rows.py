"""Made-up rows in a DuckDB table in memory, cleaned as the rows of a CSV file are.

The connection may open no file. Nothing here knows where private rows are: of a dataset only the
card and the number of epochs are used. Each rehearsal has a database of its own.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import duckdb
from sqlalchemy import ColumnElement, Integer, Select, column, select, table
from typing_extensions import override

from app.data.card import Card, ColumnPerson, Dataset, Source, Version
from app.data.columns import BooleanColumn, Column
from app.engines.files.connect import Limits, connect_to_ingest
from app.engines.files.duckdb import DuckDBAsking
from app.engines.files.prepare import write_categories
from app.engines.files.rows import file_rows
from app.engines.files.sources import SourceTable
from app.engines.graph import count_graph
from app.engines.records import DuckDBRecords, KeptRecords
from app.engines.sql.cleaning import RawRows, cleaned_rows
from app.engines.sql.dialects import DUCKDB, constant, written
from app.engines.sql.layout import TABLE, Layout
from app.engines.sql_engine import SqlEngine
from app.engines.watchdog import WATCHDOG
from app.queries.tally import GraphCounts, GraphCountsRequest, Matrix, Records

NAME = "rehearsal"  # id and seed of the made-up version
MADE_UP = "made_up"
EPOCHS_MAX = 8  # epochs that the rows are spread over
MEMO_SIZE = 64


class MadeUpEngine(SqlEngine):
    """Statistics of the one table in a database."""

    inside_process = True

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, card: Card, timeout_seconds: float
    ) -> None:
        super().__init__(MEMO_SIZE)
        self._connection = connection
        self._layout = Layout(card)
        self._timeout_seconds = timeout_seconds

    @contextmanager
    def cursor(self, dataset: Dataset) -> Iterator[tuple[duckdb.DuckDBPyConnection, Layout]]:
        with self._connection.cursor() as cursor:
            yield cursor, self._layout

    @contextmanager
    @override
    def _asking(self, dataset: Dataset) -> Iterator[DuckDBAsking]:
        with (
            self.cursor(dataset) as (cursor, layout),
            WATCHDOG.watch(cursor, self._timeout_seconds),
        ):
            yield DuckDBAsking(cursor, layout)

    @override
    def _graph(self, asking: DuckDBAsking, request: GraphCountsRequest) -> GraphCounts:
        return count_graph(asking.cursor, asking.layout, request)

    @override
    def records(self, dataset: Dataset, request: Records) -> Iterable[Matrix]:
        records = DuckDBRecords(self, dataset, request, self._timeout_seconds)
        return KeptRecords(records.read)


@dataclass(frozen=True, slots=True)
class DuckDBMadeUpTables:
    """Implements `ports.MadeUpTables`."""

    limits: Limits
    timeout_seconds: float = 10.0

    @classmethod
    def within(cls, home: Path) -> Self:
        """Tables that leave the resources to private work."""
        return cls(Limits(home.resolve(), "512MB", threads=1))

    @contextmanager
    def open(
        self, dataset: Dataset, rows: list[dict[str, Any]]
    ) -> Iterator[tuple[MadeUpEngine, Dataset]]:
        card, epochs = dataset.card, min(dataset.version.number, EPOCHS_MAX)
        with (
            connect_to_ingest(":memory:", [], self.limits) as connection,
            WATCHDOG.watch(connection, self.timeout_seconds),
        ):
            source = _written(connection, card, rows, epochs)
            write_categories(connection, card)
            raw = [_raw_rows(card, source, epoch) for epoch in range(epochs)]
            clean = written(cleaned_rows(card, raw, NAME), DUCKDB)
            connection.execute(f'CREATE TABLE "{TABLE}" AS {clean.text}', clean.parameters)
            connection.execute(f"DROP TABLE {MADE_UP}")
            version = Version(NAME, dataset.version.number, digest="", seed=NAME)
            made_up = replace(dataset, id=NAME, source=Source("duckdb", ""), version=version)
            yield MadeUpEngine(connection, card, self.timeout_seconds), made_up


def _written(
    connection: duckdb.DuckDBPyConnection, card: Card, rows: list[dict[str, Any]], epochs: int
) -> SourceTable:
    """Write the rows as a file would have them, and the index of each row's epoch."""
    stored = [(declared.name, _type(declared)) for declared in card.columns if declared.sourced]
    if isinstance(card.person, ColumnPerson):
        stored.insert(0, (card.person.column, "VARCHAR"))
    names, types = zip(*stored, strict=True)
    columns = ", ".join(f"k{i} {kind}" for i, kind in enumerate(types))
    connection.execute(f"CREATE TABLE {MADE_UP} ({columns}, part INTEGER)")
    lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in types)
    values = [[_stored(row[name]) for row in rows] for name in names]
    connection.execute(
        f"INSERT INTO {MADE_UP} SELECT {lists}, unnest(range(CAST(? AS INTEGER))) % ?",
        [*values, len(rows), epochs],
    )
    return SourceTable([], names, types, MADE_UP)


def _raw_rows(card: Card, source: SourceTable, epoch: int) -> RawRows:
    columns: list[ColumnElement[Any]] = [column(f"k{i}") for i in range(len(source.names))]
    part: Select[*tuple[Any, ...]] = select(*columns).select_from(table(MADE_UP))
    part = part.where(column("part", Integer()) == constant(epoch))
    return file_rows(card, source, part.subquery("source"))


def _type(declared: Column) -> str:
    return "BOOLEAN" if isinstance(declared, BooleanColumn) else "VARCHAR"


def _stored(value: Any) -> bool | str | None:
    return value if value is None or isinstance(value, bool) else str(value)
