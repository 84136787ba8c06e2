"""A real `bursard` for the tests: started on its own ledger, killed, started again.

A `Ledger` is a location on which servers are started: a SQLite file or a PostgreSQL database,
homes, and a folder of data files.
"""

import contextlib
import os
import re
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Self

import httpx
import psycopg
from sqlalchemy import make_url

from tests.nursery import Nursery, Process
from tests.postgres import PostgresServer

CHECKOUT = Path(__file__).parents[1]
MAIN = "from app.cli import main; main()"
BURSARD = [sys.executable, "-c", MAIN]
START_SECONDS = 60
STOP_SECONDS = 30
FIRE_SECONDS = 60
POLL_SECONDS = 0.02
_ONE_NURSERY = Lock()
_SERVES = re.compile(r"^Bursar serves on (http://\S+)$", re.MULTILINE)


def wait_until(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Repeat a check until it is true; TimeoutError names what did not happen."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(POLL_SECONDS)


class Server:
    """One running `bursard serve` with all its workers, and its output."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process = process
        self.url = ""
        self._log = log
        self._clients: list[httpx.Client] = []

    @classmethod
    def start(
        cls, environment: Mapping[str, str], log: Path, sabotage: str = "", command: str = "serve"
    ) -> Self:
        """Start a server and wait until it is ready; RuntimeError with its last output if it ends.
        `sabotage` is Python code that plants a bug first. `command` may be `demo`."""
        server = cls(start_bursard([command], environment, log, sabotage), log)
        try:
            wait_until(server._is_ready, START_SECONDS, "the server is not ready")
        except BaseException:
            server.kill()
            raise
        return server

    def output(self) -> str:
        """Everything it wrote to standard output and standard error."""
        return self._log.read_text(errors="replace")

    def client(self, key: str | None = None) -> httpx.Client:
        """A client with its own connection; closed with the server."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=False)
        self._clients.append(client)
        return client

    def wait_dead(self, seconds: float = 20) -> int:
        """Wait for its end: the exit code, or minus the signal."""
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Send SIGKILL to the server and its workers."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop cleanly."""
        try:
            self._end(signal.SIGTERM)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def _end(self, how: signal.Signals) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        if self.process.poll() is None:
            if how is signal.SIGKILL:
                os.killpg(self.process.pid, how)
            else:
                self.process.send_signal(how)
        self.process.wait(STOP_SECONDS)

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"the server ended at once:\n{self.output()[-2000:]}")
        found = _SERVES.search(self.output())
        if found is None:
            return False
        self.url = found[1]
        try:
            with httpx.Client(verify=False, timeout=10) as client:
                return client.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False


def start_bursard(
    words: Sequence[str], environment: Mapping[str, str], log: Path, sabotage: str = ""
) -> Process:
    """Start a `bursard` that writes to `log`, in its own session. Its workers die with it, and
    Ctrl-C is for the tests."""
    log.write_bytes(b"")
    ours = all(name.startswith("BURSAR_") for name in environment)
    if ours and not sabotage and sys.platform == "linux":
        return _nursery().start(words, environment_with(environment), log)
    # A bug is planted before the app is imported; other variables are read when Python starts.
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-c", f"{sabotage}\n{MAIN}", *words],
            cwd=CHECKOUT,
            env=environment_with(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _nursery() -> Nursery:
    with _ONE_NURSERY:
        return _make_nursery()


@cache
def _make_nursery() -> Nursery:
    return Nursery(CHECKOUT, environment_with({}))


def environment_with(changes: Mapping[str, str]) -> dict[str, str]:
    """Our environment without any Bursar setting of the caller, plus the changes."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BURSAR_", "PYTEST_"))}
    path = os.pathsep.join([str(CHECKOUT), *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **changes}


@dataclass
class Ledger:
    """The location of a ledger, and the servers that were started on it."""

    folder: Path
    data: Path
    admin_key: str
    database: str | None = None  # the URL of a PostgreSQL; None is SQLite in the home
    servers: list[Server] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "sqlite" if self.database is None else "postgresql"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def sqlite_path(self) -> Path:
        return self.home / "ledger.db"

    def environment(self, home: Path | None = None) -> dict[str, str]:
        settings = {
            "BURSAR_HOME": str(home or self.home),
            "BURSAR_PORT": "0",
            "BURSAR_DATA_ROOTS": str(self.data),
            "BURSAR_ADMIN_KEY": self.admin_key,
            "BURSAR_RELEASE_GRID_MS": "0",
            "BURSAR_ANSWER_SECONDS": "60",
        }
        if self.database is not None:
            settings["BURSAR_DATABASE_URL"] = self.database
            settings["BURSAR_SECRET_KEY"] = f"for streams, {self.admin_key}".replace(" ", "-")
        return settings

    def serve(
        self,
        *,
        elsewhere: bool = False,
        fault: str | None = None,
        once: bool = True,
        lease_seconds: float = 30,
        sabotage: str = "",
        **settings: str,
    ) -> Server:
        """Start a server. `elsewhere` gives it a separate home if the ledger is in PostgreSQL.
        `fault` arms a fault point, which fires `once` for all servers of this ledger. `sabotage` is
        Python code that plants a bug."""
        self.folder.mkdir(parents=True, exist_ok=True)
        alone = self.database is None or not elsewhere
        home = self.home if alone else self.folder / f"home-{len(self.servers)}"
        environment = self.environment(home)
        environment["BURSAR_LEASE_SECONDS"] = str(lease_seconds)
        if fault is not None:
            environment["BURSAR_FAULT"] = fault
            if once:
                environment["BURSAR_FAULT_ONCE"] = str(self.folder / "fired")
        environment.update(settings)
        log = self.folder / f"server-{len(self.servers)}.log"
        server = Server.start(environment, log, sabotage)
        self.servers.append(server)
        return server

    def bursard(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run an operator's command beside this ledger."""
        return subprocess.run(
            [*BURSARD, *words],
            cwd=CHECKOUT,
            env=environment_with(self.environment()),
            capture_output=True,
            text=True,
            check=check,
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read the database itself; for SQLite a copy, so that only the server recovers it."""
        if self.database is not None:
            url = make_url(self.database).set(drivername="postgresql")
            with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
                return connection.execute(query.encode()).fetchall()
        with tempfile.TemporaryDirectory() as folder:
            for path in self.home.glob("ledger.db*"):
                if path.suffix in (".db", ".db-wal"):
                    shutil.copy(path, folder)
            with contextlib.closing(sqlite3.connect(Path(folder) / "ledger.db")) as copy:
                return copy.execute(query).fetchall()

    def change(self, statement: str) -> None:
        """Change the database in a way that no server would."""
        if self.database is not None:
            url = make_url(self.database).set(drivername="postgresql")
            with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
                connection.execute(statement.encode())
            return
        with contextlib.closing(sqlite3.connect(self.sqlite_path)) as embedded:
            embedded.execute(statement)
            embedded.commit()

    def hold(self, point: str) -> str:
        """A fault that makes a server wait at this point until `let_go`."""
        self._held.touch()
        return f"{point}=hold:{self._held}"

    def let_go(self) -> None:
        self._held.unlink(missing_ok=True)

    def wait_fired(self) -> None:
        """Wait until a server reaches its fault point."""
        wait_until((self.folder / "fired").exists, FIRE_SECONDS, "no fault point was reached")

    @property
    def _held(self) -> Path:
        return self.folder / "held"

    def stop(self) -> None:
        """Stop every server."""
        self.let_go()
        while self.servers:
            self.servers.pop().stop()

    def copy(self, folder: Path, postgres: PostgresServer | None) -> "Ledger":
        """Copy the ledger to another location; no server may be running on this one."""
        for name, place in (("home", self.home), ("data", self.data)):
            shutil.copytree(place, folder / name)
        copied = Ledger(folder, folder / "data", self.admin_key)
        if self.database is not None:
            assert postgres is not None
            name = f"copy_{secrets.token_hex(8)}"
            postgres.create_database(name, template=make_url(self.database).database)
            copied.database = postgres.url(name)
        return copied
