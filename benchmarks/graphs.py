"""Triangles of graphs of a million edges: from the query to the noisy answer.

`even` has edges uniformly at random. In `skewed` a few nodes have most edges. In `close` each node
has about a hundred neighbours and pairs share few. `dense` has half of all pairs. Nothing is cached
between tries. The ceiling is the allowed minute.
"""

import time
from collections.abc import Iterator
from functools import partial
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

EDGES = 1_000_000
LIMIT_SECONDS = 60.0
TRIES = 3
_UNIT = "(hash(2 * i + {}) / 18446744073709551616.0)"
# Number of nodes, and the expression of a node from a number between 0 and 1.
GRAPHS = {
    "even": (100_000, "floor(100000 * {})"),
    "skewed": (1_000_000, "floor(1000000 * pow({}, 4))"),
    "close": (20_000, "floor(20000 * {})"),
    "dense": (2_000, "floor(2000 * {})"),
}


def measure(folder: Path) -> Iterator[Row]:
    for name, (nodes, node) in GRAPHS.items():
        card = Card.model_validate(
            {
                "person": {"kind": "edge", "ends": ["a", "b"]},
                "neighbours": "add_remove",
                "columns": [
                    {"name": end, "type": "integer", "low": 0, "high": nodes - 1}
                    for end in ("a", "b")
                ],
            }
        )
        with prepared(folder / name, card, partial(_write, node=node)) as bench:
            yield _row(f"triangles of a million edges, {name}", bench)


def _row(name: str, bench: Bench) -> Row:
    spent = []
    for number in range(TRIES):
        privacy = {"epsilon": "1", "delta": "1e-6"}
        body = {"dataset": "x", "query": {"kind": "triangles"}, "privacy": privacy}
        begin = time.perf_counter()
        plan = make_plan(Question.model_validate(body), bench.dataset.card)
        with EngineData(bench.engine, bench.dataset, f"bench {number}") as data:
            plan.answer(plan.release.read(data), SystemRandom())
        spent.append(time.perf_counter() - begin)
    typical = median(spent)
    return Row(name, typical, "s", LIMIT_SECONDS, typical / LIMIT_SECONDS, 1.0, at_most=True)


def _write(path: Path, node: str) -> None:
    """Draw twice the needed edges: repeated edges and loops are dropped."""
    ends = [f"CAST({node.format(_UNIT.format(k))} AS BIGINT)" for k in (0, 1)]
    text = (
        f"SELECT DISTINCT least(a, b) AS a, greatest(a, b) AS b "
        f"FROM (SELECT {ends[0]} AS a, {ends[1]} AS b FROM range({2 * EDGES}) AS t(i)) "
        f"WHERE a <> b LIMIT {EDGES}"
    )
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({text}) TO '{path}' (FORMAT parquet)")
