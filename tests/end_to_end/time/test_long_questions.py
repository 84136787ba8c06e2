"""Questions whose caller polls for the answer, over HTTP on both stores."""

import time
from decimal import Decimal

import duckdb
import pytest

from tests.server import (
    Json,
    World,
    ask,
    ask_and_hang_up,
    ask_until_settled,
    count,
    lease_until,
    made,
    new_key,
    wait_until,
    when_settled,
)

PRICE = Decimal("0.25")
QUESTION = count("people", float(PRICE))
LATER = "respond-async"
HELD = "F6"  # the exact value is in memory, and the thread waits
HOUR = "3600"  # longer than any client here waits


# Polling by request


def test_a_caller_who_prefers_to_poll_is_charged_and_gets_the_location(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client, key = world.client(person), new_key()
    reply = ask(client, count(dataset), key, LATER)
    assert reply.status_code == 202, reply.text
    running = reply.json()
    assert set(running) == {"id", "status", "charged", "theorem", "receipt"}
    assert running["status"] == "running"
    assert running["charged"]["epsilon"] == 0.25
    assert reply.headers["Location"] == f"/v1/queries/{running['id']}"
    assert reply.headers["Retry-After"] == "1"
    assert reply.headers["Idempotency-Key"] == key
    assert reply.headers["Preference-Applied"] == LATER
    assert reply.headers["Cache-Control"] == "no-store"
    (entry,) = world.entries(dataset, "charge")
    assert running["receipt"] == {"entry": entry["seq"], "hash": entry["hash"]}

    shown = when_settled(client, reply.headers["Location"])
    again = ask(client, count(dataset), key, LATER)
    assert again.status_code == 200
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Location" not in again.headers
    assert shown.json()["answer"] == again.json()
    assert again.content in shown.content  # the same bytes
    same = {name: again.json()[name] for name in ("id", "charged", "theorem", "receipt")}
    assert same == {name: running[name] for name in same}

    reused = ask(client, count(dataset), new_key(), LATER)
    assert (reused.status_code, reused.content) == (200, again.content)
    assert reused.headers["Bursar-Reused"] == "true"
    assert world.spent(dataset, person.name) == PRICE
    assert len(world.entries(dataset, "charge")) == 1
    world.must_be_sound()


def test_without_a_key_the_reply_holds_the_generated_one(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    reply = ask(client, count(dataset), prefer=LATER)
    shown = when_settled(client, reply.headers["Location"])
    again = ask(client, count(dataset), reply.headers["Idempotency-Key"])
    assert shown.json()["answer"] == made(again)


@pytest.mark.parametrize("prefer", [LATER, "wait=0", "wait=5", "respond-async, wait=5"])
def test_a_refusal_is_immediate_and_unchanged_and_nothing_is_charged(
    live_on_each: World, prefer: str
) -> None:
    world = live_on_each
    person, stranger = world.person(), world.person()
    dataset = world.open_dataset(person, epsilon=0.1)
    before = world.entries(dataset)
    bad: Json = {**count(dataset), "query": {"kind": "nothing"}}
    for who, question, status in (
        (person, count(dataset, 0.2), 402),
        (stranger, count(dataset), 403),
        (person, bad, 422),
    ):
        client = world.client(who)
        plain, later = ask(client, question), ask(client, question, prefer=prefer)
        assert (plain.status_code, plain.content) == (status, later.content)
        assert later.status_code == status
        assert "Location" not in later.headers
        assert made(client.get("/v1/queries"))["items"] == []
    assert world.entries(dataset) == before


@pytest.mark.parametrize(
    "prefer", ["wait=30", "return=minimal", "respond-async=perhaps", "wait=soon", ";;,", ""]
)
def test_a_waiting_caller_gets_a_quick_answer_at_once(live: World, prefer: str) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    reply = ask(live.client(person), count(dataset), new_key(), prefer)
    assert reply.status_code == 200
    assert "Location" not in reply.headers


# Slow questions


def test_a_caller_who_waits_for_a_second_is_then_redirected_to_poll(world: World) -> None:
    world.serve(fault=world.ledger.hold(HELD), BURSAR_ANSWER_SECONDS=HOUR)
    client, key = world.client("ada"), new_key()
    started = time.monotonic()
    reply = ask(client, QUESTION, key, "wait=1")
    assert time.monotonic() - started >= 1
    assert reply.status_code == 202, reply.text
    assert reply.headers["Preference-Applied"] == "wait=1"
    url = reply.headers["Location"]
    leased = lease_until(world.ledger)

    refused = ask(client, QUESTION, key)  # without a preference
    assert (refused.status_code, refused.headers["Retry-After"]) == (409, "1")
    assert refused.json()["id"] == reply.json()["id"]
    later = ask(client, QUESTION, key, LATER)
    assert (later.status_code, later.content) == (202, reply.content)
    assert later.headers["Location"] == url
    item = made(client.get(url))
    assert (item["status"], item["progress"], item["answer"]) == ("running", None, None)
    assert ask(client, count("people", 0.1), key, LATER).status_code == 422  # another body

    # The lease is renewed while the work goes on.
    wait_until(lambda: lease_until(world.ledger) > leased, 60, "the lease was not renewed")
    world.ledger.let_go()
    shown = when_settled(client, url)
    assert shown.json()["status"] == "answered"
    assert ask(client, QUESTION, key).content in shown.content
    assert world.ledger.rows("SELECT state, attempt FROM charges") == [("answered", 1)]
    assert len(world.entries("people", "charge")) == 1
    assert world.spent("people", "ada") == PRICE
    world.must_be_sound()


def test_after_the_longest_wait_every_caller_is_redirected_to_poll(world: World) -> None:
    world.serve(fault=world.ledger.hold(HELD), BURSAR_ANSWER_SECONDS="0.5")
    client, key = world.client("ada"), new_key()
    started = time.monotonic()
    reply = ask(client, QUESTION, key)
    assert time.monotonic() - started >= 0.5
    assert reply.status_code == 202
    assert "Preference-Applied" not in reply.headers
    world.ledger.let_go()
    shown = when_settled(client, reply.headers["Location"])
    assert ask(client, QUESTION, key).content in shown.content


def test_a_reply_waits_no_longer_than_its_answer_takes(world: World) -> None:
    """A server that always waited for the longest time would outlast the client."""
    world.serve(BURSAR_ANSWER_SECONDS=HOUR)
    for prefer in (None, f"wait={HOUR}"):
        quick = ask(world.client("ada"), count("people", 0.1, fresh=True), new_key(), prefer)
        assert quick.status_code == 200


def test_the_work_continues_when_the_caller_disconnects(world: World) -> None:
    world.serve(fault=world.ledger.hold(HELD))
    ask_and_hang_up(world, world.people["ada"], QUESTION, new_key())
    client = world.client("ada")
    (item,) = made(client.get("/v1/queries"))["items"]
    assert item["status"] == "running"
    world.ledger.let_go()
    shown = when_settled(client, f"/v1/queries/{item['id']}")
    assert shown.json()["status"] == "answered"
    assert world.ledger.rows("SELECT attempt FROM charges") == [(1,)]


IS_NOT_KEPT_ALIVE = """
from app.actions.asking.leased_run import LeasedRun
LeasedRun.is_alive = lambda self, moves_seen: False
"""


@pytest.mark.invariant("I17")
@pytest.mark.saboteur
def test_saboteur_a_server_that_does_not_renew_leases_is_caught(world: World) -> None:
    """While the first attempt is held, no other attempt may start."""
    fault = world.ledger.hold(HELD)
    world.serve(fault=fault, lease_seconds=0.5, sabotage=IS_NOT_KEPT_ALIVE)
    client, key = world.client("ada"), new_key()
    assert ask(client, QUESTION, key, LATER).status_code == 202
    world.ledger.wait_fired()
    assert ask_until_settled(client, QUESTION, key).status_code == 200
    assert world.ledger.rows("SELECT attempt FROM charges") != [(1,)]


# The time grid


@pytest.mark.invariant("I22")
def test_nothing_reveals_an_answer_before_its_grid_point(world: World) -> None:
    """Its grid point is a minute away, so it cannot pass during the test."""
    world.serve(BURSAR_RELEASE_GRID_MS="60000")
    client, key = world.client("ada"), new_key()
    reply = ask(client, QUESTION, key, LATER)
    assert reply.status_code == 202
    url = reply.headers["Location"]
    answered = "SELECT state FROM charges"
    wait_until(
        lambda: world.ledger.rows(answered) == [("answered",)], 50, "the answer is not stored"
    )
    item = made(client.get(url))
    later = ask(client, QUESTION, key, LATER)
    refused = ask(client, QUESTION, key)
    assert (item["status"], item["settled_at"], item["answer"]) == ("running", None, None)
    assert (later.status_code, later.content) == (202, reply.content)
    assert (refused.status_code, refused.headers["Retry-After"]) == (409, "1")


@pytest.mark.invariant("I22")
def test_an_answer_is_returned_from_its_grid_point_on(world: World) -> None:
    world.serve(BURSAR_RELEASE_GRID_MS="1000")
    client = world.client("ada")
    started = time.monotonic()
    reply = ask(client, QUESTION, new_key(), LATER)
    assert reply.status_code == 202
    assert when_settled(client, reply.headers["Location"]).json()["status"] == "answered"
    assert time.monotonic() - started >= 1


# Lost servers


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
    server = world.serve(fault=world.ledger.hold(HELD), lease_seconds=0.3)
    key = new_key()
    assert ask(world.client("ada"), QUESTION, key, LATER).status_code == 202
    world.ledger.wait_fired()
    server.kill()
    world.serve(lease_seconds=0.3)
    time.sleep(0.3)  # the lease has ended without a renewal
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
