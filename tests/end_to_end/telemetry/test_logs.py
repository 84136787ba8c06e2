"""The log of a real server: what it reports, and what no line may have."""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.bursard import Server, wait_until
from tests.conftest import Template
from tests.end_to_end.http.test_bad_input import MALFORMED
from tests.server import Json, World, ask, card, count, made, new_key

PLANTED = "planted-value-7c1f"
FIELDS = {
    *("time", "level", "event", "request_id", "route", "method", "status", "duration_ms"),
    *("analyst", "worker"),
}
OUR_IDS = re.compile(r"[ar]_[0-9a-f]{12,}")


@pytest.fixture
def logged(peopled: Template, tmp_path: Path) -> Iterator[World]:
    """A world whose server logs everything, as JSON."""
    world = peopled("sqlite", tmp_path / "ledger")
    world.serve(BURSAR_LOG_FORMAT="json", BURSAR_LOG_LEVEL="debug")
    yield world
    world.ledger.stop()


def lines(server: Server) -> list[Json]:
    """The lines of the log; beside them standard output has the address only."""
    whole = server.output().rpartition("\n")[0].splitlines()  # the last may be half written
    return [json.loads(line) for line in whole if not line.startswith("Bursar serves")]


def requests(server: Server, **fields: object) -> list[Json]:
    return [
        line
        for line in lines(server)
        if line["event"] == "request" and fields.items() <= line.items()
    ]


def line_of(server: Server, reply: httpx.Response) -> Json:
    """The line of the request with this reply; it is written right after the reply."""
    request_id = reply.headers["Bursar-Request-Id"]
    wait_until(lambda: bool(requests(server, request_id=request_id)), 30, "there is no line")
    (line,) = requests(server, request_id=request_id)
    return line


# Reports


def test_a_healthy_server_reports_start_changes_and_stop_and_no_request(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    server = world.serve()
    dataset = world.dataset()
    world.grant(dataset, "*", 1)
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
    world.ledger.stop()
    log = server.output()
    for words in (
        f"INFO    serves on {server.url}, workers: 1",
        "INFO    worker ready",
        "INFO    ledger entry dataset_registered",
        "INFO    ledger entry grant",
        "INFO    worker stops",
        "INFO    has stopped",
    ):
        assert words in log, words
    assert "request " not in log.replace("request_id", "")
    assert not re.search(r"ERROR|Traceback|withheld", log)


def test_a_new_ledger_is_reported(tmp_path: Path) -> None:
    environment = {"BURSAR_HOME": str(tmp_path / "home"), "BURSAR_PORT": "0"}
    server = Server.start(environment, tmp_path / "log")
    server.stop()
    assert "INFO    makes a new ledger" in server.output()


def test_a_line_of_a_request_has_its_route_and_rounded_duration(logged: World) -> None:
    client = logged.client("ada")
    reply = client.get("/v1/datasets/people")
    line = line_of(logged.server, reply)
    assert set(line) <= FIELDS
    assert (line["route"], line["method"], line["status"]) == ("/v1/datasets/{dataset}", "GET", 200)
    assert line["duration_ms"] % 100 == 0
    assert line["duration_ms"] >= 100
    (ada,) = logged.ledger.rows("SELECT id FROM analysts WHERE folded = 'ada'")
    assert line["analyst"] == ada[0]
    asked = ask(client, count("people", 0.25), new_key())
    line = line_of(logged.server, asked)
    assert (line["route"], line["analyst"]) == ("/v1/queries", ada[0])


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("trace-1.a:b_C", True),
        ("x" * 40, True),
        ("x" * 41, False),
        ("two words", False),
        ('"quoted"', False),
        ("{}", False),
        ("", False),
    ],
)
def test_a_request_id_is_kept_if_it_is_short_and_plain(live: World, sent: str, kept: bool) -> None:
    for path in ("/healthz", "/v1/nothing", "/sign-in", "/v1/me"):
        reply = live.admin.get(path, headers={"Bursar-Request-Id": sent})
        (shown,) = reply.headers.get_list("Bursar-Request-Id")
        assert (shown == sent) == kept
        assert kept or re.fullmatch(r"r_[0-9a-f]+", shown)


def test_no_key_can_become_a_request_id(live: World) -> None:
    key = live.people["ada"].key
    reply = live.admin.get("/healthz", headers={"Bursar-Request-Id": key})
    assert reply.headers["Bursar-Request-Id"] != key
    assert key not in live.server.output()


def test_the_level_leaves_out_what_is_below_it(peopled: Template, tmp_path: Path) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    server = world.serve(BURSAR_LOG_LEVEL="error")
    world.dataset()
    world.ledger.stop()
    assert server.output() == f"Bursar serves on {server.url}\n"


def test_every_worker_logs_under_its_number_and_a_death_is_reported(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        server = world.serve(BURSAR_LOG_FORMAT="json", BURSAR_WORKERS="2")

        def ready() -> list[int]:
            return [line["worker"] for line in lines(server) if line["event"] == "worker ready"]

        wait_until(lambda: sorted(ready()) == [1, 2], 60, "there are no two workers")
        children = psutil.Process(server.process.pid).children()
        spawned = [each for each in children if "spawn_main" in " ".join(each.cmdline())]
        os.kill(spawned[0].pid, signal.SIGKILL)
        wait_until(lambda: len(ready()) == 3, 60, "the worker was not replaced")
        assert sorted(ready()) in ([1, 1, 2], [1, 2, 2])
        events = [line["event"] for line in lines(server)]
        assert "a worker has ended, and is started again" in events
    finally:
        world.ledger.stop()


# Texts that no line may have


def test_no_refused_request_leaves_its_text_in_the_log(logged: World) -> None:
    client = logged.client("ada")
    for raw in MALFORMED.values():
        for path in ("/v1/queries", "/v1/queries/preview"):
            client.post(path, content=raw, headers={"Idempotency-Key": PLANTED})
        logged.admin.post("/v1/datasets", content=raw)
    typed: list[tuple[str, str, Json]] = [
        ("GET", f"/{PLANTED}", {}),
        ("GET", f"/v1/datasets/{PLANTED}", {}),
        ("GET", f"/v1/datasets/people/budgets/{PLANTED}", {}),
        ("GET", "/v1/budgets", {PLANTED: PLANTED}),
        ("GET", "/v1/queries", {"cursor": PLANTED}),
        ("PLANTED-VALUE-7C1F", "/v1/me", {}),
        ("GET", f"/sign-in?next={PLANTED}", {}),
        ("GET", f"/static/{PLANTED}/{PLANTED}", {}),
    ]
    for method, path, parameters in typed:
        for accept in ("application/json", "text/html"):
            headers = {"Accept": accept, "X-Forwarded-For": PLANTED, "Cookie": f"a={PLANTED}"}
            client.request(method, path, params=parameters or None, headers=headers)
    for body in (
        count(PLANTED),
        count("people", where={"column": PLANTED, "op": "==", "value": PLANTED}),
        {"sql": f"SELECT COUNT(*) FROM people WHERE region = '{PLANTED}'", "privacy": PLANTED},
        {"sql": f"SELECT {PLANTED} FROM {PLANTED}", "privacy": {"epsilon": 0.1}},
    ):
        ask(client, body, PLANTED)
        client.post("/v1/queries/preview", json=body)
        client.post("/v1/queries/rehearse", json=body)
    logged.server.client(PLANTED).get("/v1/me")
    logged.server.client(PLANTED).post("/sign-in", data={"key": PLANTED})
    logged.admin.post("/v1/datasets", json=card(f"{PLANTED}.csv", description=PLANTED))
    logged.admin.post("/v1/analysts", json={"name": "eve", "role": PLANTED})
    wait_until(lambda: len(requests(logged.server)) > 60, 30, "requests are missing in the log")
    must_be_clean(logged)


def test_no_value_of_a_dataset_enters_the_log_when_engines_and_drivers_fail(logged: World) -> None:
    rows = [[f"{PLANTED},", PLANTED, PLANTED, PLANTED, PLANTED]]
    for path in (logged.write_csv(rows), logged.write_csv([[PLANTED]], header=["age"])):
        assert logged.admin.post("/v1/datasets", json=card(path)).status_code == 422
    for version in (logged.ledger.home / "versions").glob("*.duckdb"):
        version.unlink()
        version.write_bytes(PLANTED.encode() * 1000)
    assert ask(logged.client("ada"), count("people", 0.25), new_key()).status_code == 503
    must_be_clean(logged)


def test_no_text_of_an_unexpected_error_enters_the_log(peopled: Template, tmp_path: Path) -> None:
    """Planted bugs raise errors with values in every layer, and in a thread of their own."""
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        world.serve(sabotage=BUGS, BURSAR_LOG_FORMAT="json", BURSAR_LOG_LEVEL="debug")
        assert world.client("ada").get("/v1/datasets").status_code == 500
        assert world.client("ada").get("/v1/me").status_code == 500
        assert ask(world.client("ada"), count("people", 0.25), new_key()).status_code == 503
        page = world.client("ada").get("/sign-in", headers={"Accept": "text/html"})
        assert page.status_code == 500
        wait_until(lambda: "in a thread" in world.server.output(), 30, "no thread has failed")
        world.ledger.servers[-1].stop()
        must_be_clean(world)
        events = {line["event"] for line in lines(world.ledger.servers[-1])}
        assert "unexpected ValueError" in events
    finally:
        world.ledger.stop()


BUGS = f"""
import asyncio, logging, threading, warnings
import app.api.datasets, app.store.catalogue, app.main, app.store.writer.writer
import app.store.datasets.datasets, app.actions.asking.ask_query, app.web.pages.sign_in
import app.web.rendering

def broken(*_, **__):
    logging.getLogger("sqlalchemy.engine").error("row {PLANTED}")
    logging.getLogger().warning("root {PLANTED}")
    warnings.warn("warned of {PLANTED}")
    threading.Thread(target=fail).start()
    raise ValueError("{PLANTED}")

def fail():
    raise ValueError("{PLANTED}")

async def broken_task(*_, **__):
    asyncio.get_running_loop().call_soon(fail)
    asyncio.ensure_future(broken_later())
    raise ValueError("{PLANTED}")

async def broken_later():
    raise ValueError("{PLANTED}")

app.store.datasets.datasets.SqlDatasets.all = broken
app.store.catalogue.CachedCatalogue.has_grant = broken_task
app.actions.asking.ask_query.AnswerQuery._noisy = broken
app.web.rendering.page = broken
import app.api.history
import app.store.analysts
app.store.analysts.SqlAnalysts.find = broken
"""


def must_be_clean(world: World) -> None:
    """No planted text, no key, and no field beside the fixed ones."""
    server = world.ledger.servers[-1]
    output = server.output()
    assert PLANTED not in output.lower()
    assert "Traceback" not in output
    for key in (world.ledger.admin_key, *(person.key for person in world.people.values())):
        assert key not in output
    for line in lines(server):
        assert set(line) <= FIELDS, line
        assert re.fullmatch(r"20[0-9-]{8}T[0-9:]{8}\.[0-9]{3}Z", line["time"])
        assert OUR_IDS.fullmatch(line.get("analyst", "a_000000000000"))


def test_a_malformed_http_request_is_reported_without_its_bytes(logged: World) -> None:
    url = httpx.URL(logged.server.url)
    with socket.create_connection((url.host, url.port or 0)) as connection:
        connection.sendall(f"GET /{PLANTED} HTTP/9.9 {PLANTED}\r\n\r\n".encode())
        connection.recv(4096)
    wait_until(
        lambda: any("invalid HTTP request" in line["event"] for line in lines(logged.server)),
        30,
        "the request was not reported",
    )
    must_be_clean(logged)
