"""Questions whose caller polls for the answer, over HTTP on both stores."""

import time

import pytest

from tests.bursard import wait_until
from tests.end_to_end.time.long_question import HELD, HOUR, LATER, PRICE, QUESTION
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
    when_settled,
)

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
