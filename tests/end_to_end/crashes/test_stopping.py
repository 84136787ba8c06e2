"""A stopping server exits within its grace period, even if an engine does not respond.

The engines here never respond: one server is killed, one socket accepts and stays silent. A server
that waited for them would outlast the test.
"""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import make_url

from tests.bursard import Server, wait_until
from tests.conftest import STORES, Template
from tests.engines.remote.tables import Row
from tests.engines.remote.warehouses import PostgresWarehouse, SailServer, SparkWarehouse
from tests.postgres import PORT, PostgresServer
from tests.server import Json, World, ask, ask_until_settled, count, exact, made, new_key
from tests.silence import Mute, SilentProxy

GRACE_SECONDS = 8
# Open requests get a second. That leaves nearly all of the grace period for the ledger, since a
# busy machine may be slow.
SHORT_REQUESTS = f"from app import stopping; stopping.REQUESTS_SHARE = {1 / GRACE_SECONDS}"
LEASE_SECONDS = 1  # short, so that the next server need not wait long
# This allows for a busy machine. Before there was a grace period, each of these servers was still
# running after 80 s.
PATIENCE_SECONDS = GRACE_SECONDS + 26
TYPES = {"age": "INTEGER"}
ROWS: list[Row] = [{"age": age} for age in range(40)]
COLUMNS: list[Json] = [{"name": "age", "type": "integer", "low": 0, "high": 120}]


@pytest.fixture
def world(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made = peopled("sqlite", tmp_path / "ledger")
    yield made
    for server in made.ledger.servers:
        server.kill()


@pytest.fixture
def proxy(clinic: PostgresWarehouse) -> Iterator[SilentProxy]:
    folder = make_url(clinic.reader_url).query["host"]
    proxy = SilentProxy(f"{folder}/.s.PGSQL.{PORT}")
    yield proxy
    proxy.close()


@pytest.fixture
def clinic(postgres: PostgresServer) -> PostgresWarehouse:
    return PostgresWarehouse(postgres)


@pytest.fixture
def mute() -> Iterator[Mute]:
    mute = Mute()
    yield mute
    mute.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


def serve(world: World, connections: Json, **settings: Any) -> Server:
    path = world.ledger.folder / "connections.json"
    world.ledger.folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(connections))
    return world.serve(
        BURSAR_CONNECTIONS=str(path),
        BURSAR_STOP_SECONDS=str(GRACE_SECONDS),
        BURSAR_ENGINE_TIMEOUT_SECONDS="3600",
        sabotage=SHORT_REQUESTS,
        **settings,
    )


def body(name: str, source: Json) -> Json:
    person = {"kind": "row"}
    return {
        "name": name,
        "source": source,
        "person": person,
        "neighbours": "add_remove",
        "columns": COLUMNS,
    }


def granted(world: World, name: str, source: Json) -> None:
    made(world.admin.post("/v1/datasets", json=body(name, source)))
    for holder in ("*", "ada"):
        world.grant(name, holder, 100)


def must_end(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    assert server.wait_dead(PATIENCE_SECONDS) in (0, -signal.SIGTERM)
    assert "before the ledger had settled" not in server.output()


def test_a_server_stops_although_spark_was_killed(world: World, tmp_path: Path) -> None:
    sail = SailServer()
    lake = SparkWarehouse(sail.url, tmp_path / "lake")
    connection = {"engine": "spark", "url": sail.url, "roots": [str(lake.folder)]}
    server = serve(world, {"lake": connection})
    try:
        path = lake.put(ROWS, TYPES).path
        granted(world, "lake", {"engine": "spark", "connection": "lake", "path": path})
        made(ask(world.client("ada"), count("lake")))
    finally:
        sail.stop()
    must_end(server)


@pytest.mark.parametrize("engine", ["postgresql", "spark"])
def test_a_server_stops_although_a_database_accepts_and_never_replies(
    world: World, mute: Mute, threads: ThreadPoolExecutor, engine: str
) -> None:
    scheme = {"postgresql": "postgresql://reader@", "spark": "sc://"}[engine]
    url = f"{scheme}127.0.0.1:{mute.port}"
    server = serve(world, {"mute": {"engine": engine, "url": url}})
    source = {"engine": engine, "connection": "mute", "table": "public.visits"}
    registering = threads.submit(quietly, world.admin, "/v1/datasets", body("never", source))
    assert mute.called.wait(PATIENCE_SECONDS)
    must_end(server)
    registering.result(PATIENCE_SECONDS)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_stops_although_a_database_falls_silent_during_a_question(
    world: World,
    clinic: PostgresWarehouse,
    proxy: SilentProxy,
    threads: ThreadPoolExecutor,
    workers: str,
) -> None:
    """The question keeps its charge. Its key returns an answer when the database is back."""
    url = make_url(clinic.reader_url).difference_update_query(["host", "port"])
    url = url.set(host="127.0.0.1", port=proxy.port)
    connection = {"engine": "postgresql", "url": url.render_as_string(hide_password=False)}
    server = serve(
        world, {"clinic": connection}, BURSAR_WORKERS=workers, lease_seconds=LEASE_SECONDS
    )
    table = clinic.put(ROWS, TYPES).path
    granted(world, "clinic", {"engine": "postgresql", "connection": "clinic", "table": table})
    key, question = new_key(), count("clinic", 0.5)

    # only the statement that reads the rows contains it
    proxy.fall_silent_at(b"SELECT count(*) AS")
    asking = threads.submit(quietly, world.client("ada"), "/v1/queries", question, key)
    assert proxy.asked.wait(PATIENCE_SECONDS)
    assert exact(world.budget("clinic", "ada")["spent"]) == Decimal("0.5")
    must_end(server)
    assert asking.result(PATIENCE_SECONDS) != 200

    proxy.speak()
    serve(world, {"clinic": connection}, lease_seconds=LEASE_SECONDS)
    made(ask_until_settled(world.client("ada"), question, key))
    assert exact(world.budget("clinic", "ada")["spent"]) == Decimal("0.5")
    world.must_be_sound()


@pytest.mark.parametrize("kind", STORES)
def test_every_answer_sent_before_a_stop_has_its_charge(
    peopled: Template,
    kind: str,
    tmp_path: Path,
    mute: Mute,
    threads: ThreadPoolExecutor,
) -> None:
    """The server stops during many concurrent questions, while an engine blocks a thread."""
    world = peopled(kind, tmp_path / "ledger")
    url = f"sc://127.0.0.1:{mute.port}"
    server = serve(world, {"mute": {"engine": "spark", "url": url}})
    source = {"engine": "spark", "connection": "mute", "table": "public.visits"}
    registering = threads.submit(quietly, world.admin, "/v1/datasets", body("never", source))
    assert mute.called.wait(PATIENCE_SECONDS)
    answers: list[str] = []

    def keep_asking() -> None:
        client = world.client("ada")
        question = count("people", 0.0001, fresh=True)
        try:
            while (reply := ask(client, question, new_key())).is_success:
                answers.append(reply.json()["id"])
        except httpx.TransportError:
            return

    crowd = [threads.submit(keep_asking) for _ in range(4)]
    wait_until(lambda: len(answers) >= 40, PATIENCE_SECONDS, "no question was answered")
    must_end(server)
    registering.result(PATIENCE_SECONDS)
    for asking in crowd:
        asking.result(PATIENCE_SECONDS)

    world.serve()
    charged = {item["id"] for item in world.pages("/v1/queries", limit=200)}
    assert set(answers) <= charged
    assert exact(world.budget("people", "ada")["spent"]) == len(charged) * Decimal("0.0001")
    world.must_be_sound()
    world.ledger.stop()


def quietly(
    client: httpx.Client, path: str, sent: Json, request_key: str | None = None
) -> int | None:
    """Status of the reply, or None without a reply."""
    headers = {} if request_key is None else {"Idempotency-Key": request_key}
    try:
        return client.post(path, json=sent, headers=headers).status_code
    except httpx.TransportError:
        return None
