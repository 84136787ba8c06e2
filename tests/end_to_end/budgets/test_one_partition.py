"""One body of data has one partition into cells, and an account with spend keeps its delta."""

import copy

import pytest

from tests.server import Json, World, ask, card, count, made, new_key, some_rows


def changed(body: Json, column: str, **changes: object) -> Json:
    """The same card under another name, with one column changed."""
    other = copy.deepcopy(body)
    other["name"] = f"{body['name']}-again"
    for each in other["columns"]:
        if each["name"] == column:
            each.update(changes)
    return other


def test_a_second_name_must_declare_the_same_cell_column(live: World) -> None:
    """Spends are stored by cell index. Another order of the values would swap the cells'
    budgets.
    """
    body = card(live.write_csv(some_rows()), cells={"column": "region"})
    made(live.admin.post("/v1/datasets", json=body))
    values = next(each["values"] for each in body["columns"] if each["name"] == "region")
    for other in ([*values[1:], values[0]], values[:-1]):
        reply = live.admin.post("/v1/datasets", json=changed(body, "region", values=other))
        assert reply.status_code == 409, reply.text
    described = changed(body, "region", description="where somebody lives")
    assert live.admin.post("/v1/datasets", json=described).status_code == 201


def test_a_second_name_must_clamp_the_cell_column_the_same_way(live: World) -> None:
    edges = {"column": "age", "edges": [0, 18, 65, 200]}
    body = card(live.write_csv(some_rows()), cells=edges)
    made(live.admin.post("/v1/datasets", json=body))
    low = next(each["low"] for each in body["columns"] if each["name"] == "age")
    reply = live.admin.post("/v1/datasets", json=changed(body, "age", low=low + 20))
    assert reply.status_code == 409, reply.text


def test_persons_with_several_rows_have_no_cells(live: World) -> None:
    """Even if one row per person is kept, it may be another row under another name."""
    body = card(live.write_csv(some_rows()), cells={"column": "region"})
    body["person"] = {"kind": "column", "column": "person", "rows_max": 1}
    reply = live.admin.post("/v1/datasets", json=body)
    assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, "/cells")


@pytest.mark.parametrize("currency", ["zcdp", "renyi", "gdp"])
def test_an_account_with_spend_keeps_its_delta_and_its_split(live: World, currency: str) -> None:
    person, dataset = live.person(), live.dataset()
    live.grant(dataset, "*", 10)
    path = f"/v1/datasets/{dataset}/budgets/{person.name}"
    first = {"currency": currency, "epsilon": 1, "delta": "1e-6", "failure_delta": "4e-7"}
    made(live.admin.put(path, json={**first, "failure_delta": "1e-7"}))
    before = made(live.admin.put(path, json=first))["terms"]  # nothing is spent yet
    assert before["delta_failure"] == 4e-7
    made(ask(live.client(person), count(dataset, 0.35), new_key()))
    for other in ({"failure_delta": "9.9e-7"}, {"delta": "1e-7"}, {"epsilon": 2, "delta": "1e-5"}):
        assert live.admin.put(path, json={**first, **other}).status_code == 409
    without = {name: first[name] for name in ("currency", "epsilon", "delta")}
    after = made(live.admin.put(path, json={**without, "epsilon": 2}))["terms"]
    assert (after["delta_failure"], after["delta_conversion"]) == (4e-7, 6e-7)
    assert after["order"] == before["order"]
    assert made(live.admin.get("/v1/ledger/verify"))["sound"]
