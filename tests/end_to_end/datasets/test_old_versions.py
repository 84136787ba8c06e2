"""Prepared versions are deleted once they are unused, and never earlier."""

import secrets

import pytest

from tests.bursard import wait_until
from tests.server import (
    World,
    above_threshold,
    ask,
    ask_stream,
    ask_until_settled,
    card,
    count,
    made,
    new_key,
    open_stream,
    some_rows,
)


def prepared(world: World) -> set[str]:
    return {path.stem for path in (world.ledger.home / "versions").glob("*.duckdb")}


def current(world: World, dataset: str) -> str:
    query = f"SELECT version_id FROM datasets WHERE name = '{dataset}'"
    ((found,),) = world.ledger.rows(query)
    return str(found)


def append(world: World, dataset: str) -> None:
    path = world.write_csv(some_rows(5))
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": path}}))


def a_minute_later(world: World) -> None:
    """Pretend that a minute has passed: on PostgreSQL nothing is deleted in the first minute."""
    if world.ledger.kind == "postgresql":
        world.ledger.change("UPDATE versions SET created_at = created_at - 120000000")


def gone(world: World, version: str) -> None:
    wait_until(lambda: version not in prepared(world), 20, "the old version is deleted")


def again(world: World) -> None:
    """Stop the server and start it some time later."""
    a_minute_later(world)
    world.server.stop()
    world.serve()


def test_an_appended_epoch_leaves_one_version_that_answers(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset, other = world.open_dataset(person), world.open_dataset(person)
    client = world.client(person)
    # the version is open and its statistics are cached
    made(ask(client, count(dataset), new_key()))
    first, untouched = current(world, dataset), current(world, other)
    append(world, dataset)
    second = current(world, dataset)
    assert second != first
    assert prepared(world) >= {second, untouched}
    if world.ledger.kind == "postgresql":
        assert first in prepared(world)
        a_minute_later(world)
        append(world, other)
        untouched = current(world, other)
    assert first not in prepared(world)
    versions = world.ledger.home / "versions"
    assert not [path.name for path in versions.iterdir() if path.name.startswith(first)]
    made(ask(client, count(dataset, fresh=True), new_key()))
    made(ask(client, count(other), new_key()))
    append(world, dataset)
    a_minute_later(world)
    append(world, dataset)
    assert prepared(world) >= {current(world, dataset), untouched}
    assert not prepared(world) & {first, second}
    world.must_be_sound()


def test_a_refreshed_source_leaves_one_version(live: World) -> None:
    name = f"{secrets.token_hex(6)}.csv"
    dataset = live.dataset(live.write_csv(some_rows(), name=name))
    first = current(live, dataset)
    live.write_csv(some_rows(), name=name)
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True}))
    assert first not in prepared(live)
    assert current(live, dataset) in prepared(live)


@pytest.mark.invariant("I17")
@pytest.mark.crash
def test_a_version_stays_while_its_charge_is_open(world: World) -> None:
    """The server dies during the query. Another attempt takes over and settles the charge."""
    person = world.person()
    dataset = world.open_dataset(person)
    first = current(world, dataset)
    world.server.stop()
    dying = world.serve(fault="F5", lease_seconds=1)
    key = new_key()
    with pytest.raises(Exception):  # noqa: B017, PT011  # the connection may end in several ways
        ask(world.client(person), count(dataset), key)
    dying.wait_dead()
    world.serve(lease_seconds=1)
    append(world, dataset)
    assert {first, current(world, dataset)} <= prepared(world)
    again(world)
    append(world, dataset)
    assert first in prepared(world)
    # An earlier attempt may have read another version, so nothing is drawn again.
    reply = ask_until_settled(world.client(person), count(dataset), key)
    assert reply.status_code == 503
    again(world)
    gone(world, first)
    assert current(world, dataset) in prepared(world)
    world.must_be_sound()


@pytest.mark.invariant("I17")
@pytest.mark.crash
def test_a_version_stays_while_an_ask_of_a_stream_is_open(world: World) -> None:
    person = world.person()
    dataset = world.open_dataset(person)
    opened = made(open_stream(world.client(person), above_threshold(dataset), new_key()))
    first = current(world, dataset)
    world.server.stop()
    dying = world.serve(fault="F5", lease_seconds=1)
    with pytest.raises(Exception):  # noqa: B017, PT011  # the connection may end in several ways
        ask_stream(world.client(person), opened["id"], request_key=new_key())
    dying.wait_dead()
    world.serve(lease_seconds=1)
    append(world, dataset)
    assert first in prepared(world)
    world.ledger.change("UPDATE asks SET state = 'forfeited'")
    again(world)
    gone(world, first)


def test_versions_unknown_to_the_ledger_are_left_alone(world: World) -> None:
    """Another ledger may share the home, or a registration may not be stored yet."""
    world.open_dataset(world.person())
    versions = world.ledger.home / "versions"
    strangers = [versions / "v_000000000000stranger.duckdb", versions / "notes.txt"]
    for stranger in strangers:
        stranger.write_bytes(b"not ours")
    before = prepared(world)
    again(world)
    append(world, world.open_dataset(world.person()))
    assert before <= prepared(world)
    assert all(stranger.exists() for stranger in strangers)


def test_a_refused_registration_leaves_no_version(live: World) -> None:
    dataset = live.dataset()
    before = prepared(live)
    body = card(live.write_csv(some_rows()), name=dataset)
    assert live.admin.post("/v1/datasets", json=body).status_code == 409
    source = live.write_csv(some_rows(3))
    place = f"/v1/datasets/{dataset}"
    made(live.admin.patch(place, json={"append": {"path": source}}))
    after = prepared(live)
    assert live.admin.patch(place, json={"append": {"path": source}}).status_code == 409
    assert prepared(live) == after
    assert len(after) == len(before)


def test_two_servers_that_start_at_once_delete_no_current_version(world: World) -> None:
    person = world.person()
    datasets = [world.open_dataset(person) for _ in range(3)]
    for dataset in datasets:
        append(world, dataset)
    kept = {current(world, dataset) for dataset in datasets}
    for _ in range(2):
        world.ledger.serve()
    assert prepared(world) >= kept
    for dataset in datasets:
        made(ask(world.client(person), count(dataset), new_key()))


@pytest.mark.invariant("I17")
@pytest.mark.saboteur
def test_saboteur_a_server_that_ignores_open_charges_is_caught(world: World) -> None:
    person = world.person()
    dataset = world.open_dataset(person)
    first = current(world, dataset)
    made(ask(world.client(person), count(dataset), new_key()))
    world.ledger.change("UPDATE charges SET state = 'charged', answer = NULL")
    append(world, dataset)
    assert first in prepared(world)
    a_minute_later(world)
    world.server.stop()
    world.serve(
        sabotage="import app.store.datasets.old_versions as o; o._is_needed = lambda *_: False"
    )
    gone(world, first)
