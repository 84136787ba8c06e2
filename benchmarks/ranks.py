"""Medians by smooth sensitivity: from the query to the noisy answer.

For ten million rows the ceiling is the engine's own exact median of the same column,
`quantile_disc`, in the same turn on the same file. The goal is at most 1.5 times as long. Turns
alternate, so that both meet the same load. Nothing is cached: the engine counts the steps each
time. For 30,000 rows the time is that of all but reading: plan, bound and noise.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

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
FEW_ROWS = 30_000
OVER_ENGINE_MS = 5.0
TRIES = 7
SHARES = {"median": "0.5", "iqr": "[0.25, 0.75]"}  # quantiles of each kind


def measure(folder: Path) -> Iterator[Row]:
    columns = [{"name": "income", "type": "number", "low": 0, "high": 1_000_000}]
    card = Card.model_validate(
        {"person": {"kind": "row"}, "neighbours": "add_remove", "columns": columns}
    )
    with prepared(folder / "ranks", card, lambda path: _write(path, ROWS)) as bench:
        for kind, shares in SHARES.items():
            yield _row(bench, kind, shares)
    with prepared(folder / "few", card, lambda path: _write(path, FEW_ROWS)) as bench:
        for epsilon in ("0.05", "0.01"):
            yield _over_engine(bench, epsilon)


def _over_engine(bench: Bench, epsilon: str) -> Row:
    over = []
    for number in range(3 * TRIES):
        begin = time.perf_counter()
        plan = make_plan(_question("median", f"{epsilon}{number:03d}1"), *_terms(bench))
        planned = time.perf_counter()
        with EngineData(bench.engine, bench.dataset, "bench") as data:
            exact = plan.release.read(data)
        read = time.perf_counter()
        plan.answer(exact, SystemRandom())
        over.append(planned - begin + time.perf_counter() - read)
    spent = 1000 * median(over)
    name = f"a smooth median of 30,000 rows, epsilon {epsilon}, beside its engine"
    return Row(name, spent, "ms", OVER_ENGINE_MS, spent / OVER_ENGINE_MS, 1.0, at_most=True)


def _question(kind: str, epsilon: str) -> Question:
    return Question.model_validate(
        {
            "dataset": "x",
            "query": {"kind": kind, "column": "income"},
            "privacy": {"epsilon": epsilon},
            "mechanism": {"kind": "smooth_sensitivity"},
        }
    )


def _terms(bench: Bench) -> tuple[Card, frozenset[str]]:
    return bench.dataset.card, frozenset({"pure"})


def _row(bench: Bench, kind: str, shares: str) -> Row:
    whole, bare = [], []
    for number in range(TRIES):
        begin = time.perf_counter()
        plan = make_plan(_question(kind, f"0.5{number:03d}1"), *_terms(bench))
        with EngineData(bench.engine, bench.dataset, "bench") as data:
            plan.answer(plan.release.read(data), SystemRandom())
        whole.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        bench.cursor.execute(f"SELECT quantile_disc(s0, {shares}) FROM rows").fetchall()
        bare.append(time.perf_counter() - begin)
    spent, exact = 1000 * median(whole), 1000 * median(bare)
    name = f"a smooth {kind} of ten million rows"
    return Row(name, spent, "ms", exact, spent / exact, LIMIT, at_most=True)


def _write(path: Path, rows: int) -> None:
    """Write a skewed column, like real incomes."""
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT exp(4 + 8 * (hash(i) / 18446744073709551616.0)) AS income "
            "FROM range(?) AS t(i)) TO '" + str(path) + "' (FORMAT parquet)",
            [rows],
        )
