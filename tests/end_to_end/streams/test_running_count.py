"""Epochs and running counts through HTTP: rows arrive, and each epoch is counted once."""

import signal
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import httpx
import pytest

from tests.conftest import Counts
from tests.end_to_end.crashes.test_crash_points import LEASE_SECONDS
from tests.end_to_end.crashes.test_stream_crashes import patiently
from tests.server import (
    Json,
    World,
    above_threshold,
    ask,
    ask_stream,
    count,
    exact,
    made,
    new_key,
    open_stream,
    post_ask,
    running_count,
    some_rows,
)

SURE = "800"


def append(world: World, dataset: str, rows: int = 10) -> Json:
    path = world.write_csv(some_rows(rows))
    return made(world.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": path}}))


def latest_count(client: httpx.Client, stream: str) -> Json:
    return made(post_ask(client, stream, {}))


# Appending


def test_an_epoch_is_a_new_version_and_an_entry_of_the_same_book(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=10_000, total=20_000)
    client = world.client(person)
    before = made(ask(client, count(dataset, 1000)))
    assert before["value"] == 60
    first = made(world.admin.get(f"/v1/datasets/{dataset}"))
    changed = append(world, dataset)
    assert (first["version"], changed["version"]) == (1, 2)
    assert changed["fingerprint"] != first["fingerprint"]
    assert {k: v for k, v in changed.items() if k not in ("version", "fingerprint")} == {
        k: v for k, v in first.items() if k not in ("version", "fingerprint")
    }
    after = ask(client, count(dataset, 1000))
    assert "Bursar-Reused" not in after.headers, "an answer for an older version is not reused"
    assert after.json()["value"] == 70
    assert world.spent(dataset, person.name) == 2000
    (entry,) = world.entries(dataset, "epoch_appended")
    assert entry["body"]["before"]["epoch"] == 1
    assert entry["body"]["after"]["epoch"] == 2
    world.must_be_sound()


def test_rows_of_an_epoch_have_their_loss_under_another_name(live_on_each: World) -> None:
    world = live_on_each
    dataset = world.dataset(base := world.write_csv(some_rows()))
    world.grant(dataset, "*", 5)
    later = world.write_csv(some_rows(10))
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": later}}))
    lines = [(world.ledger.data / name).read_text().splitlines() for name in (base, later)]
    whole = f"{new_key()}.csv"
    (world.ledger.data / whole).write_text("\n".join([*lines[1], *lines[0][1:]]) + "\n")
    for path in (later, whole, world.write_parquet(whole)):
        alias = world.dataset(path)
        assert world.budget(alias, "*")["limit"]["epsilon"] == 5


def test_invalid_epochs_are_refused_and_change_nothing(live: World) -> None:
    world = live
    dataset, other = world.dataset(), world.dataset(theirs := world.write_csv(some_rows()))
    url = f"/v1/datasets/{dataset}"
    mine = world.write_csv(some_rows(5))
    made(world.admin.patch(url, json={"append": {"path": mine}}))
    short = world.write_csv([[1]], header=["age"])
    copied = world.write_parquet(theirs)
    refused = {
        "a file twice": (mine, 409),
        "another dataset's file": (theirs, 409),
        "another dataset's rows": (copied, 409),
        "a file with other columns": (short, 422),
        "no file": ("gone.csv", 422),
        "a file outside": ("../../etc/passwd", 422),
    }
    for what, (path, status) in refused.items():
        reply = world.admin.patch(url, json={"append": {"path": path}})
        assert reply.status_code == status, (what, reply.text)
        if status == 422:
            assert reply.json()["errors"][0]["pointer"] == "/append/path"
    together = {"append": {"path": world.write_csv(some_rows(3))}, "status": "closed"}
    assert world.admin.patch(url, json=together).status_code == 422
    assert made(world.admin.get(url))["version"] == 2
    assert made(world.admin.get(f"/v1/datasets/{other}"))["version"] == 1
    fixed = world.dataset(neighbours="replace_one", rows=60)
    reply = world.admin.patch(
        f"/v1/datasets/{fixed}", json={"append": {"path": world.write_csv(some_rows(2))}}
    )
    assert reply.json()["errors"][0]["pointer"] == "/append"
    ada = world.client("ada")
    assert ada.patch(url, json={"append": {"path": mine}}).status_code == 403


def test_rows_of_a_dataset_cannot_be_appended_to_it_again(live_on_each: World) -> None:
    """The copies differ in file, format and order: of the source, of an epoch, and of all rows."""
    world = live_on_each
    dataset = world.dataset(base := world.write_csv(some_rows()))
    url = f"/v1/datasets/{dataset}"
    later = world.write_csv(some_rows(10))
    made(world.admin.patch(url, json={"append": {"path": later}}))
    lines = [(world.ledger.data / name).read_text().splitlines() for name in (base, later)]
    whole = f"{new_key()}.csv"
    (world.ledger.data / whole).write_text("\n".join([*lines[0], *lines[1][1:]]) + "\n")
    for again in (base, later, whole):
        copy = world.write_parquet(again)
        reply = world.admin.patch(url, json={"append": {"path": copy}})
        assert reply.status_code == 409, again
        assert "already" in reply.json()["detail"]
    assert made(world.admin.get(url))["version"] == 2
    empty = [world.write_csv([]) for _ in range(2)]
    for path in empty:  # they repeat nobody
        made(world.admin.patch(url, json={"append": {"path": path}}))
    made(world.admin.patch(url, json={"append": {"path": world.write_csv(some_rows(10))}}))


def test_the_same_epoch_can_be_appended_under_another_name(live: World) -> None:
    world = live
    first = world.dataset(base := world.write_csv(some_rows()))
    second = world.dataset(world.write_parquet(base))
    later = world.write_csv(some_rows(10))
    for dataset, path in ((first, later), (second, world.write_parquet(later))):
        made(world.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": path}}))
    reply = world.admin.patch(
        f"/v1/datasets/{second}", json={"append": {"path": world.write_parquet(later)}}
    )
    assert reply.status_code == 409


def test_two_concurrent_epochs_are_both_appended_and_counted_once(world: World) -> None:
    dataset = world.open_dataset(world.people["ada"], epsilon=10_000, total=10_000)
    paths = [world.write_csv(some_rows(10)) for _ in range(4)]
    servers = [world.serve(), world.serve(elsewhere=True)]
    clients = [server.client(world.ledger.admin_key) for server in servers]

    def send(number: int) -> int:
        reply = clients[number % 2].patch(
            f"/v1/datasets/{dataset}", json={"append": {"path": paths[number]}}
        )
        assert reply.status_code in (200, 409), reply.text
        return reply.status_code

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(send, range(4))).count(200)
    assert done >= 1
    assert made(world.admin.get(f"/v1/datasets/{dataset}"))["version"] == 1 + done
    assert made(ask(world.client("ada"), count(dataset, 1000)))["value"] == 60 + 10 * done
    world.must_be_sound()


# Counting


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
