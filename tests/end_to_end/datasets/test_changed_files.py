"""A file that changes after registration is not asked about until a new version is declared."""

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


def told(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json().get("type", "")


def a_dataset(world: World, person: Person, **changes: object) -> tuple[str, str]:
    """Its name and the file's."""
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
    assert told(refused) == CHANGED
    assert "new version" in refused.json()["detail"]
    assert "Nothing was charged" in refused.json()["detail"]
    assert told(ask(client, count(dataset, 1), new_key())) == CHANGED, "nothing new, stored or not"
    assert ask(client, fresh(dataset), key).content == first.content, "what was told is told again"
    made(client.post("/v1/queries/preview", json=fresh(dataset)))
    assert world.spent(dataset, person.name) == spent
    assert len(world.entries(dataset)) == entries

    declared = made(world.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True}))
    assert declared["fingerprint"]
    answered = made(ask(client, fresh(dataset), new_key()))
    assert 100 < answered["value"] < 300, "of the new rows, at a scale of 1"
    assert world.spent(dataset, person.name) == 2 * spent, "what was spent stays spent"
    world.must_be_sound()


def test_a_file_that_is_gone_is_refused_and_one_put_back_goes_on(live: World) -> None:
    person = live.person()
    client = live.client(person)
    dataset, file = a_dataset(live, person)
    path = live.ledger.data / file
    kept = path.read_bytes()
    made(ask(client, fresh(dataset), new_key()))
    path.unlink()
    assert told(ask(client, fresh(dataset), new_key())) == GONE
    path.write_bytes(kept[:-1])
    assert told(ask(client, fresh(dataset), new_key())) == CHANGED
    path.write_bytes(kept)
    made(ask(client, fresh(dataset), new_key()))
    nothing = live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})
    assert nothing.status_code == 409


def test_every_server_sees_it(world: World) -> None:
    """One that has just begun, too: what another one saw is not remembered for it."""
    person = world.person()
    dataset, file = a_dataset(world, person)
    made(ask(world.client(person), fresh(dataset), new_key()))
    world.server.stop()
    world.write_csv(some_rows(), name=file)
    world.serve()
    assert told(ask(world.client(person), fresh(dataset), new_key())) == CHANGED


def test_a_stream_does_not_go_on_over_changed_rows(live: World) -> None:
    person = live.person()
    client = live.client(person)
    dataset, file = a_dataset(live, person)
    stream = made(open_stream(client, above_threshold(dataset, crossings=5), new_key()))["id"]
    made(ask_stream(client, stream, request_key=new_key()))
    live.write_csv(some_rows(), name=file)
    assert told(ask_stream(client, stream, request_key=new_key())) == CHANGED
    assert told(open_stream(client, above_threshold(dataset), new_key())) == CHANGED


def test_an_epoch_is_not_appended_to_rows_that_changed(live: World) -> None:
    person = live.person()
    dataset, file = a_dataset(live, person)
    live.write_csv(some_rows(), name=file)
    later = {"append": {"path": live.write_csv(some_rows(5))}}
    assert told(live.admin.patch(f"/v1/datasets/{dataset}", json=later)) == CHANGED
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
    assert told(ask(client, fresh(dataset), new_key())) == CHANGED
    reply = live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})
    assert reply.json()["errors"][0]["pointer"] == "/refresh", "and not that nothing has changed"
    (live.ledger.data / later).write_bytes(kept)
    made(ask(client, fresh(dataset), new_key()))


def test_what_cannot_be_declared_says_why_at_its_field(live: World) -> None:
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
