"""A run of seconds, watched over HTTP on both stores: its steps rise, its lease is renewed, and if
its server is killed another one takes over and answers once."""

import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal

import httpx
import pytest

from tests.server import (
    Json,
    Person,
    World,
    ask,
    ask_until_settled,
    made,
    new_key,
    some_rows,
    wait_until,
)

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I17")]

STEPS = 10_000
ROWS = 20_000
LEASE_SECONDS = 1.0  # far less than a run takes
GRANT: Json = {"currency": "zcdp", "epsilon": 5, "delta": "1e-6"}


def opened(world: World) -> tuple[str, Person]:
    person, dataset = world.person(), world.dataset(world.write_csv(some_rows(ROWS)))
    for holder in ("*", person.name):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=GRANT))
    return dataset, person


def question(dataset: str, steps: int = STEPS) -> Json:
    return {
        "dataset": dataset,
        "query": {"kind": "logistic_regression", "outcome": "smoker", "features": ["age"]},
        "privacy": {"rho": "0.05"},
        "mechanism": {"kind": "noisy_gradient_descent", "steps": steps},
    }


def running(client: httpx.Client) -> list[Json]:
    items: list[Json] = made(client.get("/v1/queries"))["items"]
    return [item for item in items if item["status"] == "running"]


def told(client: httpx.Client) -> tuple[int, int] | None:
    """The progress of the one question that runs, as the list and the question itself tell it."""
    items = running(client)
    if not items or items[0]["progress"] is None:
        return None
    one = made(client.get(f"/v1/queries/{items[0]['id']}"))
    if one["progress"] is None:
        return None
    assert one["progress"]["step"] >= items[0]["progress"]["step"]
    assert set(one["progress"]) == {"step", "steps"}
    assert one["answer"] is None
    return one["progress"]["step"], one["progress"]["steps"]


def watched(world: World, person: Person, asking: "Future[httpx.Response]") -> list[int]:
    """Every step that was seen while the question ran."""
    client, seen = world.client(person), list[int]()
    while not asking.done():
        progress = told(client)
        if progress is not None:
            assert progress[1] == STEPS
            seen.append(progress[0])
        time.sleep(0.1)
    return seen


def test_progress_rises_while_a_run_outlives_its_lease_and_the_answer_is_given_again(
    world: World,
) -> None:
    world.serve(lease_seconds=LEASE_SECONDS)
    dataset, person = opened(world)
    client, key = world.client(person), new_key()
    refused = 0
    with ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        asking = pool.submit(ask, world.client(person), question(dataset), key)
        wait_until(lambda: bool(running(client)), 20, "the question was not begun")
        while not asking.done() and refused < 3:
            time.sleep(LEASE_SECONDS / 2)
            refused += ask(client, question(dataset), key).status_code == 409
        seen = watched(world, person, asking)
        first = asking.result()
        lasted = time.monotonic() - started
    assert lasted > 2 * LEASE_SECONDS
    assert refused == 3
    assert first.status_code == 200, first.text
    assert seen == sorted(seen)
    assert len(set(seen)) >= 3
    assert 0 <= seen[0] < seen[-1] <= STEPS
    again = ask(client, question(dataset), key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    assert world.ledger.rows("SELECT attempt, state FROM charges") == [(1, "answered")]
    stored = made(client.get(f"/v1/queries/{first.json()['id']}"))
    assert (stored["status"], stored["progress"]) == ("answered", None)
    assert len(world.entries(dataset, "charge")) == 1
    world.must_be_sound()


def test_a_run_that_is_killed_is_taken_over_and_answered_once(world: World) -> None:
    server = world.serve(lease_seconds=LEASE_SECONDS)
    dataset, person = opened(world)
    key = new_key()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, world.client(person), question(dataset), key)
        client = world.client(person)

        def has_begun() -> bool:
            progress = told(client)
            return progress is not None and progress[0] > 0

        wait_until(has_begun, 30, "the run did not begin")
        server.process.send_signal(signal.SIGKILL)
        assert server.wait_dead() == -signal.SIGKILL
        with pytest.raises(httpx.TransportError):
            asking.result()
    (row,) = world.ledger.rows("SELECT state, attempt, progress_step FROM charges")
    assert row[:2] == ("charged", 1)
    assert 0 < row[2] < STEPS

    world.serve(lease_seconds=LEASE_SECONDS)
    client = world.client(person)
    first = ask_until_settled(client, question(dataset), key, seconds=120)
    assert first.status_code == 200, first.text
    again = ask(client, question(dataset), key)
    assert again.content == first.content
    assert world.ledger.rows("SELECT state, attempt FROM charges") == [("answered", 2)]
    assert len(world.entries(dataset, "charge")) == 1
    assert world.entries(dataset, "void") == []
    spent = world.budget(dataset, person.name)["spent"]
    assert Decimal(repr(spent["rho"])) == Decimal(repr(first.json()["charged"]["rho"]))
    world.must_be_sound()


def test_a_server_that_is_told_to_stop_does_not_wait_for_a_run(world: World) -> None:
    """It leaves the charge as one that vanished: the next server takes over."""
    server = world.serve(lease_seconds=LEASE_SECONDS)
    dataset, person = opened(world)
    key = new_key()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, world.client(person), question(dataset), key)
        client = world.client(person)
        wait_until(lambda: told(client) is not None, 30, "the run did not begin")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(20)
        reply = asking.exception() or asking.result()
    world.serve(lease_seconds=LEASE_SECONDS)
    settled = ask_until_settled(world.client(person), question(dataset), key, seconds=120)
    assert settled.status_code == 200, (settled.text, reply)
    assert len(world.entries(dataset, "charge")) == 1
    world.must_be_sound()


def test_other_questions_do_not_wait_for_runs(world: World) -> None:
    world.serve()
    dataset, person = opened(world)
    count = {"dataset": dataset, "query": {"kind": "count"}, "privacy": {"rho": "0.0001"}}
    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(ask, world.client(person), question(dataset, 4000 + i), new_key())
            for i in range(4)
        ]
        client = world.client(person)
        wait_until(lambda: len(running(client)) == 4, 20, "the runs were not begun")
        for i in range(10):
            query = {"kind": "count", "where": {"column": "age", "op": "<", "value": i}}
            made(ask(client, count | {"query": query}, new_key()))
        assert len(running(client)) >= 3
        assert {reply.result().status_code for reply in runs} == {200}
    world.must_be_sound()
