"""Progress of a run over HTTP, on both stores: its steps rise and its lease is renewed.

If its server is killed, another one takes over and answers once. A run is held at a step until the
test releases it.
"""

import signal
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import httpx
import pytest

from tests.bursard import wait_until
from tests.holding import HeldRuns
from tests.server import Json, Person, World, ask, ask_until_settled, lease_until, made, new_key

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I17")]

STEPS = 200
HELD_AT = 100
LEASE_SECONDS = 1.0  # short, so that the next server takes over soon
GRANT: Json = {"currency": "zcdp", "epsilon": 5, "delta": "1e-6"}


def opened(world: World) -> tuple[str, Person]:
    person, dataset = world.person(), world.dataset()
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


def progress_shown(client: httpx.Client) -> tuple[int, int] | None:
    """Progress of the one running question, read from the list and from the question itself."""
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


def test_progress_rises_and_the_lease_is_renewed_until_the_single_answer(
    world: World,
) -> None:
    runs = HeldRuns(world.ledger.folder, 0)
    world.serve(sabotage=runs.sabotage)
    dataset, person = opened(world)
    client, key = world.client(person), new_key()
    seen: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, world.client(person), question(dataset), key)
        for step in (0, STEPS // 4, STEPS // 2, STEPS - 1):
            runs.may_reach(step)
            shown = step * 10 // STEPS * STEPS // 10  # in tenths of the run

            def is_there(shown: int = shown) -> bool:
                progress = progress_shown(client)
                if progress is None:
                    return False
                assert progress[1] == STEPS
                seen.append(progress[0])
                return progress[0] == shown

            wait_until(is_there, 60, f"step {shown} was not shown")
            assert ask(client, question(dataset), key).status_code == 409
        leased = lease_until(world.ledger)
        wait_until(lambda: lease_until(world.ledger) > leased, 60, "the lease was not renewed")
        runs.let_go()
        first = asking.result()
    assert first.status_code == 200, first.text
    assert seen == sorted(seen)
    assert len(set(seen)) >= 4
    again = ask(client, question(dataset), key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    assert world.ledger.rows("SELECT attempt, state FROM charges") == [(1, "answered")]
    stored = made(client.get(f"/v1/queries/{first.json()['id']}"))
    assert (stored["status"], stored["progress"]) == ("answered", None)
    assert len(world.entries(dataset, "charge")) == 1
    world.must_be_sound()


def test_a_killed_run_is_taken_over_and_answered_once(world: World) -> None:
    runs = HeldRuns(world.ledger.folder, HELD_AT)
    server = world.serve(lease_seconds=LEASE_SECONDS, sabotage=runs.sabotage)
    dataset, person = opened(world)
    key = new_key()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, world.client(person), question(dataset), key)
        client = world.client(person)

        def has_begun() -> bool:
            progress = progress_shown(client)
            return progress is not None and progress[0] > 0

        wait_until(has_begun, 30, "the run did not start")
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


def test_a_stopping_server_does_not_wait_for_a_run(world: World) -> None:
    """It abandons the charge, and the next server takes over. The run would never end by itself."""
    runs = HeldRuns(world.ledger.folder, HELD_AT)
    server = world.serve(
        lease_seconds=LEASE_SECONDS, sabotage=runs.sabotage, BURSAR_STOP_SECONDS="4"
    )
    dataset, person = opened(world)
    key = new_key()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, world.client(person), question(dataset), key)
        client = world.client(person)
        wait_until(lambda: progress_shown(client) is not None, 30, "the run did not start")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
        reply = asking.exception() or asking.result()
    assert world.ledger.rows("SELECT state, attempt FROM charges") == [("charged", 1)]
    world.serve(lease_seconds=LEASE_SECONDS)
    settled = ask_until_settled(world.client(person), question(dataset), key, seconds=120)
    assert settled.status_code == 200, (settled.text, reply)
    assert len(world.entries(dataset, "charge")) == 1
    world.must_be_sound()


def test_other_questions_do_not_wait_for_runs(world: World) -> None:
    held = HeldRuns(world.ledger.folder, 0)
    world.serve(sabotage=held.sabotage)
    dataset, person = opened(world)
    count = {"dataset": dataset, "query": {"kind": "count"}, "privacy": {"rho": "0.0001"}}
    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(ask, world.client(person), question(dataset, STEPS + i), new_key())
            for i in range(4)
        ]
        client = world.client(person)
        wait_until(lambda: len(running(client)) == 4, 60, "the runs did not start")
        for i in range(10):
            query = {"kind": "count", "where": {"column": "age", "op": "<", "value": i}}
            assert ask(client, count | {"query": query}, new_key()).status_code == 200
        assert len(running(client)) == 4
        held.let_go()
        assert {reply.result().status_code for reply in runs} == {200}
    world.must_be_sound()
