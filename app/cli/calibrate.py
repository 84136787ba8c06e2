"""Measure how much slower this machine is than the one on which slots were measured.

Queries of several kinds are answered on synthetic rows. The factor is the largest share of a slot,
without its margin, that a query takes, and at least one.
"""

import csv
import json
import tempfile
import time
from pathlib import Path

from app.actions.asking.engine_data import EngineData
from app.data.card import Card, Dataset, Source, Version
from app.data.sample_rows import sample_rows
from app.engines.files.duckdb import DuckDBEngine
from app.mechanisms.sampling.system import SystemRandom
from app.planning.duration import MARGIN, slot_seconds
from app.planning.plan import make_plan
from app.planning.request import Question

ROWS = 10_000
ROUNDS = 5
CARD = {
    "person": {"kind": "row"},
    "neighbours": "add_remove",
    "size": ROWS,
    "columns": [
        {"name": "age", "type": "integer", "low": 0, "high": 120},
        {"name": "income", "type": "number", "low": 0, "high": 200_000},
        {"name": "member", "type": "boolean"},
    ],
}
QUESTIONS = (
    {"query": {"kind": "count"}, "privacy": {"epsilon": 1}},
    {"query": {"kind": "variance", "column": "income"}, "privacy": {"epsilon": 1}},
    {"query": {"kind": "median", "column": "income"}, "privacy": {"epsilon": 1}},
    {
        "query": {"kind": "median", "column": "income"},
        "privacy": {"epsilon": 1},
        "mechanism": {"kind": "smooth_sensitivity"},
    },
    {
        "query": {"kind": "logistic_regression", "outcome": "member", "features": ["age"]},
        "privacy": {"rho": 1},
    },
)


def measured_factor() -> float:
    with tempfile.TemporaryDirectory() as folder:
        engine, dataset = _prepared(Path(folder))
        try:
            return max(1.0, *(_share(engine, dataset, question) for question in QUESTIONS))
        finally:
            engine.close()


def _prepared(folder: Path) -> tuple[DuckDBEngine, Dataset]:
    card = Card.model_validate_json(json.dumps(CARD))
    rows = sample_rows(card, ROWS, SystemRandom())
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        written = csv.DictWriter(file, [column.name for column in card.columns])
        written.writeheader()
        written.writerows(rows)
    engine = DuckDBEngine(home=folder / "home", data_roots=(folder,))
    source = Source("duckdb", "rows.csv")
    version = Version("v_made_up", 1, engine.inspect(source, card).digest, "seed")
    dataset = Dataset("d_made_up", "made up", "", "b_made_up", card, source, version, False, 0)
    engine.prepare(dataset)
    return engine, dataset


def _share(engine: DuckDBEngine, dataset: Dataset, question: dict[str, object]) -> float:
    """Share of the slot, without its margin, that the work takes: the median of several rounds."""
    body = json.dumps({"dataset": "made up", **question})
    plan = make_plan(Question.model_validate_json(body), dataset.card)
    taken = []
    for number in range(ROUNDS + 1):
        begin = time.perf_counter()
        with EngineData(engine, dataset, f"round {number}") as data:
            plan.answer(plan.release.read(data), SystemRandom())
        taken.append(time.perf_counter() - begin)
    slot = slot_seconds(plan.release.work, dataset.card, "duckdb")
    return sorted(taken[1:])[ROUNDS // 2] / (slot / MARGIN)
