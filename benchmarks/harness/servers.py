"""Servers under measurement: real processes on loopback, each in its own folder."""

import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.demo import census
from app.demo.cards import CENSUS

TOP = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def process(arguments: list[str], port: int, path: str, **environment: str) -> Iterator[int]:
    """Start a process, and yield its id once it answers."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=TOP,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        yield child.pid
    finally:
        child.terminate()
        child.wait(20)


@contextmanager
def bare() -> Iterator[int]:
    port = free_port()
    options = ["--port", str(port), "--log-level", "warning", "--no-access-log"]
    start = ["-m", "uvicorn", "benchmarks.harness.bare:application", "--factory", *options]
    with process(start, port, "/openapi.json"):
        yield port


class Bursar:
    """A server with its own ledger, used by one analyst with practically unlimited budgets."""

    key: str

    def __init__(self, port: int, admin_key: str) -> None:
        self.port = port
        self.admin_key = admin_key
        self._asking = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def open(self, registered: dict[str, Any]) -> None:
        """Register the dataset, and grant budgets to the analyst."""
        self.call("POST", "/v1/datasets", registered)
        self.call("POST", "/v1/analysts", {"name": "analyst-1"})
        self.key = self.call("POST", "/v1/analysts/analyst-1/keys", {})["key"]
        for holder in ("*", "analyst-1"):
            self.call(
                "PUT",
                f"/v1/datasets/{registered['name']}/budgets/{holder}",
                {"currency": "pure", "epsilon": 9_000_000},
            )

    def call(self, method: str, path: str, content: Any) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=json.dumps(content).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {self.admin_key}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=3600) as reply:
            return json.load(reply)

    def connect(self) -> None:
        """Connect again: the server closes a connection that has been idle for some seconds."""
        self._asking.close()
        self._asking.connect()

    def ask(self, question: dict[str, Any]) -> bytes:
        """Send a query as the analyst, over the open connection."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        self._asking.request("POST", "/v1/queries", json.dumps(question).encode(), headers)
        reply = self._asking.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise SystemExit(f"a question failed: {content[:300]!r}")
        return content


@contextmanager
def bursar(home: Path, database_url: str | None, **settings: str) -> Iterator[Bursar]:
    """A server with the census."""
    data = home / "data"
    data.mkdir(parents=True)
    census.write(data / "census.parquet")
    with served(home, database_url, **settings) as (server, _):
        server.open(CENSUS)
        yield server


@contextmanager
def served(home: Path, database_url: str | None, **settings: str) -> Iterator[tuple[Bursar, int]]:
    """A server and the id of its process."""
    port = free_port()
    admin_key = f"bench-{secrets.token_urlsafe(32)}"
    environment = {
        "BURSAR_HOME": str(home),
        "BURSAR_PORT": str(port),
        "BURSAR_ADMIN_KEY": admin_key,
        "BURSAR_RELEASE_GRID_MS": "0",
        **settings,
    }
    start = ["-c", "from app.cli import main; main()"]
    if database_url is not None:
        environment["BURSAR_DATABASE_URL"] = database_url
        subprocess.run(
            [sys.executable, *start, "migrate"],
            cwd=TOP,
            env={**os.environ, **environment},
            check=True,
            stdout=subprocess.DEVNULL,
        )
    with process([*start, "serve"], port, "/readyz", **environment) as process_id:
        yield Bursar(port, admin_key), process_id
