"""A prepared version of some rows, with its engine and a bare cursor on the same file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from app.data.card import Card, Dataset, Source, Version
from app.engines.files.connect import Limits, connect_to_ask
from app.engines.files.duckdb import DuckDBEngine
from app.engines.files.prepare import version_path


@dataclass(frozen=True, slots=True)
class Bench:
    engine: DuckDBEngine
    dataset: Dataset
    cursor: duckdb.DuckDBPyConnection


def card_of(registered: dict[str, Any]) -> Card:
    """The card in the body of a registration."""
    around = ("name", "description", "source")
    return Card.model_validate({k: v for k, v in registered.items() if k not in around})


@contextmanager
def prepared(folder: Path, card: Card, write: Callable[[Path], Any]) -> Iterator[Bench]:
    data, home = folder / "data", folder / "home"
    data.mkdir(parents=True)
    write(data / "rows.parquet")
    engine = DuckDBEngine(home=home, data_roots=(data,))
    source = Source("duckdb", "rows.parquet")
    version = Version("v_bench", 1, engine.inspect(source, card).digest, "seed")
    dataset = Dataset("d_bench", "bench", "", "b_bench", card, source, version, False, 0)
    engine.prepare(dataset)
    connection = connect_to_ask(version_path(home, dataset), Limits(home, "1GB", 2))
    try:
        yield Bench(engine, dataset, connection.cursor())
    finally:
        connection.close()
        engine.close()
