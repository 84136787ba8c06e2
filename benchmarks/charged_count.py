"""A charged, durable count at 1, 16 and 64 clients, against the bare endpoint of the same body.

`repeated` asks one body again and again (`fresh`, so each is charged and drawn anew): the exact
count is at hand in the engine's memo after the first, and then charge and answer are one commit.
`varied` turns through 400 bodies with other filters and epsilons. `cold` asks a filter never asked
before, so that DuckDB counts every time, and charge and answer are two commits. One client waits
for each commit: what the barest ones alone, which flush one page or change one row, would leave of
the bare endpoint's rate is told beside it.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.servers import TOP, bare, bursar
from benchmarks.table import Row

ROUNDS = 3
PAGE, COMMITS = 4096, 200
SECONDS = 2.0
GOALS = {
    ("sqlite", 1): 0.40,
    ("sqlite", 64): 0.70,
    ("postgresql", 1): 0.40,
    ("postgresql", 64): 0.80,
}


def question(age: float, epsilon: float) -> str:
    return json.dumps(
        {
            "dataset": "census",
            "query": {
                "kind": "count",
                "where": {"all": [{"column": "age", "op": ">=", "value": age}]},
            },
            "privacy": {"epsilon": epsilon},
            "fresh": True,
        }
    )


BODIES = {
    "repeated": [question(65, 0.001)],
    "varied": [question(a, e / 10_000) for a in range(20, 60) for e in range(1, 11)],
    "cold": [question(i / 1000, 0.001) for i in range(100_000)],
}


def load(port: int, path: str, key: str, clients: int, bodies: list[str], run: str) -> Any:
    job = {
        "host": "127.0.0.1",
        "port": port,
        "method": "POST",
        "path": path,
        "key": key,
        "clients": clients,
        "bodies": bodies,
        "seconds": SECONDS,
        "run": run,
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        cwd=TOP,
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def flush_seconds(folder: Path) -> float:
    """What the disk takes to make one page durable, now."""
    times = []
    with (folder / "flushed").open("wb", buffering=0) as file:
        file.write(bytes(PAGE * COMMITS))
        os.fsync(file.fileno())
        for place in range(COMMITS):
            file.seek(place * PAGE)
            file.write(b"x" * PAGE)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def update_seconds(database_url: str) -> float:
    """What PostgreSQL takes to change one row durably, now."""
    times = []
    with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (id integer PRIMARY KEY, n integer)")
        connection.execute("INSERT INTO bare VALUES (1, 0) ON CONFLICT DO NOTHING")
        for number in range(COMMITS):
            begin = time.perf_counter()
            connection.execute("UPDATE bare SET n = %s WHERE id = 1", (number,))
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(store: str, home: Path, database_url: str | None) -> Iterator[Row]:
    with bare() as bare_port, bursar(home, database_url) as server:
        load(server.port, "/v1/queries", server.key, 8, BODIES["varied"], "warm")
        load(bare_port, "/bare", "-", 8, BODIES["varied"], "warm")
        for clients in (1, 16, 64):
            for name in ("repeated", "varied", "cold"):
                bodies = BODIES[name]
                if name == "cold":  # every round has filters of its own
                    bodies = [question(clients + i / 100_000, 0.001) for i in range(90_000)]
                ratios, rates, tails = [], [], []
                for number in range(ROUNDS):
                    share = len(bodies) // ROUNDS if name == "cold" else len(bodies)
                    part = bodies[number * share :][:share] if name == "cold" else bodies
                    ceiling = load(bare_port, "/bare", "-", clients, part, "bare")
                    run = f"{name}-{clients}-{number}"
                    got = load(server.port, "/v1/queries", server.key, clients, part, run)
                    ratios.append(got["per_second"] / ceiling["per_second"])
                    rates.append((got["per_second"], ceiling["per_second"]))
                    tails.append(got["p99_ms"] / got["p50_ms"])
                middle = ratios.index(statistics.median_low(ratios))
                note = f"p99/p50 {tails[middle]:.1f}"
                if clients == 1:
                    barest = update_seconds(database_url) if database_url else flush_seconds(home)
                    commits = 2 if name == "cold" else 1
                    alone = 1 / (1 + commits * barest * rates[middle][1])
                    note += f"; the barest commits alone would leave {alone:.2f}"
                yield Row(
                    name=f"charged count, {store}, {clients} clients, {name}",
                    value=rates[middle][0],
                    unit="per second",
                    ceiling=rates[middle][1],
                    ratio=ratios[middle],
                    goal=GOALS.get((store, clients)) if name == "repeated" else None,
                    note=note,
                )
