"""Exact statistics over private rows: one file for each engine, loaded only when it is used."""

from importlib import import_module
from threading import Lock
from typing import Any

from app.errors import Invalid
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


class LoadedEngines:
    """Engines, each created with the same options when a dataset first needs it."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._loaded: dict[str, Engine] = {}
        self._lock = Lock()

    def engine(self, name: str) -> Engine:
        if name not in ENGINES:
            raise Invalid.field("/source/engine", f"one of {', '.join(ENGINES)}")
        loaded = self._loaded.get(name)
        return self._load(name) if loaded is None else loaded

    def _load(self, name: str) -> Engine:
        with self._lock:
            if name not in self._loaded:  # otherwise another thread was first
                self._loaded[name] = load_engine(name, **self._options)
            return self._loaded[name]

    def close(self) -> None:
        for engine in self._loaded.values():
            engine.close()
