"""A file that changes after registration gets no answers until a new version is declared."""

import secrets

import httpx
import pytest

from tests.server import (
    HEADER,
    Json,
    Person,
    World,
    above_threshold,
    ask,
    ask_stream,
    count,
    made,
    new_key,
    open_stream,
    some_rows,
)

CHANGED = (503, "/problems/source-changed")
GONE = (503, "/problems/engine-unavailable")


def status_and_problem(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json().get("type", "")


def a_dataset(world: World, person: Person, **changes: object) -> tuple[str, str]:
    """Names of a dataset and of its file."""
    file = world.write_csv(some_rows(), name=f"{secrets.token_hex(6)}.csv")
    dataset = world.dataset(file, **changes)
    world.grant(dataset, "*", 1000)
    world.grant(dataset, person.name, 10)
    return dataset, file


def fresh(dataset: str) -> Json:
    return count(dataset, 1, fresh=True)


@pytest.mark.invariant("I42")
def test_a_changed_file_is_refused_and_costs_nothing_until_it_is_declared(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    client = world.client(person)
    dataset, file = a_dataset(world, person)
    key = new_key()
    first = ask(client, fresh(dataset), key)
    made(first)
    spent, entries = world.spent(dataset, person.name), len(world.entries(dataset))

    world.write_csv(some_rows(200), name=file)
    refused = ask(client, fresh(dataset), new_key())
    assert status_and_problem(refused) == CHANGED
    assert "new version" in refused.json()["detail"]
    assert "Nothing was charged" in refused.json()["detail"]
    assert status_and_problem(ask(client, count(dataset, 1), new_key())) == CHANGED, (
        "no new question is answered, stored or not"
    )
    assert ask(client, fresh(dataset), key).content == first.content, "a stored answer is replayed"
    made(client.post("/v1/queries/preview", json=fresh(dataset)))
    assert world.spent(dataset, person.name) == spent
    assert len(world.entries(dataset)) == entries

    declared = made(world.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True}))
    assert declared["fingerprint"]
    answered = made(ask(client, fresh(dataset), new_key()))
    assert 100 < answered["value"] < 300, "the count of the new rows, with noise of scale 1"
    assert world.spent(dataset, person.name) == 2 * spent, "the spend stays"
    world.must_be_sound()


def test_a_missing_file_is_refused_until_it_is_restored(live: World) -> None:
    person = live.person()
    client = live.client(person)
    dataset, file = a_dataset(live, person)
    path = live.ledger.data / file
    kept = path.read_bytes()
    made(ask(client, fresh(dataset), new_key()))
    path.unlink()
    assert status_and_problem(ask(client, fresh(dataset), new_key())) == GONE
    path.write_bytes(kept[:-1])
    assert status_and_problem(ask(client, fresh(dataset), new_key())) == CHANGED
    path.write_bytes(kept)
    made(ask(client, fresh(dataset), new_key()))
    nothing = live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})
    assert nothing.status_code == 409


def test_every_server_notices_the_change(world: World) -> None:
    """A server that has just started notices it by itself too."""
    person = world.person()
    dataset, file = a_dataset(world, person)
    made(ask(world.client(person), fresh(dataset), new_key()))
    world.server.stop()
    world.write_csv(some_rows(), name=file)
    world.serve()
    assert status_and_problem(ask(world.client(person), fresh(dataset), new_key())) == CHANGED


def test_a_stream_stops_when_its_rows_change(live: World) -> None:
    person = live.person()
    client = live.client(person)
    dataset, file = a_dataset(live, person)
    stream = made(open_stream(client, above_threshold(dataset, crossings=5), new_key()))["id"]
    made(ask_stream(client, stream, request_key=new_key()))
    live.write_csv(some_rows(), name=file)
    assert status_and_problem(ask_stream(client, stream, request_key=new_key())) == CHANGED
    assert status_and_problem(open_stream(client, above_threshold(dataset), new_key())) == CHANGED


def test_no_epoch_is_appended_to_changed_rows(live: World) -> None:
    person = live.person()
    dataset, file = a_dataset(live, person)
    live.write_csv(some_rows(), name=file)
    later = {"append": {"path": live.write_csv(some_rows(5))}}
    assert status_and_problem(live.admin.patch(f"/v1/datasets/{dataset}", json=later)) == CHANGED
    assert made(live.admin.get(f"/v1/datasets/{dataset}"))["version"] == 1


def test_a_changed_epoch_is_refused_too(live: World) -> None:
    person = live.person()
    client = live.client(person)
    dataset, _ = a_dataset(live, person)
    later = live.write_csv(some_rows(5))
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": later}}))
    made(ask(client, fresh(dataset), new_key()))
    kept = (live.ledger.data / later).read_bytes()
    live.write_csv(some_rows(6), name=later)
    assert status_and_problem(ask(client, fresh(dataset), new_key())) == CHANGED
    reply = live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})
    assert reply.json()["errors"][0]["pointer"] == "/refresh", (
        "the refusal does not claim that nothing changed"
    )
    (live.ledger.data / later).write_bytes(kept)
    made(ask(client, fresh(dataset), new_key()))


def test_an_invalid_declaration_is_refused_with_a_reason_at_its_field(live: World) -> None:
    person = live.person()
    dataset, file = a_dataset(live, person)
    for rows, header in (([[1, 2]], HEADER), ([[1]], ["age"])):
        live.write_csv(rows, header, name=file)
        reply = live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})
        assert reply.status_code == 422, reply.text
        assert {error["pointer"] for error in reply.json()["errors"]} == {"/refresh"}
    (live.ledger.data / file).unlink()
    reply = live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})
    assert reply.json()["errors"][0]["pointer"] == "/refresh"
