"""A charged, durable count at 1, 16 and 64 clients, against the bare endpoint with the same body.

`repeated` sends one body again and again (`fresh`, so each is charged and drawn again). After the
first, the exact count is cached in the engine, and charge and answer are one commit. `varied` uses
400 bodies with other filters and epsilons. `cold` uses a new filter each time, so that DuckDB
counts every time, and charge and answer are two commits. A single client waits for each commit, so
the rate of the barest charge is measured too (`barest.py`).
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.harness.barest import barest
from benchmarks.harness.servers import TOP, bare, bursar
from benchmarks.harness.table import Row

ROUNDS = 3
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
        [sys.executable, "-m", "benchmarks.harness.load"],
        cwd=TOP,
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def measure_barest(store: str, bare_port: int, where: str) -> Row:
    """Measure the barest charge, after everything else: its writes load the store."""
    bodies, rates = BODIES["repeated"], []
    with barest(where) as port:
        load(port, "/bare", "-", 1, bodies, "warm")
        for _ in range(ROUNDS):
            ceiling = load(bare_port, "/bare", "-", 1, bodies, "bare")["per_second"]
            rate = load(port, "/bare", "-", 1, bodies, "barest")["per_second"]
            rates.append((rate / ceiling, rate, ceiling))
    ratio, rate, ceiling = statistics.median_low(rates)
    return Row(
        name=f"the barest charge, {store}, 1 client",
        value=rate,
        unit="per second",
        ceiling=ceiling,
        ratio=ratio,
        goal=None,
        note="for comparison: it keeps none of the promises",
    )


def measure_slots(home: Path) -> Iterator[Row]:
    """Rates for new filters with the default time grid and with none, alternating."""
    with (
        bursar(home / "off", None) as off,
        bursar(home / "on", None, BURSAR_RELEASE_GRID_MS="100") as on,
    ):
        numbers = count()
        rates: list[tuple[float, float, float]] = []
        for turn in range(ROUNDS):
            pair = []
            for server in (off, on):
                bodies = [question(next(numbers) / 1_000_000, 0.001) for _ in range(20_000)]
                run = f"slots-{turn}"
                load(server.port, "/v1/queries", server.key, 64, bodies[:500], f"warm-{run}")
                got = load(server.port, "/v1/queries", server.key, 64, bodies[500:], run)
                pair.append(got["per_second"])
            rates.append((pair[1] / pair[0], pair[1], pair[0]))
        ratio, rate, ceiling = statistics.median_low(rates)
        name = "new filters with slots, 64 clients"
        yield Row(f"{name}, against no grid", rate, "per second", ceiling, ratio, None)
        # Each client waits for at least one step of the grid.
        most = 64 / 0.1
        yield Row(f"{name}, against the grid", rate, "per second", most, rate / most, 0.9)
        bodies = [question(next(numbers) / 1_000_000, 0.001) for _ in range(500)]
        alone = load(on.port, "/v1/queries", on.key, 1, bodies, "alone")["p50_ms"]
        yield Row(
            "a plain count with slots, 1 client", alone, "ms", 100.0, alone / 100, 1.2, at_most=True
        )


def measure(store: str, home: Path, database_url: str | None) -> Iterator[Row]:
    with bare() as bare_port, bursar(home, database_url) as server:
        load(server.port, "/v1/queries", server.key, 8, BODIES["varied"], "warm")
        load(bare_port, "/bare", "-", 8, BODIES["varied"], "warm")
        for clients in (1, 16, 64):
            for name in ("repeated", "varied", "cold"):
                bodies = BODIES[name]
                if name == "cold":  # every round has its own filters
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
                yield Row(
                    name=f"charged count, {store}, {clients} clients, {name}",
                    value=rates[middle][0],
                    unit="per second",
                    ceiling=rates[middle][1],
                    ratio=ratios[middle],
                    goal=GOALS.get((store, clients)) if name == "repeated" else None,
                    note=note,
                )
        where = str(home / "barest.db") if database_url is None else database_url
        yield measure_barest(store, bare_port, where.replace("+psycopg", ""))
