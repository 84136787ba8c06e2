"""statements.txt: the SQL of every kind of question in three dialects.

DuckDB's are those its driver really received, for small files. Those of PostgreSQL and Spark are
for the same reads. `sources` are the statements that register, clean and prepare rows.
"""

import datetime
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

from tests.golden import fixed, queries
from tests.golden.cards import CARDS, csv_of
from tests.golden.served import reach, reach_engines
from tests.golden.text import compact, digest, shortened

Json = dict[str, Any]
TEXT_MAX = 1000
TYPES = {"integer": "BIGINT", "number": "DOUBLE", "category": "VARCHAR", "boolean": "BOOLEAN"}
TYPES |= {"date": "DATE", "text": "VARCHAR"}
PRIVACY = {"epsilon": "1", "delta": "1e-6"}
RANKS: dict[str, Json] = {
    "smooth": {"kind": "smooth_sensitivity"},
    "proposed": {"kind": "propose_test_release", "bound": 25.5},
    "withheld": {"kind": "propose_test_release"},
}
DESCENT: Json = {"kind": "noisy_gradient_descent", "steps": 3}
MEASURED = queries.SUMS | queries.CHOICES | queries.KEYS | queries.BLOCKS
MEASURED |= {"keys": {"kind": "keys", "column": "note"}}
OF_PERSONS = (
    *("count", "persons", "persons by city", "sum per person", "sum per person by city"),
    *("mean per person", "mean of blocks", "votes of blocks", "blocks of regression"),
)


def all_questions() -> Iterator[tuple[str, str, Json, Json | None]]:
    """A name, a card, a query and a mechanism."""
    for name, query in (MEASURED | queries.DERIVED).items():
        yield name, "people", query, None
    for name, query in queries.RANKS.items():
        for way, mechanism in RANKS.items():
            card = "fixed" if name == "trimmed mean" else "people"
            yield f"{name}, {way}", card, query, mechanism
    for name, query in queries.LEARNED.items():
        yield f"{name}, learned", "people", query, DESCENT
    for name, query in queries.REPORTED.items():
        yield name, "fixed", query, None
    for name, query in queries.GRAPHS.items():
        yield name, "graph", query, None
    for name in OF_PERSONS:
        yield f"{name}, of visits", "visits", MEASURED[name], None
    yield "keys, of visits", "visits", {"kind": "keys", "column": "note"}, None


class Recorder:
    """A DuckDB connection that records its statements."""

    kept: list[reach_engines.Bound] = []  # noqa: RUF012 - of all connections of the process

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def cursor(self) -> "Recorder":
        return Recorder(self._connection.cursor())

    def execute(self, text: str, parameters: Any = None) -> Any:
        Recorder.kept.append(reach_engines.Bound(text, parameters or []))
        return self._connection.execute(text, parameters)

    @classmethod
    def taken(cls) -> list[reach_engines.Bound]:
        taken, cls.kept = cls.kept, []
        return taken


@contextmanager
def recorded() -> Iterator[None]:
    real = duckdb.connect
    with patch.object(duckdb, "connect", lambda *a, **options: Recorder(real(*a, **options))):
        yield


def statements() -> str:
    with tempfile.TemporaryDirectory() as folder, recorded():
        items = dict(_all(Path(folder).resolve()))
    return "\n".join(_section(title, items[title]) for title in sorted(items))


def _section(title: str, item: Json) -> str:
    lines = [f"{dialect}: {line}" for dialect, written in item.items() for line in written]
    return "\n".join([f"# {title}", *lines, ""])


def _all(folder: Path) -> Iterator[tuple[str, Json]]:
    home, data = folder / "home", folder / "data"
    data.mkdir()
    engine, datasets = reach_engines.files_engine(home, data), {}
    for name, body in CARDS.items():
        (data / f"{name}.csv").write_text(csv_of(name))
        appended = ["later.csv"] if name == "by_arrival" else []
        (data / "later.csv").write_text(csv_of(name, epoch=2))
        datasets[name] = reach_engines.registered(engine, body, f"{name}.csv", *appended)
        yield f"sources: {name}", _source(name, body, datasets[name], folder)
    for title, card, query, mechanism in all_questions():
        body = {"dataset": card, "query": query, "privacy": PRIVACY, "mechanism": mechanism}
        plan = reach.planned(body, reach.card_of(CARDS[card]))
        fixed.begin(title)
        Recorder.taken()
        answer, read = reach_engines.answered(plan, engine, datasets[card], asker=title)
        item = {
            "duckdb": _written(Recorder.taken(), folder),
            **_elsewhere(card, datasets[card], read),
        }
        yield title, item | {"answer": [_short(compact(answer))]}
    where = {"kind": "count", "where": queries.BERN}
    count = {"dataset": "people", "query": where, "privacy": PRIVACY}
    read = [
        ("epochs", reach_engines.filter_of(reach.planned(count, reach.card_of(CARDS["people"]))))
    ]
    for card in ("people", "by_arrival"):
        reach_engines.read_as(engine, datasets[card], *read[0])
        item = {
            "duckdb": _written(Recorder.taken(), folder),
            **_elsewhere(card, datasets[card], read),
        }
        yield f"epochs of {card}", item


def _source(name: str, body: Json, dataset: Any, folder: Path) -> Json:
    """The statements that register and clean rows; a database cleans them within each question."""
    count = {"dataset": name, "query": {"kind": "count"}, "privacy": PRIVACY}
    read = [("exact", reach_engines.tally_of(reach.planned(count, reach.card_of(body))))]
    item: Json = {"duckdb": _written(Recorder.taken(), folder)}
    for dialect in reach_engines.DIALECTS:
        engine = _database(name, dialect, plain=False)
        bound = [*engine.looked_at(reach.card_of(body)), *engine.read(dataset, read)]
        item[dialect] = _written(bound, folder)
    return item


def _elsewhere(card: str, dataset: Any, read: list[reach_engines.Wanted]) -> Json:
    engines = {each: _database(card, each, plain=True) for each in reach_engines.DIALECTS}
    return {each: _written(engine.read(dataset, read)) for each, engine in engines.items()}


def _database(card: str, dialect: str, *, plain: bool) -> reach_engines.DatabaseEngine:
    columns = [each for each in CARDS[card]["columns"] if each["type"] in TYPES]
    types = {"person": "VARCHAR"} if card != "graph" else {}
    types |= {each["name"]: TYPES[each["type"]] for each in columns if "derived" not in each}
    if "spent" in types:
        types["spent"] = "DECIMAL(9,2)"
    return reach_engines.DatabaseEngine(reach_engines.DIALECTS[dialect], types, plain=plain)


def _written(bound: list[reach_engines.Bound], folder: Path | None = None) -> list[str]:
    made = []
    for statement in bound:
        text = " ".join(statement.text.split())
        made.append(_short(text if folder is None else text.replace(str(folder), "FOLDER")))
        if statement.parameters:
            made.append(f"  with {compact(_plain(statement.parameters, folder))}")
    return made


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]} ... digest {digest(text)}"


def _plain(value: Any, folder: Path | None) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each, folder) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return shortened(_plain(each, folder) for each in value)
    if isinstance(value, str) and folder is not None:
        return value.replace(str(folder), "FOLDER")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.isoformat() if isinstance(value, datetime.date) else value
