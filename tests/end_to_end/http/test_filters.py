"""History and ledger are searched by holder, kind, status and time, on both stores."""

import datetime
from typing import Any

import pytest

from tests.server import Json, Person, World, ask, count, made, new_key


@pytest.fixture(scope="module")
def told(live_on_each: World) -> tuple[World, Person, Person]:
    """Two people who have asked: three counts, a sum and a repetition; one count."""
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
    """All pages, of two items each."""
    found: list[Json] = []
    cursor: dict[str, str] = {}
    while True:
        page = made(client.get(path, params={"limit": 2, **filters, **cursor}))
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_an_administrator_finds_one_persons_questions(told: tuple[World, Person, Person]) -> None:
    world, _, may = told
    assert len(listed(world.admin, "/v1/queries", holder="eve")) == 5
    (alone,) = listed(world.admin, "/v1/queries", holder=may.name)
    assert alone["analyst"] == may.name
    assert world.admin.get("/v1/queries", params={"holder": "nobody"}).status_code == 404


def test_an_analyst_finds_only_their_own(told: tuple[World, Person, Person]) -> None:
    world, eve, may = told
    client = world.client(may)
    assert len(listed(client, "/v1/queries")) == 1
    assert len(listed(client, "/v1/queries", holder=may.name.upper())) == 1
    others = [client.get("/v1/queries", params={"holder": name}) for name in (eve.name, "nobody")]
    assert [reply.status_code for reply in others] == [404, 404]
    assert others[0].content == others[1].content
    assert listed(client, "/v1/queries", kind="sum") == []


def test_questions_by_kind_with_what_was_repeated_for_free(
    told: tuple[World, Person, Person],
) -> None:
    world, eve, _ = told
    client = world.client(eve)
    for kind, number in (("count", 3), ("sum", 2), ("median", 0), ("running_count", 0)):
        found = listed(client, "/v1/queries", kind=kind)
        assert [item["question"]["query"]["kind"] for item in found] == [kind] * number
    refused = client.get("/v1/queries", params={"kind": "cuont"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["rule"].endswith("; did you mean 'count'?")


def test_questions_by_status(told: tuple[World, Person, Person]) -> None:
    world, eve, _ = told
    client = world.client(eve)
    answered = listed(client, "/v1/queries", status="answered")
    assert [item["status"] for item in answered] == ["answered"] * 5
    for other in ("running", "withheld", "forfeited", "voided"):
        assert listed(client, "/v1/queries", status=other) == []
    refused = client.get("/v1/queries", params={"status": "anwsered"})
    assert refused.json()["errors"][0]["rule"].endswith("; did you mean 'answered'?")


def test_since_is_the_first_moment_that_counts(told: tuple[World, Person, Person]) -> None:
    world, eve, _ = told
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
def test_a_time_that_cannot_be_read_is_refused(
    told: tuple[World, Person, Person], path: str, since: str
) -> None:
    refused = told[0].admin.get(path, params={"since": since})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/since"]


def test_entries_by_holder_and_kind(told: tuple[World, Person, Person]) -> None:
    world, _, _ = told
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


def test_filters_go_with_a_dataset(told: tuple[World, Person, Person]) -> None:
    world, _, _ = told
    dataset = listed(world.admin, "/v1/queries", holder="eve")[0]["dataset"]
    found = listed(world.admin, "/v1/ledger", dataset=dataset, kind="grant")
    assert [entry["body"]["holder"] for entry in found][:2] == ["*", "eve"]


def test_a_running_question_is_found_as_running_until_the_grid_lets_it_out(
    told: tuple[World, Person, Person],
) -> None:
    """An answer that is stored but not yet told must not be found as answered."""
    world, _, may = told
    client = world.client(may)
    (item,) = listed(client, "/v1/queries")
    later = "9999999999999999"
    world.ledger.change(f"UPDATE charges SET settled_at = {later} WHERE id = '{item['id']}'")
    assert listed(client, "/v1/queries", status="answered") == []
    (found,) = listed(client, "/v1/queries", status="running")
    assert (found["id"], found["status"], found["answer"]) == (item["id"], "running", None)
    # An answer that was withheld is one too, and found by its own status alone.
    world.ledger.change(
        f"UPDATE charges SET settled_at = created_at + 1, answer = replace(answer, "
        f'\'"status":"answered"\', \'"status":"withheld"\') WHERE id = \'{item["id"]}\''
    )
    (found,) = listed(client, "/v1/queries", status="withheld")
    assert (found["id"], found["status"]) == (item["id"], "withheld")
    assert listed(client, "/v1/queries", status="answered") == []
