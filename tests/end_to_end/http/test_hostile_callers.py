"""Regression tests for requests of hostile or unlucky callers."""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.server import World, ask, card, count, made, new_key


def test_a_revoked_key_gets_nothing_not_even_its_stored_answers(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client, request_key = world.client(person), new_key()
    assert ask(client, count(dataset), request_key).status_code == 200
    keys = world.admin.get(f"/v1/analysts/{person.name}").json()["keys"]
    assert world.admin.delete(f"/v1/keys/{keys[0]['id']}").status_code == 204
    replies = [
        ask(client, count(dataset), request_key),
        ask(client, count("no such dataset"), new_key()),
        ask(client, {**count(dataset), "query": {"kind": "sum", "column": "zz"}}, new_key()),
        client.post("/v1/queries", content=b"{"),
        client.post("/v1/queries/preview", json=count(dataset)),
        client.get(f"/v1/datasets/{dataset}/budgets/{person.name}"),
    ]
    assert [reply.status_code for reply in replies] == [401] * len(replies)


def test_without_a_grant_an_existing_dataset_looks_like_a_missing_one(
    live_on_each: World,
) -> None:
    """This holds for every other reason to refuse: closed, invalid, or the key of another body."""
    world = live_on_each
    person, stranger = world.person(), world.person()
    open_to_person, used = world.open_dataset(person), world.open_dataset(stranger)
    client, request_key = world.client(stranger), new_key()
    assert ask(client, count(used), request_key).status_code == 200
    world.admin.patch(f"/v1/datasets/{open_to_person}", json={"status": "closed"})
    invalid: dict[str, Any] = {"query": {"kind": "sum", "column": "no such column"}}
    for change in ({}, invalid):
        for key in (request_key, new_key()):
            hidden = ask(client, {**count(open_to_person), **change}, key)
            unknown = ask(client, {**count("nobody knows it"), **change}, key)
            assert hidden.status_code == unknown.status_code == 403
            assert hidden.content == unknown.content


def test_an_idempotency_key_of_administration_belongs_to_its_path(live: World) -> None:
    one, other = live.person(), live.person()
    header = {"Idempotency-Key": new_key()}
    first = live.admin.post(f"/v1/analysts/{one.name}/keys", headers=header)
    again = live.admin.post(f"/v1/analysts/{one.name}/keys", headers=header)
    elsewhere = live.admin.post(f"/v1/analysts/{other.name}/keys", headers=header)
    assert (first.status_code, again.status_code, elsewhere.status_code) == (201, 201, 422)
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["key"] is None, "an API key is shown once"


@pytest.mark.parametrize(
    "moment",
    ["9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999999Z", "2001-01-01T00:00:00Z", "2040"],
)
def test_an_invalid_expiry_is_refused_and_harms_nobody(live: World, moment: str) -> None:
    person = live.person()
    path = f"/v1/analysts/{person.name}/keys"
    assert live.admin.post(path, json={"expires_at": moment}).status_code == 422
    assert live.admin.get("/v1/analysts").status_code == 200


def test_integers_beyond_every_float_are_malformed(live: World) -> None:
    huge = "1" + "0" * 400
    for text in (
        json.dumps(card("x.csv", name="x")).replace("200000", huge),
        json.dumps(count("people")).replace("0.25", huge),
    ):
        assert huge in text
        for path in ("/v1/datasets", "/v1/queries/preview"):
            client = live.admin if path == "/v1/datasets" else live.client("ada")
            assert client.post(path, content=text).status_code == 400


def test_a_nul_in_a_url_is_not_found(live_on_each: World) -> None:
    admin, ada = live_on_each.admin, live_on_each.client("ada")
    for path in (
        "/v1/datasets/%00",
        "/v1/datasets/people%00/budgets/ada",
        "/v1/datasets/people/budgets/%00",
        "/v1/analysts/%00",
        "/v1/queries/%00",
    ):
        assert admin.get(path).status_code == 404, path
    assert admin.get("/v1/ledger?dataset=%00").status_code == 422
    assert admin.delete("/v1/keys/%00").status_code == 404
    assert ada.get("/v1/queries/%00").status_code == 404


def test_the_lists_of_a_filter_have_a_common_limit(live: World) -> None:
    lists = [{"column": "age", "op": "in", "value": list(range(6000))} for _ in range(2)]
    question = {**count("people"), "query": {"kind": "count", "where": {"any": lists}}}
    refused = live.client("ada").post("/v1/queries/preview", json=question)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/where")


def test_free_repeats_store_no_second_copy_of_the_answer(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client = world.client(person)
    edges = [n / 50 for n in range(5001)]
    question = {
        **count(dataset, 0.25),
        "query": {"kind": "histogram", "column": "age", "edges": edges},
    }
    first = ask(client, question, new_key())
    request_key = new_key()
    again = [ask(client, question, request_key) for _ in range(3)]
    assert {reply.content for reply in again} == {first.content}
    assert "Bursar-Reused" in again[0].headers
    assert world.spent(dataset, person.name) == Decimal("0.25")
    stored = world.ledger.rows("SELECT answer, question FROM charges WHERE reused_from IS NOT NULL")
    assert (None, "") in stored
    listed = client.get("/v1/queries").json()["items"]
    assert [item["left_out"] for item in listed] == [True, True]
    for item in listed:
        whole = client.get(f"/v1/queries/{item['id']}").json()
        assert whole["answer"] == first.json()
        assert whole["question"]["dataset"] == dataset


def test_the_reserved_word_for_the_people_ledger_is_no_dataset_name(live: World) -> None:
    path = live.write_csv([[1, 2, "north", True, "2021-01-01"]])
    refused = live.admin.post("/v1/datasets", json=card(path, name="System"))
    assert refused.status_code == 422


def test_a_precondition_must_match_exactly(live: World) -> None:
    person = live.person()
    path = f"/v1/datasets/people/budgets/{person.name}"
    grant = {"currency": "pure", "epsilon": 1}
    assert live.admin.put(path, json=grant, headers={"If-Match": "*"}).status_code == 412
    created = live.admin.put(path, json=grant, headers={"If-None-Match": "*"})
    assert created.status_code == 201
    etag = created.headers["ETag"]
    for known in (etag, f'"0", W/{etag}', "*"):
        assert live.admin.get(path, headers={"If-None-Match": known}).status_code == 304
    made(live.admin.put(path, json=grant, headers={"If-Match": "*"}))
