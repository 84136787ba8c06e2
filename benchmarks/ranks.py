"""The median of ten million rows by smooth sensitivity: from the query to the noisy answer.

The ceiling is the engine's own exact median of the same column, `quantile_disc`, in the same turn
on the same file. The goal is at most 1.5 times as long. Turns alternate, so that both meet the same
load. Nothing is cached between them: the engine counts the steps each time.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from app.actions.asking.engine_data import EngineData
from app.data.card import Card
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Question
from benchmarks.harness.prepared import Bench, prepared
from benchmarks.harness.table import Row

ROWS = 10_000_000
LIMIT = 1.5
TRIES = 7
QUERIES: dict[str, tuple[dict[str, Any], str]] = {  # the query, and its quantile shares
    "median": ({"kind": "median", "column": "income"}, "0.5"),
    "iqr": ({"kind": "iqr", "column": "income"}, "[0.25, 0.75]"),
}


def measure(folder: Path) -> Iterator[Row]:
    columns = [{"name": "income", "type": "number", "low": 0, "high": 1_000_000}]
    card = Card.model_validate(
        {"person": {"kind": "row"}, "neighbours": "add_remove", "columns": columns}
    )
    with prepared(folder / "ranks", card, _write) as bench:
        for name, (query, shares) in QUERIES.items():
            yield _row(f"a smooth {name} of ten million rows", bench, query, shares)


def _row(name: str, bench: Bench, query: dict[str, Any], shares: str) -> Row:
    whole, bare = [], []
    for number in range(TRIES):
        begin = time.perf_counter()
        question = Question.model_validate(
            {
                "dataset": "x",
                "query": query,
                "privacy": {"epsilon": f"0.5{number:03d}1"},
                "mechanism": {"kind": "smooth_sensitivity"},
            }
        )
        plan = make_plan(question, bench.dataset.card, frozenset({"pure"}))
        with EngineData(bench.engine, bench.dataset, "bench") as data:
            plan.answer(plan.release.read(data), SystemRandom())
        whole.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        bench.cursor.execute(f"SELECT quantile_disc(s0, {shares}) FROM rows").fetchall()
        bare.append(time.perf_counter() - begin)
    spent, exact = 1000 * median(whole), 1000 * median(bare)
    return Row(name, spent, "ms", exact, spent / exact, LIMIT, at_most=True)


def _write(path: Path) -> None:
    """Write a skewed column, like real incomes."""
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT exp(4 + 8 * (hash(i) / 18446744073709551616.0)) AS income "
            "FROM range(?) AS t(i)) TO '" + str(path) + "' (FORMAT parquet)",
            [ROWS],
        )
