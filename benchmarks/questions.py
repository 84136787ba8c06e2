"""Cost of planning and noise for a query, beyond its engine and its sampler, without a server.

Every query is new: another filter and another epsilon, so that nothing is cached. Plan, exact
result, noise and the answer's text are measured. The ceiling is the same statement on a bare DuckDB
cursor in the same turn. The goal is on the difference: 2 ms for scalars, 1 s for 10^5 groups. The
time of the bare sampler for the same number of draws is noted beside it.
"""

import json
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import opendp.prelude as dp

from app.data.card import Card
from app.demo import census
from app.demo.cards import CENSUS
from app.engines.sql.layout import Layout
from app.engines.sql.tally_statement import render
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import Plan, make_plan
from app.planning.request import Question
from benchmarks.harness.prepared import Bench, card_of, prepared
from benchmarks.harness.table import Row

SCALAR_MS, GROUPS_MS = 2.0, 1000.0
SCALARS: dict[str, tuple[dict[str, Any], str, int]] = {  # query, currency, number of draws
    "count": ({"kind": "count"}, "pure", 1),
    "count, renyi": ({"kind": "count"}, "renyi", 1),
    "sum": ({"kind": "sum", "column": "income"}, "pure", 1),
    "mean": ({"kind": "mean", "column": "income"}, "pure", 2),
    "mean, gaussian": ({"kind": "mean", "column": "income"}, "approximate", 2),
    "variance": ({"kind": "variance", "column": "income"}, "pure", 3),
    "sum of whole numbers, with delta": ({"kind": "sum", "column": "age"}, "approximate", 1),
    "mean, renyi": ({"kind": "mean", "column": "income"}, "renyi", 2),
    "mean, gdp": ({"kind": "mean", "column": "income"}, "gdp", 2),
    "mode by rho": ({"kind": "mode", "column": "region"}, "zcdp", 1),
    "median, renyi": ({"kind": "median", "column": "age"}, "renyi", 1),
}
_NUMBERS = count(1)  # no epsilon and no filter repeats
GROUPS = 100_000
GROUP_ROWS = 300_000


def measure(folder: Path) -> Iterator[Row]:
    with prepared(folder / "scalars", card_of(CENSUS), census.write) as bench:
        for name, (query, currency, draws) in SCALARS.items():
            yield _row(f"a new {name}", bench, query, currency, draws, 60, SCALAR_MS)
    names = [f"g{i:06d}" for i in range(GROUPS)]
    columns = [{"name": "group", "type": "category", "values": names}]
    card = Card.model_validate(
        {"person": {"kind": "row"}, "neighbours": "add_remove", "columns": columns}
    )
    with prepared(folder / "groups", card, _write_groups) as bench:
        query = {"kind": "histogram", "column": "group"}
        for name, currency in (("", "pure"), (", gaussian", "zcdp")):
            called = f"a histogram of 10^5 groups{name}"
            yield _row(called, bench, query, currency, GROUPS, 5, GROUPS_MS)


def _row(
    name: str,
    bench: Bench,
    query: dict[str, Any],
    currency: str,
    draws: int,
    rounds: int,
    limit_ms: float,
) -> Row:
    whole, engine, sampler = [], [], []
    for number in islice(_NUMBERS, rounds):
        question = _question(query, currency, number)
        begin = time.perf_counter()
        plan = make_plan(question, bench.dataset.card, frozenset({currency}))
        exact = bench.engine.exact(bench.dataset, plan.release.tally, "bench")
        json.dumps(plan.answer(exact, SystemRandom()), separators=(",", ":"))
        whole.append(time.perf_counter() - begin)
        engine.append(_bare_engine(bench, plan))
        sampler.append(_bare_sampler(draws))
    spent, bare = 1e6 * median(whole), 1e6 * median(engine)
    over = (spent - bare) / 1000.0
    note = f"({over:.2f} ms of {limit_ms:.0f} over it; bare sampler {1e3 * median(sampler):.2f} ms)"
    return Row(name, spent, "us", bare, over / limit_ms, 1.0, note, at_most=True)


def _question(query: dict[str, Any], currency: str, number: int) -> Question:
    body = dict(query)
    if query["kind"] != "histogram":
        body["where"] = {"column": "age", "op": ">=", "value": 20 + number / 7}
    privacy = {"epsilon": f"0.1{number:06d}1"}
    if currency == "approximate":
        privacy["delta"] = "1e-7"
    if currency == "zcdp":
        privacy = {"rho": f"0.1{number:06d}1"}
    return Question.model_validate({"dataset": "x", "query": body, "privacy": privacy})


def _bare_engine(bench: Bench, plan: Plan) -> float:
    rendered = render(Layout(bench.dataset.card), plan.release.tally)
    begin = time.perf_counter()
    bench.cursor.execute(rendered.statement.text, rendered.statement.parameters).fetchall()
    return time.perf_counter() - begin


def _bare_sampler(draws: int) -> float:
    atom = dp.atom_domain(T="i64")
    space = dp.vector_domain(atom), dp.l1_distance(T="i64")
    release = dp.m.make_laplace(*space, scale=10.0)
    zeros = [0] * draws
    begin = time.perf_counter()
    release(zeros)
    return time.perf_counter() - begin


def _write_groups(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT format('g{:06d}', CAST(i * 7919 % ? AS INTEGER)) AS \"group\" "
            "FROM range(?) AS t(i)) TO '" + str(path) + "' (FORMAT parquet)",
            [GROUPS, GROUP_ROWS],
        )
