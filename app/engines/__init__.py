"""Exact statistics over private rows: one file for each engine, loaded only when it is used."""

from importlib import import_module
from typing import Any

from app.ports.engines import Engine

ENGINES: dict[str, str] = {
    "duckdb": "app.engines.files.duckdb:DuckDBEngine",
    "postgresql": "app.engines.remote.postgresql:PostgresEngine",
    "spark": "app.engines.remote.spark:SparkEngine",
}


def load_engine(name: str, **options: Any) -> Engine:
    """The engine of this name, created with its own options."""
    module_name, _, class_name = ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(module_name), class_name)(**options)
    return engine
