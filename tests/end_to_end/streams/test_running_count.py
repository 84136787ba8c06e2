"""Running counts through HTTP: each epoch is counted once."""

import signal
from decimal import Decimal

import httpx
import pytest

from tests.conftest import Counts
from tests.end_to_end.crashes.test_crash_points import LEASE_SECONDS
from tests.end_to_end.crashes.test_stream_crashes import patiently
from tests.end_to_end.streams.epochs import append, latest_count
from tests.server import (
    Json,
    World,
    above_threshold,
    ask_stream,
    exact,
    made,
    new_key,
    open_stream,
    post_ask,
    running_count,
    some_rows,
)

SURE = "800"


def test_each_epoch_is_counted_once_and_a_repeat_returns_the_same(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1000)
    client = world.client(person)
    stream = made(open_stream(client, running_count(dataset, SURE, epochs_max=3)))
    assert (stream["crossings_left"], stream["asks_left"]) == (None, None)
    smokers = made(
        open_stream(
            client,
            running_count(
                dataset,
                "100",
                epochs_max=3,
                where={"column": "smoker", "op": "==", "value": True},
            ),
        )
    )
    assert (
        latest_count(client, stream["id"])["epoch"],
        latest_count(client, stream["id"])["value"],
    ) == (1, 60)
    append(world, dataset)
    append(world, dataset, rows=0)
    first, again = latest_count(client, stream["id"]), latest_count(client, stream["id"])
    assert (first["epoch"], first["value"]) == (3, 70)
    assert first["interval"]["low"] <= 70 <= first["interval"]["high"]
    assert {k: v for k, v in again.items() if k != "id"} == {
        k: v for k, v in first.items() if k != "id"
    }
    assert latest_count(client, smokers["id"])["value"] == 35
    wrong = post_ask(client, stream["id"], {"query": {"kind": "count"}})
    assert wrong.json()["errors"][0]["pointer"] == "/query"
    append(world, dataset)
    ended = post_ask(client, stream["id"], {})
    assert (ended.status_code, ended.json()["type"]) == (409, "/problems/stream-ended")
    late = open_stream(client, running_count(dataset, 1, epochs_max=3))
    assert late.json()["errors"][0]["pointer"] == "/stream/epochs_max"
    assert world.spent(dataset, person.name) == Decimal(900)
    world.must_be_sound()


def test_the_noise_of_a_node_is_drawn_once_for_all_its_answers(live_on_each: World) -> None:
    """At this epsilon two draws are equal with probability below 1e-3: ten asks would show it."""
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1)
    client = world.client(person)
    stream = made(open_stream(client, running_count(dataset, "0.002", epochs_max=7)))["id"]
    for epoch in range(1, 5):
        values = {latest_count(client, stream)["value"] for _ in range(3)}
        assert len(values) == 1, epoch
        append(world, dataset, rows=1)
    rows = world.ledger.rows(
        f"SELECT first_epoch, last_epoch FROM nodes WHERE stream_id = '{stream}'"
    )
    assert sorted(rows) == [(1, 1), (1, 2), (1, 4), (3, 3)]


@pytest.mark.invariant("I14")
@pytest.mark.crash
@pytest.mark.parametrize("point", ["F6", "F7", "F8", "F9"])
def test_a_server_killed_while_counting_leaves_one_answer_for_the_epoch(
    world: World, point: str, counts: Counts
) -> None:
    stream = made(open_stream(world.client("ada"), running_count("people", "0.01")))["id"]
    armed = world.serve(fault=f"{point}=kill", lease_seconds=LEASE_SECONDS)
    with pytest.raises(httpx.TransportError):
        post_ask(world.client("ada"), stream, {}, "dies")
    assert armed.wait_dead() == -signal.SIGKILL
    before = world.ledger.rows("SELECT noisy_count FROM nodes")
    assert len(before) == (point == "F9")
    world.serve(lease_seconds=LEASE_SECONDS)
    client = world.client("ada")
    reply = patiently(lambda: post_ask(client, stream, {}, "dies"))
    assert reply.status_code == 200, reply.text
    assert post_ask(client, stream, {}, "dies").content == reply.content
    assert latest_count(client, stream)["value"] == reply.json()["value"]
    after = world.ledger.rows("SELECT noisy_count FROM nodes")
    assert after == [(reply.json()["value"],)]
    assert before in ([], after)
    assert world.spent("people", "ada") == Decimal("0.01")
    world.must_be_sound()
    counts("crash points of running counts", 1)


def test_a_restart_and_another_server_keep_the_same_nodes(world: World) -> None:
    stream = made(open_stream(world.client("ada"), running_count("people", "0.01")))["id"]
    value = latest_count(world.client("ada"), stream)["value"]
    world.ledger.stop()
    for elsewhere in (False, True):
        world.serve(elsewhere=elsewhere)
        assert latest_count(world.client("ada"), stream)["value"] == value


TERMS = {"epsilon": 10, "delta": 1e-6}
PAYS = [
    ("zcdp", {"rho": 0.1}, True),
    ("renyi", {"rho": 0.1}, True),
    ("approximate", {"rho": 0.1, "delta": 1e-7}, True),
    ("approximate", {"rho": 0.1}, False),
    ("gdp", {"rho": 0.1}, False),
    ("gdp", {"epsilon": 0.5}, True),
    ("zcdp", {"epsilon": 0.5}, True),
]


@pytest.mark.parametrize(("currency", "privacy", "pays"), PAYS)
def test_each_currency_pays_for_the_noise_it_can_count(
    live: World, currency: str, privacy: Json, pays: bool
) -> None:
    person = live.person()
    dataset = live.dataset()
    for holder in ("*", person.name):
        place = f"/v1/datasets/{dataset}/budgets/{holder}"
        made(live.admin.put(place, json={"currency": currency, **TERMS}))
    client = live.client(person)
    reply = open_stream(client, {**running_count(dataset), "privacy": privacy})
    if not pays:
        assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, "/mechanism")
        assert live.budget(dataset, person.name)["used"] == 0
        return
    stream = made(reply)
    noise = "gaussian" if "rho" in privacy else "laplace"
    assert stream["mechanism"]["noise"] == noise
    assert exact(stream["charged"], "rho" if "rho" in privacy else "epsilon") > 0
    assert latest_count(client, stream["id"])["epoch"] == 1
    live.must_be_sound()


def test_replace_one_refuses_a_running_count(live: World) -> None:
    person = live.person()
    dataset = live.dataset(neighbours="replace_one", rows=60)
    live.grant(dataset, "*", 10)
    live.grant(dataset, person.name, 10)
    refused = open_stream(live.client(person), running_count(dataset))
    assert refused.json()["errors"][0]["pointer"] == "/dataset"


def test_a_running_count_on_cells_is_charged_to_those_cells(live: World) -> None:
    person = live.person()
    dataset = live.dataset(cells={"column": "region"})
    live.grant(dataset, "*", 10)
    live.grant(dataset, person.name, 10)
    client = live.client(person)
    north = {"column": "region", "op": "==", "value": "north"}
    stream = made(open_stream(client, running_count(dataset, 1, where=north)))
    assert stream["charged"]["cells"] == ["north"]
    above = made(
        open_stream(
            client,
            {
                "dataset": dataset,
                "stream": {
                    "kind": "above_threshold",
                    "threshold": 1,
                    "crossings": 1,
                    "asks_max": 1,
                },
                "privacy": {"epsilon": 1},
            },
        )
    )
    assert above["charged"]["cells"] is None, "the filters of later asks are not known yet"
    live.must_be_sound()


def test_answers_about_replaced_rows_are_not_repeated_for_the_new_rows(
    live_on_each: World,
) -> None:
    """The stream waits for the next epoch and then counts all new rows.

    A repeated key still returns its stored answer. A stream opened later, or one that compares,
    reads the new rows.
    """
    world = live_on_each
    person = world.person()
    path = world.write_csv(some_rows())
    dataset = world.dataset(path)
    for holder in ("*", person.name):
        world.grant(dataset, holder, 10_000)
    client = world.client(person)
    counting = made(open_stream(client, running_count(dataset, SURE)))["id"]
    comparing = made(open_stream(client, above_threshold(dataset, SURE)))["id"]
    key = new_key()
    before = made(post_ask(client, counting, {}, key))
    assert before["value"] == 60
    world.write_csv(some_rows(20), name=path)
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True}))
    refused = post_ask(client, counting, {})
    assert refused.status_code == 409, refused.text
    assert "next epoch" in refused.json()["detail"]
    assert made(post_ask(client, counting, {}, key)) == before
    another = made(open_stream(client, running_count(dataset, SURE)))["id"]
    assert made(post_ask(client, another, {}))["value"] == 20
    assert made(ask_stream(client, comparing))["above"] is False
    for rows in (30, 40):
        append(world, dataset)
        assert [made(post_ask(client, each, {}))["value"] for each in (counting, another)] == (
            [rows, rows]
        )
    world.must_be_sound()
