"""One caller beside all others: the largest single requests, and one analyst at full speed.

The largest allowed requests are sent one at a time to one server with the default time grid.
Meanwhile another caller polls /healthz, and the server's memory is recorded. Then one analyst sends
workloads over 64 connections while another sends simple counts. The ceilings are limits: half a
second, a gigabyte, one second.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from app.demo import census
from app.demo.cards import CENSUS
from benchmarks.harness.servers import Bursar, served
from benchmarks.harness.table import Row

MOST = 100_000  # candidates, bins or groups in one query
BODY_BYTES = 4_000_000
BUSY_CLIENTS = 64
BUSY_SECONDS = 10.0
HEALTH_MS, MEMORY_MB, COUNT_MS = 500.0, 1000.0, 1000.0
POLL_SECONDS = 0.005
Json = dict[str, Any]


def largest_requests() -> Iterator[tuple[str, str, bytes]]:
    """Name, path and body of each request."""
    (income,) = (column for column in CENSUS["columns"] if column["name"] == "income")
    low, high = income["low"], income["high"]
    grid = {"low": low, "high": high, "count": MOST}
    edges = [low + (high - low) * i / MOST for i in range(MOST)] + [high]
    groups = ["region", "sex", {"column": "income", "edges": edges[:: MOST // 5000]}]
    chosen = {"kind": "median", "column": "income", "candidates": grid}
    bodies = {
        "candidates": question(chosen),
        "bins": question({"kind": "histogram", "column": "income", "edges": edges}),
        "groups": question({"kind": "mean", "column": "hours", "group_by": groups}),
    }
    for name, body in bodies.items():
        yield name, "/v1/queries", json.dumps(body).encode()
    listed = [question(chosen, 0.001 * (i + 1)) for i in range(9)]
    yield "previews", "/v1/queries/preview", json.dumps(listed).encode()
    yield "body", "/v1/queries", b"[" + b"[]," * (BODY_BYTES // 3) + b"[]]"


def question(query: Json, epsilon: float = 0.01) -> Json:
    return {"dataset": "census", "query": query, "privacy": {"epsilon": epsilon}, "fresh": True}


def workload(number: int) -> Json:
    """A workload of a hundred predicates never used before."""
    predicates = [
        {"name": f"p{i}", "where": {"column": "income", "op": ">=", "value": number + i / 1000}}
        for i in range(100)
    ]
    return question({"kind": "workload", "predicates": predicates}, 0.001)


class Caller:
    """One connection of one analyst."""

    def __init__(self, port: int, key: str = "-") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: bytes | None = None) -> tuple[int, float]:
        """Status of the reply, and its time in milliseconds."""
        started = time.perf_counter()
        self._connection.request(method, path, body, self._headers)
        reply = self._connection.getresponse()
        reply.read()
        return reply.status, 1000 * (time.perf_counter() - started)


@dataclass(slots=True)
class Watched:
    health_ms: float = 0.0
    memory_mb: float = 0.0


@contextmanager
def watched(port: int, process_id: int) -> Iterator[Watched]:
    """The longest wait for /healthz and the largest memory until the end of the block."""
    seen, ended = Watched(), threading.Event()
    process, caller = psutil.Process(process_id), Caller(port)

    def poll_health() -> None:
        while not ended.wait(POLL_SECONDS):
            seen.health_ms = max(seen.health_ms, caller.call("GET", "/healthz")[1])

    def poll_memory() -> None:
        while not ended.wait(POLL_SECONDS):
            seen.memory_mb = max(seen.memory_mb, process.memory_info().rss / 1e6)

    with _running([poll_health, poll_memory]):
        try:
            yield seen
        finally:
            ended.set()


@contextmanager
def _running(targets: list[Callable[[], None]]) -> Iterator[None]:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


def measure(home: Path) -> Iterator[Row]:
    data = home / "data"
    data.mkdir(parents=True)
    census.write(data / "census.parquet")
    with served(home, None, BURSAR_RELEASE_GRID_MS="100") as (server, process_id):
        server.open(CENSUS)
        yield from _largest(server, process_id)
        yield _beside_a_busy_analyst(server)


def _largest(server: Bursar, process_id: int) -> Iterator[Row]:
    for name, path, body in largest_requests():
        with watched(server.port, process_id) as seen:
            status, _ = Caller(server.port, server.key).call("POST", path, body)
            time.sleep(0.1)  # a refusal is faster than the next poll
        assert status == (413 if name == "body" else 200), f"{name}: {status}"
        for what, value, unit, limit in (
            ("/healthz", seen.health_ms, "ms", HEALTH_MS),
            ("memory", seen.memory_mb, "MB", MEMORY_MB),
        ):
            title = f"{what} beside one large request, {name}"
            yield Row(title, value, unit, limit, value / limit, 1.0, at_most=True)


def _beside_a_busy_analyst(server: Bursar) -> Row:
    server.call("POST", "/v1/analysts", {"name": "analyst-2"})
    key = server.call("POST", "/v1/analysts/analyst-2/keys", {})["key"]
    budget = {"currency": "pure", "epsilon": 9_000_000}
    server.call("PUT", "/v1/datasets/census/budgets/analyst-2", budget)
    until = time.perf_counter() + BUSY_SECONDS
    numbers = count()

    def busy() -> None:
        caller = Caller(server.port, server.key)
        while time.perf_counter() < until:
            body = json.dumps(workload(next(numbers))).encode()
            caller.call("POST", "/v1/queries", body)

    times = []
    with _running([busy] * BUSY_CLIENTS):
        caller = Caller(server.port, key)
        time.sleep(1)
        while time.perf_counter() < until:
            where = {"column": "income", "op": ">=", "value": next(numbers) / 1000}
            body = json.dumps(question({"kind": "count", "where": where}, 0.001)).encode()
            status, took = caller.call("POST", "/v1/queries", body)
            assert status == 200, status
            times.append(took)
    worst = max(times)
    note = f"longest of {len(times)}"
    name = "a count beside 64 connections of another analyst"
    return Row(name, worst, "ms", COUNT_MS, worst / COUNT_MS, 1.0, note, at_most=True)
