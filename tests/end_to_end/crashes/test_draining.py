"""Before it stops, a draining server says that it is not ready, and still serves."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.bursard import Server, wait_until
from tests.conftest import Template
from tests.end_to_end.budgets.test_budget_events import watching
from tests.server import World, ask, count, made, new_key

FOREVER = "3600"  # a drain that only a second signal ends
PATIENCE_SECONDS = 60


@pytest.fixture
def world(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made = peopled("sqlite", tmp_path / "ledger")
    yield made
    for server in made.ledger.servers:
        server.kill()


def readiness(server: Server) -> httpx.Response:
    with httpx.Client(timeout=60) as client:  # a new connection, which any worker may accept
        return client.get(f"{server.url}/readyz")


def drain(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: readiness(server).status_code == 503, PATIENCE_SECONDS, "it stays ready")


def ended_cleanly(server: Server) -> bool:
    code = server.wait_dead(PATIENCE_SECONDS)
    return code in (0, -signal.SIGTERM) and "before the ledger had settled" not in server.output()


def test_a_draining_server_is_not_ready_and_serves_on(world: World) -> None:
    server = world.serve(BURSAR_DRAIN_SECONDS=FOREVER)
    with watching(world, "ada") as stream:
        drain(server)
        reply = readiness(server)
        assert reply.json()["type"] == "/problems/store-unavailable"
        assert "about to stop" in reply.json()["detail"]
        assert server.client().get("/healthz").status_code == 200
        answered = ask(world.client("ada"), count("people", 0.25), new_key())
        assert made(answered)["status"] == "answered"
        assert answered.headers["Connection"] == "close"
        assert stream.next()[2]["used"] == 0.25
        assert not stream.ended.is_set()
        server.process.send_signal(signal.SIGTERM)
        assert ended_cleanly(server)
        assert stream.ended.wait(PATIENCE_SECONDS)


def test_a_ready_server_keeps_connections(live: World) -> None:
    assert readiness(live.server).status_code == 200
    assert "Connection" not in readiness(live.server).headers


def test_after_the_drain_the_server_stops_within_its_grace_period(world: World) -> None:
    """A question hangs. It would outlast the test if the server waited for it."""
    server = world.serve(
        BURSAR_DRAIN_SECONDS="1", BURSAR_STOP_SECONDS="3", fault="F5=pause:3600", once=False
    )
    reply = ask(world.client("ada"), count("people", 0.25), new_key(), "respond-async")
    assert reply.status_code == 202
    server.process.send_signal(signal.SIGTERM)
    assert ended_cleanly(server)


def test_all_workers_drain_together(world: World) -> None:
    """The parent passes a single signal on. To end the wait, each worker gets a second one."""
    server = world.serve(BURSAR_DRAIN_SECONDS=FOREVER, BURSAR_WORKERS="2")
    server.process.send_signal(signal.SIGTERM)
    ready: list[bool] = []

    def both_drain() -> bool:
        ready.append(readiness(server).status_code == 200)
        return ready[-10:] == [False] * 10

    wait_until(both_drain, PATIENCE_SECONDS, "a worker stays ready")
    for worker in psutil.Process(server.process.pid).children():
        worker.send_signal(signal.SIGTERM)
    assert ended_cleanly(server)
