"""Streams through HTTP: opened for one charge, asked until they end, on both stores."""

from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from tests.conftest import Template
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
)

NOBODY: Json = {"column": "age", "op": "<", "value": 0}
SURE = "100"  # at this epsilon noise is below 1 except with probability 1e-40


def opened(client: httpx.Client, dataset: str, epsilon: str = SURE, **more: object) -> Json:
    return made(open_stream(client, above_threshold(dataset, epsilon, **more)))


def test_a_stream_reports_threshold_crossings_until_none_is_left(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1000)
    client = world.client(person)
    stream = opened(client, dataset, crossings=2, asks_max=10)
    assert stream["status"] == "open"
    assert (stream["crossings_left"], stream["asks_left"]) == (2, 10)
    answers = []
    for where in (NOBODY, None, NOBODY, None):
        reply = made(ask_stream(client, stream["id"], where))
        answers.append((reply["above"], reply["crossings_left"], reply["asks_left"]))
    assert answers == [(False, 2, 9), (True, 1, 8), (False, 1, 7), (True, 0, 6)]
    ended = ask_stream(client, stream["id"], NOBODY)
    assert (ended.status_code, ended.json()["type"]) == (409, "/problems/stream-ended")
    shown = made(client.get(f"/v1/streams/{stream['id']}"))
    assert (shown["status"], shown["crossings_left"], shown["asks_left"]) == ("ended", 0, 6)
    assert world.spent(dataset, person.name) == world.spent(dataset, "*") == Decimal(SURE)
    assert len(world.entries(dataset, "charge")) == 1
    world.must_be_sound()


def test_a_preview_shows_price_and_error_and_changes_nothing(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1)
    client = world.client(person)
    body = above_threshold(dataset, "0.25")
    preview = made(client.post("/v1/streams/preview", json=body))
    assert preview["fits"]
    assert preview["price"]["epsilon"] == preview["account_price"]["epsilon"] == 0.25
    assert world.spent(dataset, person.name) == 0
    stream = made(open_stream(client, body))
    assert (stream["mechanism"], stream["stream"]) == (preview["mechanism"], preview["stream"])
    too_much = made(client.post("/v1/streams/preview", json=above_threshold(dataset, "0.8")))
    assert not too_much["fits"]
    assert too_much["refusal"]["largest_epsilon"] == 0.75
    stranger = world.client(world.person())
    refused = stranger.post("/v1/streams/preview", json=body)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/no-grant")


def test_a_stream_ends_after_its_last_ask(live_on_each: World) -> None:
    person = live_on_each.person()
    dataset = live_on_each.open_dataset(person, epsilon=1000)
    client = live_on_each.client(person)
    stream = opened(client, dataset, asks_max=2)
    assert [made(ask_stream(client, stream["id"], NOBODY))["asks_left"] for _ in range(2)] == [1, 0]
    assert ask_stream(client, stream["id"], NOBODY).json()["type"] == "/problems/stream-ended"
    assert made(client.get(f"/v1/streams/{stream['id']}"))["status"] == "ended"


def test_each_key_opens_one_stream(live_on_each: World) -> None:
    world, key = live_on_each, new_key()
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1)
    client = world.client(person)
    body = above_threshold(dataset, 0.25)
    first, again = open_stream(client, body, key), open_stream(client, body, key)
    assert first.status_code == again.status_code == 201
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    assert first.headers["Location"] == f"/v1/streams/{first.json()['id']}"
    conflict = open_stream(client, above_threshold(dataset, 0.5), key)
    assert (conflict.status_code, conflict.json()["type"]) == (
        422,
        "/problems/idempotency-conflict",
    )
    question = ask(client, count(dataset), key)
    assert question.status_code == 422, "a key belongs to its first request"
    other = made(open_stream(client, body, new_key()))
    assert other["id"] != first.json()["id"]
    assert world.spent(dataset, person.name) == Decimal("0.5")
    items = made(client.get("/v1/streams"))["items"]
    assert [item["id"] for item in items] == [other["id"], first.json()["id"]]
    (entry, _) = world.entries(dataset, "charge")
    assert first.json()["receipt"] == {"entry": entry["seq"], "hash": entry["hash"]}
    assert entry["body"]["stream"] == "above_threshold"
    world.must_be_sound()


def test_one_key_is_one_ask(live_on_each: World) -> None:
    world, key = live_on_each, new_key()
    person = world.person()
    client = world.client(person)
    stream = opened(client, world.open_dataset(person, epsilon=1000))["id"]
    first = ask_stream(client, stream, NOBODY, key)
    again = ask_stream(client, stream, NOBODY, key)
    assert first.status_code == 200
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    other = ask_stream(client, stream, None, key)
    assert (other.status_code, other.json()["type"]) == (422, "/problems/idempotency-conflict")
    assert made(client.get(f"/v1/streams/{stream}"))["asks_left"] == 99
    ask_stream(client, stream, None)
    late = ask_stream(client, stream, NOBODY, key)
    assert late.content == first.content, "a stored answer is replayed after the end"


def test_a_stream_beyond_the_budget_is_refused_and_leaves_nothing(live_on_each: World) -> None:
    person = live_on_each.person()
    dataset = live_on_each.open_dataset(person, epsilon=1)
    client = live_on_each.client(person)
    refused = open_stream(client, above_threshold(dataset, "1.000000000001"))
    assert (refused.status_code, refused.json()["type"]) == (402, "/problems/budget-exhausted")
    assert made(client.get("/v1/streams"))["items"] == []
    assert live_on_each.spent(dataset, person.name) == 0


def test_an_unknown_stream_and_another_analysts_stream_look_alike(live_on_each: World) -> None:
    world = live_on_each
    owner, other = world.person(), world.person()
    dataset = world.open_dataset(owner, other, epsilon=1000)
    stream = opened(world.client(owner), dataset)["id"]
    client = world.client(other)
    for stream_id in (stream, "s_0"):
        replies = [
            ask_stream(client, stream_id),
            client.get(f"/v1/streams/{stream_id}"),
            client.delete(f"/v1/streams/{stream_id}"),
        ]
        assert [reply.status_code for reply in replies] == [404, 404, 404]
        assert {reply.text for reply in replies} == {replies[0].text}
    assert made(client.get("/v1/streams"))["items"] == []
    mine = made(world.client(owner).get(f"/v1/streams/{stream}"))
    assert (mine["asks_left"], mine["status"]) == (100, "open")
    assert stream in [item["id"] for item in made(world.admin.get("/v1/streams"))["items"]]
    assert world.admin.post(f"/v1/streams/{stream}/ask", json={}).status_code == 403
    assert world.admin.delete(f"/v1/streams/{stream}").status_code == 403


def test_a_closed_stream_answers_nothing_more_and_refunds_nothing(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1000)
    client = world.client(person)
    stream = opened(client, dataset)["id"]
    first = ask_stream(client, stream, NOBODY, "first")
    assert [client.delete(f"/v1/streams/{stream}").status_code for _ in range(2)] == [204, 204]
    assert ask_stream(client, stream).json()["type"] == "/problems/stream-ended"
    assert ask_stream(client, stream, NOBODY, "first").content == first.content
    shown = made(client.get(f"/v1/streams/{stream}"))
    assert shown["status"] == "closed"
    assert shown["closed_at"] > shown["opened_at"]
    assert world.spent(dataset, person.name) == Decimal(SURE)
    world.must_be_sound()


def test_a_closed_dataset_opens_no_stream_and_answers_no_new_ask(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1000)
    client = live.client(person)
    stream = opened(client, dataset)["id"]
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"status": "closed"}))
    for refused in (ask_stream(client, stream), open_stream(client, above_threshold(dataset))):
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/dataset-closed")
    assert made(client.get(f"/v1/streams/{stream}"))["asks_left"] == 100
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"status": "open"}))
    assert made(ask_stream(client, stream))["above"] is True


def test_a_restart_keeps_the_remaining_asks_and_the_secret_of_a_stream(world: World) -> None:
    client = world.client("ada")
    world.grant("people", "ada", 1000)
    world.grant("people", "*", 1000)
    stream = opened(client, "people", crossings=2, asks_max=5)
    assert made(ask_stream(client, stream["id"]))["above"] is True
    secrets = world.ledger.rows("SELECT secret FROM streams")
    world.ledger.stop()
    world.serve()
    client = world.client("ada")
    assert world.ledger.rows("SELECT secret FROM streams") == secrets
    answer = made(ask_stream(client, stream["id"]))
    assert (answer["above"], answer["crossings_left"], answer["asks_left"]) == (True, 0, 3)
    assert ask_stream(client, stream["id"]).json()["type"] == "/problems/stream-ended"


def test_a_stream_without_its_sealing_key_answers_nothing_and_uses_no_ask(world: World) -> None:
    client = world.client("ada")
    stream = made(open_stream(client, above_threshold("people", crossings=9)))["id"]
    first = ask_stream(client, stream, None, "first")
    world.ledger.stop()
    world.serve(BURSAR_SECRET_KEY="another-key-of-enough-letters-as-nobody-had-it")
    client = world.client("ada")
    for _ in range(2):
        lost = ask_stream(client, stream, None, "second")
        assert (lost.status_code, lost.json()["type"]) == (503, "/problems/secret-unavailable")
    assert ask_stream(client, stream, None, "first").content == first.content
    assert made(client.get(f"/v1/streams/{stream}"))["asks_left"] == 99
    assert world.spent("people", "ada") == Decimal("0.25")


def test_without_a_sealing_key_on_a_shared_ledger_no_stream_is_opened_or_charged(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("postgresql", tmp_path / "ledger")
    try:
        world.serve(BURSAR_SECRET_KEY="")
        refused = open_stream(world.client("ada"), above_threshold("people"))
        problem = refused.json()
        assert (refused.status_code, problem["type"]) == (503, "/problems/secret-unavailable")
        assert "BURSAR_SECRET_KEY" in problem["detail"]
        assert world.spent("people", "ada") == 0
    finally:
        world.ledger.stop()


def test_only_its_owner_can_read_the_key_file(live: World) -> None:
    person = live.person()
    opened(live.client(person), live.open_dataset(person, epsilon=1000))
    path = live.ledger.home / "secret.key"
    assert path.stat().st_mode & 0o777 == 0o600
    (secret,) = live.ledger.rows("SELECT secret FROM streams ORDER BY id DESC LIMIT 1")[0]
    assert path.read_text() not in secret
    assert path.read_text() not in live.server.output()


GOOD = {"kind": "above_threshold", "threshold": 5, "crossings": 1, "asks_max": 1}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"stream": {**GOOD, "crossings": 0}}, "/stream/crossings"),
        ({"stream": {**GOOD, "crossings": 1.5}}, "/stream/crossings"),
        ({"stream": {**GOOD, "crossings": True}}, "/stream/crossings"),
        ({"stream": {**GOOD, "asks_max": -1}}, "/stream/asks_max"),
        ({"stream": {**GOOD, "asks_max": 10**9}}, "/stream/asks_max"),
        ({"stream": {**GOOD, "threshold": "5"}}, "/stream/threshold"),
        ({"stream": {**GOOD, "threshold": 2**63}}, "/stream/threshold"),
        ({"stream": {**GOOD, "kind": "below"}}, "/stream/kind"),
        ({"stream": {**GOOD, "seed": 1}}, "/stream/seed"),
        ({"stream": None}, "/stream"),
        ({"privacy": {"epsilon": 0}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": 1e9}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": 9e6}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": 1, "rho": 1}}, "/privacy"),
        ({"privacy": {"epsilon": 1, "delta": 1e-6}}, "/privacy"),
        ({"privacy": {"rho": 1}}, "/privacy/rho"),
        ({"privacy": {}}, "/privacy"),
        ({"fresh": True}, "/fresh"),
    ],
)
def test_an_invalid_opening_is_refused_by_its_field(
    live: World, change: Json, pointer: str
) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    body = {"dataset": dataset, "stream": GOOD, "privacy": {"epsilon": 1}, **change}
    refused = open_stream(live.client(person), body)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer
    assert live.spent(dataset, person.name) == 0


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/query"),
        ({"query": {"kind": "sum", "column": "age"}}, "/query/kind"),
        ({"query": {"kind": "count", "group_by": ["region"]}}, "/query/group_by"),
        (
            {"query": {"kind": "count", "where": {"column": "secret", "op": "==", "value": 1}}},
            "/query/where/column",
        ),
        ({"query": {"kind": "count"}, "privacy": {"epsilon": 1}}, "/privacy"),
    ],
)
def test_an_invalid_ask_is_refused_by_its_field_and_uses_nothing(
    live: World, body: Json, pointer: str
) -> None:
    person = live.person()
    client = live.client(person)
    stream = opened(client, live.open_dataset(person, epsilon=1000))["id"]
    refused = post_ask(client, stream, body)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer
    assert made(client.get(f"/v1/streams/{stream}"))["asks_left"] == 100


@pytest.mark.parametrize(
    "terms",
    [
        {"currency": "approximate", "epsilon": 10, "delta": 1e-6},
        {"currency": "zcdp", "epsilon": 10, "delta": 1e-6},
        {"currency": "renyi", "epsilon": 10, "delta": 1e-6},
        {"currency": "gdp", "epsilon": 10, "delta": 1e-6},
    ],
    ids=lambda terms: terms["currency"],
)
def test_every_currency_pays_for_a_pure_stream(live: World, terms: Json) -> None:
    person = live.person()
    dataset = live.dataset()
    for holder in ("*", person.name):
        made(live.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=terms))
    client = live.client(person)
    stream = made(open_stream(client, above_threshold(dataset, 1)))
    assert exact(stream["charged"]) == 1
    before = live.budget(dataset, person.name)["used"]
    assert before > 0
    made(ask_stream(client, stream["id"]))
    assert live.budget(dataset, person.name)["used"] == before
    live.must_be_sound()


def test_the_budget_shows_a_stream_as_the_last_charge(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1000)
    client = live.client(person)
    opened(client, dataset)
    budget = made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}"))
    assert budget["last_question"] is None
    assert exact(budget["spent"]) == Decimal(SURE)
