"""A charged query on one, ten and a hundred million rows, against the bare DuckDB statement.

A real server on SQLite registers a synthetic file and is queried over HTTP: plan, charge, scan,
noise, stored answer. Every query has a new filter, so that no result is cached. The ceiling is the
statement that an analyst with the same file would write. It runs in this process on the same
prepared version, with the same threads and memory (more for the exact median, which needs it).
Turns alternate, so that both meet the same load. The goals are for a hundred million rows; the
other sizes show how the cost grows.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from app.engines.files.connect import Limits, connect_to_ask
from benchmarks import bounding, compiling
from benchmarks.harness.made_up import CARD, write
from benchmarks.harness.servers import TOP, Bursar, served
from benchmarks.harness.table import Row

SIZES = (1_000_000, 10_000_000, 100_000_000)
GOALS_AT = 100_000_000
MEMORY, THREADS = "1GB", 2
MEMORY_BYTES = 1_000_000_000
MEDIAN_MEMORY = "4GB"  # for the bare median: it holds all values, and in 1 GB fails on 100M rows
ROUNDS = 15
# The query, the bare statement, and the largest allowed ratio of their times.
QUESTIONS: dict[str, tuple[dict[str, Any], str, float]] = {
    "count": ({"kind": "count"}, "SELECT count(*) FROM rows WHERE c0 > ?", 1.1),
    "histogram": (
        {"kind": "histogram", "column": "region"},
        "SELECT c2, count(*) FROM rows WHERE c0 > ? GROUP BY c2",
        1.1,
    ),
    "sum": (
        {"kind": "sum", "column": "income"},
        "SELECT sum(c1) FROM rows WHERE c0 > ?",
        1.2,
    ),
    "median": (
        {"kind": "median", "column": "income"},
        "SELECT median(c1) FROM rows WHERE c0 > ?",
        0.5,
    ),
}
AGE = 40
_NUMBERS = count(1)  # no filter repeats


def measure(sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    yield from compiling.measure({name: query for name, (query, _, _) in QUESTIONS.items()})
    build = TOP / "build"
    build.mkdir(exist_ok=True)
    bounded = min(max(sizes), bounding.ROWS_MAX)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        yield from bounding.measure(Path(folder), bounded)
    for rows in sizes:
        # On the checkout's disk: a temporary folder may be in memory, which this file would fill.
        with tempfile.TemporaryDirectory(dir=build) as folder:
            yield from _at(rows, Path(folder) / "home")


def _at(rows: int, home: Path) -> Iterator[Row]:
    size = f"{rows // 1_000_000}M rows"
    (home / "data").mkdir(parents=True)
    file = home / "data" / "people.parquet"
    write(file, rows)
    settings = {"BURSAR_ENGINE_MEMORY": MEMORY, "BURSAR_ENGINE_THREADS": str(THREADS)}
    with served(home, None, **settings) as (server, process_id):
        base = _resident(process_id, "VmRSS")
        begin = time.perf_counter()
        server.open(CARD)
        spent = time.perf_counter() - begin
        (version,) = (home / "versions").glob("*.duckdb")
        megabytes = version.stat().st_size / 1e6
        note = f"({file.stat().st_size / 1e6:.0f} MB of Parquet, {megabytes:.0f} MB prepared)"
        yield _registered(f"registering {size}", rows, spent, note)
        yield _memory(f"memory while registering {size}", process_id, base)
        _forget_peak(process_id)
        for name, (query, statement, goal) in QUESTIONS.items():
            limits = Limits(home, MEDIAN_MEMORY if name == "median" else MEMORY, THREADS)
            with connect_to_ask(version, limits) as bare:
                called = f"charged {name}, {size}"
                yield _asked(called, rows, server, bare, query, statement, goal)
        yield _memory(f"memory while asked, {size}", process_id, base)


def _asked(
    name: str,
    rows: int,
    server: Bursar,
    bare: duckdb.DuckDBPyConnection,
    query: dict[str, Any],
    statement: str,
    goal: float,
) -> Row:
    whole, engine = [], []
    for turn in range(ROUNDS + 2):
        where = {"column": "age", "op": ">", "value": AGE + next(_NUMBERS) / 10_000}
        question = {
            "dataset": "people",
            "query": {**query, "where": where},
            "privacy": {"epsilon": "0.01"},
            "fresh": True,
        }
        server.connect()
        begin = time.perf_counter()
        server.ask(question)
        middle = time.perf_counter()
        bare.execute(statement, [AGE]).fetchall()
        end = time.perf_counter()
        if turn >= 2:  # the first turns warm both up
            whole.append(middle - begin)
            engine.append(end - middle)
    spent, alone = 1000 * median(whole), 1000 * median(engine)
    note = f"({1e6 * spent / rows:.2f} and {1e6 * alone / rows:.2f} ns a row)"
    goal_here = goal if rows == GOALS_AT else None
    return Row(name, spent, "ms", alone, spent / alone, goal_here, note, at_most=True)


def _registered(name: str, rows: int, spent: float, note: str) -> Row:
    return Row(name, rows / spent, "rows/s", rows / spent, 1.0, None, f"{spent:.1f} s {note}")


def _memory(name: str, process_id: int, base: float) -> Row:
    """Peak memory of the server, against its size at the start plus the engine's limit."""
    peak, limit = _resident(process_id, "VmHWM"), base + MEMORY_BYTES
    note = f"({base / 1e6:.0f} of them its own before any data)"
    return Row(name, peak / 1e6, "MB", limit / 1e6, peak / limit, 1.0, note, at_most=True)


def _resident(process_id: int, name: str) -> float:
    """A memory figure of a process in bytes, from Linux."""
    for line in Path(f"/proc/{process_id}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return 1024.0 * int(line.split()[1])
    raise SystemExit("the server is gone")


def _forget_peak(process_id: int) -> None:
    descriptor = os.open(f"/proc/{process_id}/clear_refs", os.O_WRONLY)
    try:
        os.write(descriptor, b"5")
    finally:
        os.close(descriptor)
