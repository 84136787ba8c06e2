"""Small tables for the tests of engines: written as CSV or Parquet, registered, prepared."""

import csv
import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from app.data.card import Card, Dataset, Epoch, Source, Version
from app.engines.files.connect import Limits, connect_to_ask
from app.engines.files.duckdb import DuckDBEngine
from app.engines.files.paths import resolve_source
from app.engines.files.prepare import version_path
from app.engines.files.sources import source_digest
from app.queries.tally import Exact, Tally

CARD = Card.model_validate(
    {
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": [
            {"name": "age", "type": "integer", "low": 0, "high": 100},
            {"name": "income", "type": "number", "low": -10.5, "high": 1000.25},
            {"name": "rate", "type": "number", "low": 1e10, "high": 1e15},
            {"name": "city", "type": "category", "values": ["Bern", "Zürich", "c0", "a'b\"c"]},
            {"name": "member", "type": "boolean"},
            {"name": "born", "type": "date", "low": "1950-01-01", "high": "2010-12-31"},
        ],
    }
)
STORED = {
    "age": "BIGINT",
    "income": "DOUBLE",
    "rate": "DOUBLE",
    "city": "VARCHAR",
    "member": "BOOLEAN",
    "born": "DATE",
}
Row = dict[str, Any]

ASKER = "a_1"


def card_with(**changes: Any) -> Card:
    return Card.model_validate(CARD.model_dump() | changes)


def write_csv(path: Path, rows: list[Row], names: list[str] | None = None) -> None:
    names = names or list(rows[0])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([_field(row[name]) for name in names] for row in rows)


def _field(value: Any) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def write_parquet(path: Path, rows: list[Row], types: dict[str, str] | None = None) -> None:
    types = types or STORED
    fields = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({fields})")
        if rows:
            columns = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in types.values())
            connection.execute(
                f"INSERT INTO t SELECT {columns}", [[row[name] for row in rows] for name in types]
            )
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")


class Room:
    """An engine over one directory of data."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.data = directory / "data"
        self.home = directory / "home"
        self.data.mkdir(parents=True, exist_ok=True)
        self.engine = DuckDBEngine(home=self.home, data_roots=(self.data,), **options)

    def register(self, name: str, card: Card = CARD, **options: str) -> Dataset:
        digest = self.engine.inspect(Source("duckdb", name), card).digest
        return _dataset(name, card, digest, (), **options)

    def prepared(
        self, name: str, card: Card = CARD, *, appended: Sequence[str] = (), **options: str
    ) -> Dataset:
        """Prepare files that were not inspected: hashing rows takes longer than preparing them."""
        epochs = tuple(Epoch(other, self._digest(other)) for other in appended)
        dataset = _dataset(name, card, self._digest(name), epochs, **options)
        self.engine.prepare(dataset)
        return dataset

    def _digest(self, name: str) -> str:
        return source_digest(resolve_source(name, (self.data,)))

    def ask(self, dataset: Dataset, tally: Tally) -> Exact:
        return self.engine.exact(dataset, tally, ASKER)


def _dataset(
    name: str,
    card: Card,
    digest: str,
    epochs: tuple[Epoch, ...],
    *,
    version_id: str = "",
    seed: str = "seed",
) -> Dataset:
    number, made_id = 1 + len(epochs), version_id or name.replace(".", "_")
    version = Version(made_id, number, digest, seed, epochs)
    return Dataset("ds", "name", "", "book", card, Source("duckdb", name), version, False, 0)


@contextmanager
def room_in(directory: Path, **options: Any) -> Iterator[Room]:
    room = Room(directory, **options)
    try:
        yield room
    finally:
        room.engine.close()


def card_of(*columns: dict[str, Any], **changes: Any) -> Card:
    declared = {"person": {"kind": "row"}, "neighbours": "add_remove", "columns": list(columns)}
    return Card.model_validate(declared | changes)


def stored(room: Room, dataset: Dataset) -> list[tuple[Any, ...]]:
    limits = Limits(room.home, "256MB", 1)
    with connect_to_ask(version_path(room.home, dataset), limits) as connection:
        return connection.execute("SELECT * FROM rows").fetchall()
