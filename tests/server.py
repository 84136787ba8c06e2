"""People, datasets and questions of a real server, used over HTTP.

A `World` is a ledger with people in it, and the server to ask.
"""

import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import httpx

from tests.bursard import START_SECONDS, Ledger, Server, start_bursard
from tests.postgres import PostgresServer

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


def new_key() -> str:
    """A key like those of an operator, or an unused request key."""
    return secrets.token_urlsafe(32)


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
        ended = start_bursard(["migrate"], ledger.environment(), log).wait(START_SECONDS)
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
