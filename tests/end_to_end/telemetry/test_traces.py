"""Traces, sent by a real server to a small collector."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bursard import Server, start_bursard
from tests.conftest import Template
from tests.end_to_end.telemetry.receiver import Receiver, attributes
from tests.server import World, ask, count, made, new_key

GRID_MS = 200
NANO = 1_000_000_000
PLANTED = "planted-value-7c1f"
MISSING = "BURSAR_TRACES_URL needs the extra `traces`: pip install 'bursar-server[traces]'."
SLOW = """
import time
import app.actions.asking.ask_query as asking
real = asking.AnswerQuery._ask
def slow(self, begun, run):
    time.sleep(0.05)
    return real(self, begun, run)
asking.AnswerQuery._ask = slow
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made_receiver = Receiver()
    yield made_receiver
    made_receiver.close()


def traced(world: World, receiver: Receiver, **settings: str) -> None:
    world.serve(BURSAR_TRACES_URL=receiver.url, BURSAR_RELEASE_GRID_MS=str(GRID_MS), **settings)


@pytest.fixture
def world_of_traces(peopled: Template, tmp_path: Path) -> Iterator[World]:
    world = peopled("sqlite", tmp_path / "ledger")
    yield world
    world.ledger.stop()


def test_a_question_has_a_span_for_each_of_its_steps(
    world_of_traces: World, receiver: Receiver
) -> None:
    world = world_of_traces
    traced(world, receiver)
    reply = ask(world.client("ada"), count("people", 0.25), new_key())
    made(reply)
    world.ledger.stop()
    (request,) = receiver.named("POST /v1/queries")
    assert attributes(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/queries",
        "http.response.status_code": 200,
        "bursar.request_id": reply.headers["Bursar-Request-Id"],
    }
    steps = [span for span in receiver.spans if span.parent_span_id == request.span_id]
    ordered = sorted(steps, key=lambda span: span.start_time_unix_nano)
    assert [span.name for span in ordered] == ["plan", "charge", "private work", "record"]
    assert all(span.trace_id == request.trace_id for span in ordered)
    assert all(not span.attributes and not span.events for span in ordered)


def test_the_span_of_private_work_has_the_length_of_the_slot(
    world_of_traces: World, receiver: Receiver
) -> None:
    """The second server works 50 ms longer. The slots have 2.6 s, so that none is overrun."""
    world, questions = world_of_traces, (0.25, 0.26)
    for sabotage, epsilon in zip(("", SLOW), questions, strict=True):
        traced(world, receiver, sabotage=sabotage, BURSAR_SLOT_FACTOR="500")
        made(ask(world.client("ada"), count("people", epsilon), new_key()))
        world.ledger.stop()
    seconds = {
        round((work.end_time_unix_nano - work.start_time_unix_nano) / NANO, 6)
        for work in receiver.named("private work")
    }
    assert len(receiver.named("private work")) == 2
    assert len(seconds) == 1
    assert seconds.pop() > 2
    begins = {record.start_time_unix_nano for record in receiver.named("record")}
    assert begins == {work.end_time_unix_nano for work in receiver.named("private work")}


def test_spans_have_no_text_that_a_caller_typed(world_of_traces: World, receiver: Receiver) -> None:
    world = world_of_traces
    traced(world, receiver)
    client = world.client("ada")
    client.get(f"/{PLANTED}")
    client.get(f"/v1/datasets/{PLANTED}")
    client.request("PURGE", "/v1/me")
    where = {"column": PLANTED, "op": "==", "value": PLANTED}
    ask(client, count("people", 0.1, query={"kind": "count", "where": where}), PLANTED)
    headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "baggage": PLANTED}
    client.get("/v1/me", headers=headers)
    world.ledger.stop()
    assert {span.name for span in receiver.spans} >= {
        "GET /v1/datasets/{dataset}",
        "GET unmatched",
        "other /v1/me",
    }
    assert PLANTED.encode() not in receiver.raw
    assert bytes.fromhex("a" * 32) not in receiver.raw
    assert world.people["ada"].key.encode() not in receiver.raw


def test_without_the_grid_there_is_no_span_of_private_work(
    world_of_traces: World, receiver: Receiver
) -> None:
    world = world_of_traces
    world.serve(BURSAR_TRACES_URL=receiver.url)
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
    world.ledger.stop()
    assert receiver.named("POST /v1/queries")
    assert not receiver.named("private work")


def test_a_server_whose_collector_is_gone_serves_and_stops(world_of_traces: World) -> None:
    world = world_of_traces
    server = world.serve(BURSAR_TRACES_URL="http://127.0.0.1:9/v1/traces")
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
    world.ledger.stop()
    assert "Traceback" not in server.output()


def test_without_the_extra_the_start_names_it(tmp_path: Path) -> None:
    settings = {"BURSAR_HOME": str(tmp_path / "home"), "BURSAR_PORT": "0"}
    log = tmp_path / "log"
    missing = "import sys; sys.modules['opentelemetry.sdk.trace'] = None"
    url = {"BURSAR_TRACES_URL": "http://127.0.0.1:9/v1/traces"}
    assert start_bursard(["serve"], settings | url, log, missing).wait(60) == 2
    assert log.read_text() == f"bursard: {MISSING}\n"
    server = Server.start(settings, log, missing)
    server.stop()


def test_nothing_of_opentelemetry_loads_unless_traces_are_on(tmp_path: Path) -> None:
    settings = {"BURSAR_HOME": str(tmp_path / "home"), "BURSAR_PORT": "0"}
    look = (
        "import atexit, sys; import app.main; "
        "assert 'opentelemetry.sdk.trace' not in sys.modules; print('looked', flush=True)"
    )
    server = Server.start(settings, tmp_path / "log", look)
    server.stop()
    assert "looked" in server.output()
