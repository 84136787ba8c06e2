"""Background questions whose server or engine fails, or that the service refuses to start."""

import time

import duckdb
import pytest

from tests.bursard import wait_until
from tests.end_to_end.time.long_question import HELD, LATER, PRICE, QUESTION
from tests.server import (
    Json,
    World,
    ask,
    ask_until_settled,
    lease_until,
    made,
    new_key,
    when_settled,
)


@pytest.mark.invariant("I17")
@pytest.mark.crash
def test_another_server_takes_over_a_background_question_of_a_killed_server(world: World) -> None:
    server = world.serve(fault=world.ledger.hold(HELD), lease_seconds=1)
    client, key = world.client("ada"), new_key()
    reply = ask(client, QUESTION, key, LATER)
    assert reply.status_code == 202
    world.ledger.wait_fired()
    server.kill()
    assert world.ledger.rows("SELECT state, attempt FROM charges") == [("charged", 1)]

    world.serve(elsewhere=True, lease_seconds=1)
    client = world.client("ada")
    assert made(client.get(reply.headers["Location"]))["status"] == "running"
    first = ask_until_settled(client, QUESTION, key)
    assert first.status_code == 200, first.text
    assert first.json()["receipt"] == reply.json()["receipt"]
    assert ask(client, QUESTION, key, LATER).content == first.content
    assert first.content in client.get(reply.headers["Location"]).content
    assert world.ledger.rows("SELECT state, attempt FROM charges") == [("answered", 2)]
    assert len(world.entries("people", "charge")) == 1
    assert world.entries("people", "void") == []
    assert world.spent("people", "ada") == PRICE
    world.must_be_sound()


@pytest.mark.invariant("I17")
@pytest.mark.crash
def test_a_caller_can_poll_for_a_take_over_too(world: World) -> None:
    server = world.serve(fault=world.ledger.hold(HELD), lease_seconds=1)
    key = new_key()
    assert ask(world.client("ada"), QUESTION, key, LATER).status_code == 202
    world.ledger.wait_fired()
    server.kill()
    ended = lease_until(world.ledger)  # nobody renews it
    wait_until(lambda: time.time_ns() // 1000 > ended, 60, "the lease never ends")
    world.serve(lease_seconds=60)
    client = world.client("ada")
    again = ask(client, QUESTION, key, LATER)
    assert again.status_code == 202
    assert when_settled(client, again.headers["Location"]).json()["status"] == "answered"
    assert world.ledger.rows("SELECT state, attempt FROM charges") == [("answered", 2)]


@pytest.mark.invariant("I17")
@pytest.mark.crash
def test_a_stopping_server_leaves_its_background_questions_to_the_next(world: World) -> None:
    server = world.serve(fault=world.ledger.hold(HELD), lease_seconds=1)
    key = new_key()
    reply = ask(world.client("ada"), QUESTION, key, LATER)
    world.ledger.wait_fired()
    server.stop()
    assert world.ledger.rows("SELECT state, attempt FROM charges") == [("charged", 1)]
    assert "Traceback" not in server.output()
    world.serve(lease_seconds=1)
    settled = ask_until_settled(world.client("ada"), QUESTION, key)
    assert settled.status_code == 200, settled.text
    assert settled.json()["id"] == reply.json()["id"]
    assert len(world.entries("people", "charge")) == 1
    world.must_be_sound()


# Failures


def test_a_failed_background_question_is_forfeited_and_no_value_leaks(world: World) -> None:
    """The prepared data are garbage that the driver would quote."""
    secret = "SECRET-4711"
    for version in (world.ledger.home / "versions").glob("*.duckdb"):
        version.unlink()
        version.write_bytes(secret.encode() * 1000)
    client, key = world.client("ada"), new_key()
    reply = ask(client, QUESTION, key, LATER)
    assert reply.status_code == 202
    shown = when_settled(client, reply.headers["Location"])
    assert (shown.json()["status"], shown.json()["answer"]) == ("forfeited", None)
    again = ask(client, QUESTION, key, LATER)
    assert (again.status_code, again.json()["type"]) == (503, "/problems/question-forfeited")
    assert world.spent("people", "ada") == PRICE
    output = world.server.output()
    assert secret not in shown.text + again.text + output
    assert "Traceback" not in output
    assert "exception" not in output
    world.must_be_sound()


# Limits


def test_too_many_groups_are_refused_before_a_charge(world: World) -> None:
    world.serve(BURSAR_GROUPS_MAX="3")
    client = world.client("ada")

    def histogram(bins: int) -> Json:
        edges = [round(120 * i / bins) for i in range(bins + 1)]
        query = {"kind": "histogram", "column": "age", "edges": edges}
        return {"dataset": "people", "query": query, "privacy": {"epsilon": 0.1}}

    assert ask(client, histogram(3)).status_code == 200
    before = world.entries("people")
    for reply in (
        ask(client, histogram(4), prefer=LATER),
        client.post("/v1/queries/preview", json=histogram(4)),
    ):
        assert reply.status_code == 422
        (error,) = reply.json()["errors"]
        assert error["rule"] == "at most 3 groups are allowed on this server"
    assert world.entries("people") == before


def test_a_busy_server_refuses_before_it_charges(world: World) -> None:
    world.serve(fault=world.ledger.hold(HELD), BURSAR_RUNNING_MAX="1")
    client, key = world.client("ada"), new_key()
    first = ask(client, QUESTION, key, LATER)
    world.ledger.wait_fired()
    before = world.entries("people")
    refused = ask(world.client("bob"), QUESTION, new_key())
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert refused.json()["type"] == "/problems/too-many-running"
    assert world.entries("people") == before
    assert ask(client, QUESTION, key, LATER).content == first.content  # costs nothing
    world.ledger.let_go()
    when_settled(client, first.headers["Location"])
    assert ask(world.client("bob"), QUESTION, new_key()).status_code == 200


def test_w3_a_question_that_needs_too_much_memory_is_forfeited(world: World) -> None:
    world.serve()
    path = world.ledger.data / "large.parquet"
    with duckdb.connect() as connection:
        rows = "SELECT i % 100000 AS x FROM range(1000000) AS t(i)"
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    columns = [{"name": "x", "type": "integer", "low": 0, "high": 100_000}]
    dataset = world.dataset(path.name, columns=columns)
    for holder in ("*", "ada"):
        world.grant(dataset, holder, 1)
    world.serve(BURSAR_ENGINE_MEMORY="1MB")
    client, key = world.client("ada"), new_key()
    question: Json = {
        "dataset": dataset,
        "query": {"kind": "histogram", "column": "x", "edges": [*range(0, 100_001, 2)]},
        "privacy": {"epsilon": 0.25},
    }
    reply = ask(client, question, key, LATER)
    shown = when_settled(client, reply.headers["Location"])
    assert (shown.json()["status"], shown.json()["answer"]) == ("forfeited", None)
    again = ask(client, question, key)
    assert (again.status_code, again.json()["type"]) == (503, "/problems/question-forfeited")
    assert world.spent(dataset, "ada") == PRICE
    assert world.entries(dataset, "void") == []
