"""A real `bursard serve` for the tests: started on its own ledger, killed, started again.

A `Ledger` is a location on which servers are started: a SQLite file or a PostgreSQL database,
homes, and a folder of data files. A `World` is a ledger with people in it, used over HTTP.
"""

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Self

import duckdb
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

REGIONS = ["north", "south", "east", "west"]
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 120},
    {"name": "income", "type": "number", "low": 0, "high": 200000},
    {"name": "region", "type": "category", "values": REGIONS},
    {"name": "smoker", "type": "boolean"},
    {"name": "seen", "type": "date", "low": "2020-01-01", "high": "2025-12-31"},
]
HEADER = [column["name"] for column in COLUMNS]

Rows = Sequence[Sequence[object]]
Json = dict[str, Any]


def wait_until(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Repeat a check until it is true; TimeoutError names what did not happen."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(POLL_SECONDS)


def new_key() -> str:
    """A key like those of an operator, or an unused request key."""
    return secrets.token_urlsafe(32)


class Server:
    """One running `bursard serve` with all its workers, and its output."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process = process
        self.url = ""
        self._log = log
        self._clients: list[httpx.Client] = []

    @classmethod
    def start(cls, environment: Mapping[str, str], log: Path, sabotage: str = "") -> Self:
        """Start a server and wait until it is ready; RuntimeError with its last output if it ends.
        `sabotage` is Python code that plants a bug first."""
        server = cls(_start(["serve"], environment, log, sabotage), log)
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


def _start(
    words: Sequence[str], environment: Mapping[str, str], log: Path, sabotage: str = ""
) -> Process:
    """Start a `bursard` that writes to `log`, in its own session. Its workers die with it, and
    Ctrl-C is for the tests."""
    log.write_bytes(b"")
    ours = all(name.startswith("BURSAR_") for name in environment)
    if ours and not sabotage and sys.platform == "linux":
        return _nursery().start(words, _environment(environment), log)
    # A bug is planted before the app is imported; other variables are read when Python starts.
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-c", f"{sabotage}\n{MAIN}", *words],
            cwd=CHECKOUT,
            env=_environment(environment),
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
    return Nursery(CHECKOUT, _environment({}))


def _environment(changes: Mapping[str, str]) -> dict[str, str]:
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
            env=_environment(self.environment()),
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


def new_ledger(kind: str, folder: Path, data: Path, postgres: PostgresServer | None) -> Ledger:
    """A ledger without people. The first server that starts creates a SQLite one."""
    ledger = Ledger(folder, data, new_key())
    if kind == "postgresql":
        assert postgres is not None
        name = f"ledger_{secrets.token_hex(8)}"
        postgres.create_database(name)
        ledger.database = postgres.url(name)
        log = folder / "migrate.log"
        folder.mkdir(parents=True, exist_ok=True)
        ended = _start(["migrate"], ledger.environment(), log).wait(START_SECONDS)
        assert ended == 0, log.read_text()
    return ledger


@dataclass(frozen=True)
class Person:
    """A person with a key."""

    name: str
    key: str


class World:
    """A ledger with people and datasets, and the server to ask; started when needed."""

    def __init__(self, ledger: Ledger, people: Mapping[str, Person] | None = None) -> None:
        self.ledger = ledger
        self.people = dict(people or {})
        self._server: Server | None = None
        self._admin: httpx.Client | None = None

    @property
    def server(self) -> Server:
        return self._server or self.serve()

    @property
    def admin(self) -> httpx.Client:
        """The administrator's client."""
        if self._admin is None:
            self._admin = self.server.client(self.ledger.admin_key)
        return self._admin

    def serve(self, **options: Any) -> Server:
        """Start a server, and use it from now on."""
        self.use(self.ledger.serve(**options))
        return self.server

    def use(self, server: Server) -> None:
        self._server, self._admin = server, None

    def client(self, person: Person | str) -> httpx.Client:
        found = person if isinstance(person, Person) else self.people[person]
        return self.server.client(found.key)

    # Changes

    def person(self, name: str | None = None, role: str = "analyst") -> Person:
        """A new person with a key."""
        name = name or f"person-{secrets.token_hex(4)}"
        made(self.admin.post("/v1/analysts", json={"name": name, "role": role}))
        issued = made(self.admin.post(f"/v1/analysts/{name}/keys"))
        self.people[name] = Person(name, issued["key"])
        return self.people[name]

    def write_csv(self, rows: Rows, header: Sequence[str] = HEADER, name: str | None = None) -> str:
        """Write a data file; return the path to register it by."""
        name = name or f"{secrets.token_hex(8)}.csv"
        lines = [",".join(map(str, row)) for row in [header, *rows]]
        (self.ledger.data / name).write_text("\n".join(lines) + "\n")
        return name

    def write_parquet(self, csv_name: str, columns: str = "*", order: str = "random()") -> str:
        """Write one of our CSV files as Parquet, in another order."""
        name = f"{secrets.token_hex(8)}.parquet"
        source, target = self.ledger.data / csv_name, self.ledger.data / name
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT {columns} FROM read_csv('{source}') ORDER BY {order}) "
                f"TO '{target}' (FORMAT parquet)"
            )
        return name

    def dataset(self, path: str | None = None, **changes: Any) -> str:
        """Register a dataset and return its name; by default its rows are unique."""
        body = card(path or self.write_csv(some_rows()), **changes)
        made(self.admin.post("/v1/datasets", json=body))
        return str(body["name"])

    def grant(self, dataset: str, holder: str, epsilon: float | str, **more: Any) -> Json:
        body = {"currency": "pure", "epsilon": epsilon, **more}
        reply = self.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=body)
        return made(reply)

    def open_dataset(self, *people: Person, epsilon: float | str = 10, total: float = 1000) -> str:
        """A dataset on which these people have a budget."""
        dataset = self.dataset()
        self.grant(dataset, "*", total)
        for person in people:
            self.grant(dataset, person.name, epsilon)
        return dataset

    # Reads

    def budget(self, dataset: str, holder: str) -> Json:
        return made(self.admin.get(f"/v1/datasets/{dataset}/budgets/{holder}"))

    def spent(self, dataset: str, holder: str) -> Decimal:
        return exact(self.budget(dataset, holder)["spent"])

    def entries(self, dataset: str, *kinds: str) -> list[Json]:
        """All entries of these kinds in a dataset's book."""
        items = self.pages("/v1/ledger", dataset=dataset, limit=200)
        return [item for item in items if not kinds or item["kind"] in kinds]

    def pages(self, path: str, **parameters: str | int) -> list[Json]:
        """The items of all pages of a list, as the administrator sees it."""
        items: list[Json] = []
        while True:
            page = made(self.admin.get(path, params=parameters))
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            parameters = {**parameters, "cursor": page["next_cursor"]}

    def must_be_sound(self) -> Json:
        report = made(self.admin.get("/v1/ledger/verify"))
        assert report["sound"], report["findings"]
        return report


def made(reply: httpx.Response) -> Json:
    """The body of a reply that must be a success."""
    assert reply.is_success, (reply.status_code, reply.text)
    body: Json = reply.json()
    return body


def exact(loss: Json, name: str = "epsilon") -> Decimal:
    """A number in a reply, exactly."""
    return Decimal(loss.get(f"{name}_exact") or repr(loss[name]))


def some_rows(count: int = 60) -> list[list[object]]:
    """Rows that no other dataset has."""
    rows: list[list[object]] = []
    for i in range(count):
        income = secrets.randbelow(20_000_000) / 100
        smoker = ("true", "false")[i % 2]
        rows.append([i % 100, income, REGIONS[i % 4], smoker, f"2021-0{i % 9 + 1}-11"])
    return rows


def card(path: str, **changes: Any) -> Json:
    """The body that registers a file with the columns of HEADER."""
    return {
        "name": f"data-{secrets.token_hex(4)}",
        "source": {"engine": "duckdb", "path": path},
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": COLUMNS,
        **changes,
    }


def count(dataset: str, epsilon: float | str = 0.25, **more: Any) -> Json:
    """A question for the number of rows."""
    return {
        "dataset": dataset,
        "query": {"kind": "count"},
        "privacy": {"epsilon": epsilon},
        **more,
    }


def ask(
    client: httpx.Client,
    question: Json,
    request_key: str | None = None,
    prefer: str | None = None,
) -> httpx.Response:
    headers = {} if request_key is None else {"Idempotency-Key": request_key}
    if prefer is not None:
        headers["Prefer"] = prefer
    return client.post("/v1/queries", json=question, headers=headers)


def ask_and_hang_up(world: World, person: Person, question: Json, request_key: str) -> None:
    """Ask, and disconnect when the server reaches its fault point, not before."""
    request = httpx.Request(
        "POST",
        f"{world.server.url}/v1/queries",
        json=question,
        headers={"Authorization": f"Bearer {person.key}", "Idempotency-Key": request_key},
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((request.url.host, request.url.port or 0)) as connection:
        connection.sendall(f"POST /v1/queries HTTP/1.1\r\n{head}\r\n".encode() + request.content)
        world.ledger.wait_fired()


def lease_until(ledger: Ledger) -> int:
    """End of the lease of the only charge."""
    ((until,),) = ledger.rows("SELECT lease_until FROM charges")
    return int(until)


def when_settled(client: httpx.Client, url: str, seconds: float = 60) -> httpx.Response:
    """The question at this URL, read repeatedly until it is settled."""
    deadline = time.monotonic() + seconds
    while True:
        reply = client.get(url)
        if made(reply)["status"] != "running":
            assert "Retry-After" not in reply.headers
            return reply
        assert reply.headers["Retry-After"] == "1"
        assert time.monotonic() < deadline, reply.text
        time.sleep(0.05)


def ask_until_settled(
    client: httpx.Client, question: Json, request_key: str, seconds: float = 30
) -> httpx.Response:
    """Ask with one key until no other attempt is running, like a patient client."""
    deadline = time.monotonic() + seconds
    while True:
        reply = ask(client, question, request_key)
        if reply.status_code != 409 or time.monotonic() > deadline:
            return reply
        assert int(reply.headers["Retry-After"]) >= 1
        time.sleep(0.1)


# Streams


def above_threshold(dataset: str, epsilon: float | str = 0.25, **more: Any) -> Json:
    """A stream that compares with half of `some_rows`, until one count reaches it."""
    stream = {"kind": "above_threshold", "threshold": 30, "crossings": 1, "asks_max": 100, **more}
    return {"dataset": dataset, "stream": stream, "privacy": {"epsilon": epsilon}}


def running_count(dataset: str, epsilon: float | str = 0.25, **more: Any) -> Json:
    stream = {"kind": "running_count", "epochs_max": 8, **more}
    return {"dataset": dataset, "stream": stream, "privacy": {"epsilon": epsilon}}


def open_stream(
    client: httpx.Client, opening: Json, request_key: str | None = None
) -> httpx.Response:
    headers = {} if request_key is None else {"Idempotency-Key": request_key}
    return client.post("/v1/streams", json=opening, headers=headers)


def ask_stream(
    client: httpx.Client, stream: str, where: Json | None = None, request_key: str | None = None
) -> httpx.Response:
    """Ask for a count of the rows that meet the filter."""
    query = {"kind": "count"} | ({} if where is None else {"where": where})
    return post_ask(client, stream, {"query": query}, request_key)


def post_ask(
    client: httpx.Client, stream: str, body: Json, request_key: str | None = None
) -> httpx.Response:
    headers = {} if request_key is None else {"Idempotency-Key": request_key}
    return client.post(f"/v1/streams/{stream}/ask", json=body, headers=headers)
