"""Rehearsals over HTTP: nothing is charged, stored or read, even if the data are gone."""

import pytest

from tests.server import Json, World, ask, made, new_key

PATH = "/v1/queries/rehearse"
MEAN: Json = {"kind": "mean", "column": "age", "group_by": ["region"]}


def test_a_rehearsal_needs_no_budget_and_no_data_and_leaves_no_trace(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    client = live.client(person)
    count = {"dataset": dataset, "query": {"kind": "count"}, "privacy": {"epsilon": 1}}
    answer = made(ask(client, count, new_key()))  # nothing is left
    card = made(live.admin.get(f"/v1/datasets/{dataset}"))
    (live.ledger.data / card["source"]["path"]).unlink()
    viewer = live.client(live.person(role="viewer"))
    entries = made(live.admin.get("/v1/ledger"))["items"]
    for caller in (client, live.admin, viewer):
        reply = made(caller.post(PATH, json={**count, "query": MEAN}))
        assert (reply["status"], reply["made_up"], reply["rows"]) == ("rehearsed", True, 1000)
        assert (reply["id"], reply["receipt"]) == (None, None)
        assert reply["charged"]["epsilon"] == 0
        assert reply["charged"]["price"]["epsilon"] == 1
        assert len(reply["value"]) == 4
        assert set(answer) <= set(reply)
    assert made(live.admin.get("/v1/ledger"))["items"] == entries
    assert len(made(client.get("/v1/queries"))["items"]) == 1


def test_a_rehearsal_takes_sql_and_a_number_of_rows(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    client = live.client(person)
    sql = f'SELECT region, COUNT(*), AVG(age) FROM "{dataset}" GROUP BY region'
    body = {"sql": sql, "privacy": {"epsilon": 1}, "assume": {"rows": 60}}
    reply = made(client.post(PATH, json=body))
    assert (reply["rows"], len(reply["value"])) == (60, 4)
    refused = client.post(PATH, json={**body, "assume": {"rows": 10**6}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/assume/rows"
    stranger = live.client(live.person())
    assert stranger.post(PATH, json=body).json()["type"] == "/problems/no-grant"


@pytest.mark.parametrize("field", ["epsilons", "as", "account"])
def test_fields_of_a_preview_are_refused(live: World, field: str) -> None:
    body = {"dataset": "d", "query": {"kind": "count"}, "privacy": {"epsilon": 1}, field: "*"}
    reply = live.client(live.person()).post(PATH, json=body)
    assert reply.json()["errors"][0]["pointer"] == f"/{field}"
