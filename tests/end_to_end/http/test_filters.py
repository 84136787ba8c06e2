"""Search of history and ledger by holder, kind, status and time, on both stores."""

import datetime
from typing import Any

import pytest

from tests.server import Json, Person, World, ask, count, made, new_key


@pytest.fixture(scope="module")
def asked_world(live_on_each: World) -> tuple[World, Person, Person]:
    """Two analysts with history: three counts, a sum and its repeat; and one count."""
    world = live_on_each
    eve, may = world.person("Eve"), world.person()
    dataset = world.open_dataset(eve, may)
    client = world.client(eve)
    for _ in range(3):
        made(ask(client, count(dataset, 0.1, fresh=True), new_key()))
    total: Json = {"kind": "sum", "column": "age"}
    body = {"dataset": dataset, "query": total, "privacy": {"epsilon": 0.1}}
    made(ask(client, body, new_key()))
    made(ask(client, body, new_key()))  # free
    made(ask(world.client(may), count(dataset, 0.1), new_key()))
    return world, eve, may


def listed(client: Any, path: str, **filters: Any) -> list[Json]:
    """Items of all pages, with two items per page."""
    items: list[Json] = []
    cursor: dict[str, str] = {}
    while True:
        page = made(client.get(path, params={"limit": 2, **filters, **cursor}))
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        cursor = {"cursor": page["next_cursor"]}


def test_an_administrator_finds_the_questions_of_one_person(
    asked_world: tuple[World, Person, Person],
) -> None:
    world, _, may = asked_world
    assert len(listed(world.admin, "/v1/queries", holder="eve")) == 5
    (alone,) = listed(world.admin, "/v1/queries", holder=may.name)
    assert alone["analyst"] == may.name
    assert world.admin.get("/v1/queries", params={"holder": "nobody"}).status_code == 404


def test_an_analyst_finds_only_their_own_questions(
    asked_world: tuple[World, Person, Person],
) -> None:
    world, eve, may = asked_world
    client = world.client(may)
    assert len(listed(client, "/v1/queries")) == 1
    assert len(listed(client, "/v1/queries", holder=may.name.upper())) == 1
    others = [client.get("/v1/queries", params={"holder": name}) for name in (eve.name, "nobody")]
    assert [reply.status_code for reply in others] == [404, 404]
    assert others[0].content == others[1].content
    assert listed(client, "/v1/queries", kind="sum") == []


def test_questions_are_found_by_kind_with_free_repeats(
    asked_world: tuple[World, Person, Person],
) -> None:
    world, eve, _ = asked_world
    client = world.client(eve)
    for kind, number in (("count", 3), ("sum", 2), ("median", 0), ("running_count", 0)):
        found = listed(client, "/v1/queries", kind=kind)
        assert [item["question"]["query"]["kind"] for item in found] == [kind] * number
    refused = client.get("/v1/queries", params={"kind": "cuont"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["rule"].endswith("; did you mean 'count'?")


def test_questions_are_found_by_status(asked_world: tuple[World, Person, Person]) -> None:
    world, eve, _ = asked_world
    client = world.client(eve)
    answered = listed(client, "/v1/queries", status="answered")
    assert [item["status"] for item in answered] == ["answered"] * 5
    for other in ("running", "withheld", "forfeited", "voided"):
        assert listed(client, "/v1/queries", status=other) == []
    refused = client.get("/v1/queries", params={"status": "anwsered"})
    assert refused.json()["errors"][0]["rule"].endswith("; did you mean 'answered'?")


def test_since_includes_its_own_instant(asked_world: tuple[World, Person, Person]) -> None:
    world, eve, _ = asked_world
    client = world.client(eve)
    everything = listed(client, "/v1/queries")
    middle = everything[2]["asked_at"]
    assert listed(client, "/v1/queries", since=middle) == everything[:3]
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    elsewhere = datetime.datetime.fromisoformat(middle).astimezone(zone).isoformat()
    assert listed(client, "/v1/queries", since=elsewhere) == everything[:3]
    assert listed(client, "/v1/queries", since=middle.replace("Z", "1Z")) == everything[:2]
    entries = listed(world.admin, "/v1/ledger")
    after = listed(world.admin, "/v1/ledger", since=entries[5]["at"])
    assert after == [entry for entry in entries if entry["at"] >= entries[5]["at"]]


@pytest.mark.parametrize(
    "since",
    ["yesterday", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T00:00:00Z", "2026-W01-1T0Z", ""],
)
@pytest.mark.parametrize("path", ["/v1/queries", "/v1/ledger"])
def test_an_unreadable_time_is_refused(
    asked_world: tuple[World, Person, Person], path: str, since: str
) -> None:
    refused = asked_world[0].admin.get(path, params={"since": since})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/since"]


def test_entries_are_found_by_holder_and_kind(asked_world: tuple[World, Person, Person]) -> None:
    world, _, _ = asked_world
    own = listed(world.admin, "/v1/ledger", holder="EVE")
    assert [entry["kind"] for entry in own] == ["grant", *["charge"] * 4]
    charges = listed(world.admin, "/v1/ledger", holder="eve", kind="charge")
    assert charges == own[1:]
    assert all("eve" in entry["body"]["accounts"] for entry in charges)
    everybody = listed(world.admin, "/v1/ledger", holder="*", kind="charge")
    assert len(everybody) == 5
    assert listed(world.admin, "/v1/ledger", holder="group:none") == []
    kinds = {entry["kind"] for entry in listed(world.admin, "/v1/ledger", kind="key_issued")}
    assert kinds == {"key_issued"}
    refused = world.admin.get("/v1/ledger", params={"kind": "chrage"})
    assert refused.json()["errors"][0]["rule"].endswith("; did you mean 'charge'?")


def test_newest_entries_come_first_if_asked(asked_world: tuple[World, Person, Person]) -> None:
    world, _, _ = asked_world
    for filters in ({}, {"dataset": "people"}, {"holder": "eve"}):
        oldest = listed(world.admin, "/v1/ledger", **filters)
        newest = listed(world.admin, "/v1/ledger", order="newest", **filters)
        assert len(oldest) > 3
        assert newest == oldest[::-1]
    refused = world.admin.get("/v1/ledger", params={"order": "newst"})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/order"]


def test_filters_combine_with_a_dataset(asked_world: tuple[World, Person, Person]) -> None:
    world, _, _ = asked_world
    dataset = listed(world.admin, "/v1/queries", holder="eve")[0]["dataset"]
    found = listed(world.admin, "/v1/ledger", dataset=dataset, kind="grant")
    assert [entry["body"]["holder"] for entry in found][:2] == ["*", "eve"]


def test_a_running_question_is_found_as_running_until_its_grid_point(
    asked_world: tuple[World, Person, Person],
) -> None:
    """A stored answer before its grid point must not be found as answered."""
    world, _, may = asked_world
    client = world.client(may)
    (item,) = listed(client, "/v1/queries")
    later = "9999999999999999"
    world.ledger.change(f"UPDATE charges SET settled_at = {later} WHERE id = '{item['id']}'")
    assert listed(client, "/v1/queries", status="answered") == []
    (listed_item,) = listed(client, "/v1/queries", status="running")
    assert (listed_item["id"], listed_item["status"], listed_item["answer"]) == (
        item["id"],
        "running",
        None,
    )
    # A withheld answer is found by its own status alone.
    world.ledger.change(
        f"UPDATE charges SET settled_at = created_at + 1, answer = replace(answer, "
        f'\'"status":"answered"\', \'"status":"withheld"\') WHERE id = \'{item["id"]}\''
    )
    (listed_item,) = listed(client, "/v1/queries", status="withheld")
    assert (listed_item["id"], listed_item["status"]) == (item["id"], "withheld")
    assert listed(client, "/v1/queries", status="answered") == []
