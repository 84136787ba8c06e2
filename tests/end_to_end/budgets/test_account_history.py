"""The history of a budget over HTTP: its last row is the budget, and others' questions stay
hidden."""

from typing import Any

import httpx
import pytest

from tests.server import (
    Json,
    Person,
    World,
    above_threshold,
    ask,
    count,
    made,
    new_key,
    open_stream,
)

FIGURES = ("currency", "limit", "used", "spent", "remaining")
GRANTS: dict[str, Json] = {
    "pure": {},
    "approximate": {"delta": 1e-6},
    "zcdp": {"delta": 1e-6},
    "renyi": {"delta": 1e-6},
    "gdp": {"delta": 1e-6},
}


def history(client: httpx.Client, dataset: str, holder: str, **parameters: Any) -> list[Json]:
    """The rows of all pages."""
    rows: list[Json] = []
    path = f"/v1/datasets/{dataset}/budgets/{holder}/history"
    while True:
        page = made(client.get(path, params=parameters))
        rows += page["items"]
        if page["next_cursor"] is None:
            return rows
        parameters["cursor"] = page["next_cursor"]


def must_end_at_the_budget(world: World, dataset: str, holder: str) -> list[Json]:
    rows = history(world.admin, dataset, holder)
    for limit in (1, 200):
        assert history(world.admin, dataset, holder, order="newest", limit=limit) == rows[::-1]
    budget = world.budget(dataset, holder)
    assert {name: rows[-1][name] for name in FIGURES} == {name: budget[name] for name in FIGURES}
    return rows


@pytest.mark.parametrize("cells", [None, {"column": "region"}], ids=["whole", "cells"])
@pytest.mark.parametrize("currency", list(GRANTS))
def test_the_last_row_is_the_budget_itself(
    live_on_each: World, currency: str, cells: Json | None
) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.dataset(cells=cells)
    grant = {"currency": currency, **GRANTS[currency]}
    world.grant(dataset, "*", 50, **grant)
    world.grant(dataset, person.name, 5, **grant)
    client = world.client(person)
    north = {"kind": "count", "where": {"column": "region", "op": "==", "value": "north"}}
    for epsilon in ("0.1", "0.200000000001"):
        made(ask(client, count(dataset, epsilon), new_key()))
        made(ask(client, count(dataset, epsilon, query=north), new_key()))
    body = {"events": [{"mechanism": "laplace", "epsilon": 0.3}], "holder": person.name}
    entry = made(world.admin.post(f"/v1/datasets/{dataset}/losses", json=body))["entry"]
    world.grant(dataset, person.name, 4, **grant)
    everybody, rows = (must_end_at_the_budget(world, dataset, h) for h in ("*", person.name))
    for listed in (everybody, rows):
        assert [row["entry"] for row in listed if row["sequence"] == entry] == ["booked"]
        sequences = [row["sequence"] for row in listed]
        assert sequences == sorted(set(sequences))
    kinds = [row["entry"] for row in rows]
    assert kinds == ["grant", *["charge"] * 4, "booked", "grant"]
    assert [row["limit"]["epsilon"] for row in rows] == [5.0] * 6 + [4.0]
    assert history(world.admin, dataset, person.name, limit=2) == rows
    since = rows[3]["at"]
    later = history(world.admin, dataset, person.name, since=since, limit=1)
    assert later == [row for row in rows if row["at"] >= since]
    back = history(world.admin, dataset, person.name, since=since, limit=1, order="newest")
    assert back == later[::-1]


def test_a_changed_currency_and_a_stream_are_in_the_history(live_on_each: World) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.open_dataset(person, epsilon=2)
    client = world.client(person)
    answer = made(ask(client, count(dataset, 0.5), new_key()))
    world.grant(dataset, person.name, 2, currency="renyi", delta=1e-6)
    opened = made(open_stream(client, above_threshold(dataset, 0.25), new_key()))
    own = must_end_at_the_budget(world, dataset, person.name)
    assert [row["currency"] for row in own] == ["pure", "pure", "renyi", "renyi"]
    assert history(client, dataset, person.name) == own
    charge, stream = own[1], own[3]
    assert (charge["question"], charge["kind"]) == (answer["id"], "count")
    assert charge["analyst"] == stream["analyst"] == person.name
    assert charge["price"] == {"epsilon": 0.5, "delta": 0.0}
    assert charge["sequence"] == answer["receipt"]["entry"]
    assert (stream["question"], stream["kind"]) == (opened["id"], "above_threshold")


def group_of_two(world: World) -> tuple[str, str, Person, Person]:
    """A dataset, and a group's budget on it, shared by two people."""
    one, other = world.person(), world.person()
    group = f"team-{one.name}"
    for person in (one, other):
        made(world.admin.patch(f"/v1/analysts/{person.name}", json={"groups": [group]}))
    dataset = world.open_dataset(one, other, epsilon=2)
    world.grant(dataset, f"group:{group}", 3)
    return dataset, f"group:{group}", one, other


@pytest.mark.invariant("I27")
def test_an_analyst_sees_that_others_were_charged_but_not_who_or_for_what(
    live_on_each: World,
) -> None:
    world = live_on_each
    dataset, group, one, other = group_of_two(world)
    mine = made(ask(world.client(one), count(dataset, 0.25), new_key()))
    theirs = made(ask(world.client(other), count(dataset, 0.5), new_key()))
    body = {"events": [{"mechanism": "laplace", "epsilon": 0.125}], "holder": group}
    made(world.admin.post(f"/v1/datasets/{dataset}/losses", json=body))
    everything = must_end_at_the_budget(world, dataset, group)
    assert [row["analyst"] for row in everything] == [None, one.name, other.name, None]
    assert [row["price"] and row["price"]["epsilon"] for row in everything] == [
        None,
        0.25,
        0.5,
        0.125,
    ]
    reply = world.client(one).get(f"/v1/datasets/{dataset}/budgets/{group}/history")
    rows = made(reply)["items"]
    hidden = {"question": None, "kind": None, "analyst": None, "price": None}
    assert rows == [row if row["analyst"] == one.name else {**row, **hidden} for row in everything]
    assert mine["id"] in reply.text
    assert theirs["id"] not in reply.text
    assert other.name not in reply.text
    assert history(world.client(world.people["vera"]), dataset, group) == everything


def test_a_budget_that_is_not_ones_own_looks_like_one_that_is_not_there(
    live_on_each: World,
) -> None:
    world = live_on_each
    dataset, group, one, other = group_of_two(world)
    stranger = world.client(world.person())
    client = world.client(one)
    replies = [
        client.get(f"/v1/datasets/{dataset}/budgets/{other.name}/history"),
        client.get(f"/v1/datasets/{dataset}/budgets/*/history"),
        client.get(f"/v1/datasets/{dataset}/budgets/nobody/history"),
        client.get(f"/v1/datasets/nothing/budgets/{one.name}/history"),
        stranger.get(f"/v1/datasets/{dataset}/budgets/{group}/history"),
        client.get(f"/v1/datasets/{dataset}/budgets/{other.name}"),
    ]
    assert {(reply.status_code, reply.text) for reply in replies} == {
        (404, replies[-1].text),
    }


def test_a_wrong_cursor_or_time_is_refused_and_a_page_can_follow_new_entries(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=2)
    client = live.client(person)
    path = f"/v1/datasets/{dataset}/budgets/{person.name}/history"
    for parameters in ({"cursor": "x"}, {"since": "yesterday"}, {"limit": 0}, {"sinc": "x"}):
        assert client.get(path, params=parameters).status_code == 422
    made(ask(client, count(dataset, 0.25), new_key()))
    first = made(client.get(path, params={"limit": 1}))
    made(ask(client, count(dataset, 0.5), new_key()))
    parameters = {"limit": 5, "cursor": first["next_cursor"]}
    rest = made(client.get(path, params=parameters))
    assert [row["spent"]["epsilon"] for row in rest["items"]] == [0.25, 0.75]
    assert rest["next_cursor"] is None
    for forged in ("WzksIDld", "Wy01LCAwXQ"):  # [9, 9] and [-5, 0]
        assert client.get(path, params={"cursor": forged}).status_code == 200
