"""Everything the golden files use from the app's engines, for the same reason as `reach.py`."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import table
from typing_extensions import override

from app.actions.asking.engine_data import EngineData
from app.data.card import Card, Dataset, Epoch, Source, Version
from app.engines import load_engine
from app.engines.remote.engine import RemoteEngine
from app.engines.sql.dialects import POSTGRESQL, SPARK, Dialect, Statement
from app.engines.sql.layout import Layout
from app.engines.table import Table
from app.errors import EngineError
from app.planning.plan import Plan
from app.ports.engines import Engine
from tests.golden.served.reach import SeededNoise, card_of

Json = dict[str, Any]
DIALECTS: dict[str, Dialect] = {"postgresql": POSTGRESQL, "spark": SPARK}


class Bound(NamedTuple):
    """A statement as it goes to a database."""

    text: str
    parameters: list[Any] | dict[str, Any]


Wanted = tuple[str, Any]  # the method of the read, and its request


class Reading:
    """The data of a question, which records every read."""

    METHODS = ("exact", "steps", "graph", "blocks", "records", "keys")

    def __init__(self, data: EngineData) -> None:
        self._data = data
        self.asked: list[Wanted] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._data, name)
        return real if name not in self.METHODS else lambda wanted: self._kept(name, real, wanted)

    def _kept(self, name: str, real: Callable[[Any], Any], wanted: Any) -> Any:
        self.asked.append((name, wanted))
        return real(wanted)


def answered(plan: Plan, engine: Engine, dataset: Dataset, asker: str) -> tuple[Json, list[Wanted]]:
    """The answer with seeded noise, and the reads for it."""
    data = Reading(EngineData(engine, dataset, asker))
    return plan.answer(plan.release.read(data), SeededNoise()), data.asked


def read_as(engine: Any, dataset: Dataset, name: str, request: Any) -> None:
    """Repeat a read of a question or of a running count."""
    if name == "epochs":
        engine.epochs(dataset, request)
    else:
        for _ in getattr(EngineData(engine, dataset, "a_1"), name)(request):
            pass


def tally_of(plan: Plan) -> Any:
    return plan.release.tally


def filter_of(plan: Plan) -> Any:
    return plan.release.tally.where


def files_engine(home: Path, data: Path) -> Engine:
    return load_engine("duckdb", home=home, data_roots=(data,), memory_limit="512MB", threads=1)


def registered(engine: Engine, body: Json, path: str, *appended: str) -> Dataset:
    """A prepared dataset of a file and the files appended to it."""
    card, source = card_of(body), Source("duckdb", path)
    version = Version(path.replace(".", "_"), 1, engine.inspect(source, card).digest, "seed")
    dataset = Dataset("d", "name", "", "book", card, source, version, False, 0)
    for more in appended:
        epoch = Epoch(more, engine.inspect_epoch(dataset, more).digest)
        number, epochs = dataset.version.number + 1, (*dataset.version.appended, epoch)
        version = replace(version, id=f"{version.id}_{number}", number=number, appended=epochs)
        dataset = replace(dataset, version=version)
    engine.prepare(dataset)
    return dataset


class _Session:
    """A database that records statements and returns nothing."""

    def __init__(self, found: Table, kept: list[Bound]) -> None:
        self._found, self._kept = found, kept

    def table(self, name: str) -> Table:
        return self._found

    def state(self, name: str) -> str:
        return ""

    def place(self, name: str) -> str:
        return name

    def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        self._kept.append(Bound(statement.text, statement.parameters))
        return [(1,)]

    def batches(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        self.rows(statement)
        return iter([])

    def must_have_time(self) -> None: ...


class DatabaseEngine(RemoteEngine):
    """Tables of a database that does not exist. With `plain`, rows need no cleaning."""

    def __init__(self, dialect: Dialect, types: Mapping[str, str], *, plain: bool) -> None:
        super().__init__(0)
        names = tuple(types)
        rows = table("visits", schema="clinic")
        self.dialect, self._plain = dialect, plain
        self._table = Table(dialect, rows, names, tuple(types.values()), names)
        self.statements: list[Bound] = []

    @contextmanager
    @override
    def _session(self, source: Source, *, ingesting: bool = False) -> Iterator[Any]:
        yield _Session(self._table, self.statements)

    @override
    def _layout(self, dataset: Dataset, session: Any) -> Layout:
        if self._plain:
            return Layout(dataset.card, self.dialect)
        return super()._layout(dataset, session)

    def read(self, dataset: Dataset, reads: list[Wanted]) -> list[Bound]:
        """The statements for reads that were recorded on another engine."""
        digest = hashlib.sha256(b"").hexdigest()
        appended = tuple(replace(each, digest=digest) for each in dataset.version.appended)
        version = replace(dataset.version, digest=digest, appended=appended)
        dataset = replace(dataset, version=version)
        for name, request in reads:
            with suppress(EngineError):
                read_as(self, dataset, name, request)
        return self._taken()

    def looked_at(self, card: Card, path: str = "visits") -> list[Bound]:
        """The statements that register a table."""
        self.inspect(Source(self.dialect.name, path), card)
        return self._taken()

    def _taken(self) -> list[Bound]:
        taken, self.statements = self.statements, []
        return taken
