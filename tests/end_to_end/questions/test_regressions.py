"""Logistic regressions over HTTP: priced, charged in every currency that can pay, answered once."""

import math
from typing import Any

import httpx
import pytest

from tests.server import HEADER, Json, Person, World, ask, made, new_key, some_rows

DELTA = "1e-6"
GRANTS: dict[str, Json] = {
    "approximate": {"currency": "approximate", "epsilon": 10, "delta": "1e-4"},
    "zcdp": {"currency": "zcdp", "epsilon": 10, "delta": DELTA},
    "renyi": {"currency": "renyi", "epsilon": 10, "delta": DELTA},
    "pure": {"currency": "pure", "epsilon": 10},
    "gdp": {"currency": "gdp", "epsilon": 10, "delta": DELTA},
}
KIND = "noisy_gradient_descent"
QUERY: Json = {
    "kind": "logistic_regression",
    "outcome": "smoker",
    "features": ["age", "region"],
}
TERMS = ["(intercept)", "age", "region=south", "region=east", "region=west"]
BY_DELTA: Json = {"epsilon": 0.5, "delta": DELTA}


def question(dataset: str, query: Json | None = None, **more: Any) -> Json:
    return {"dataset": dataset, "query": QUERY | (query or {}), "privacy": BY_DELTA, **more}


def descent(**parameters: Any) -> Json:
    return {"kind": KIND, **parameters}


def opened(
    world: World, currency: str = "approximate", rows: Any = None, **card: Any
) -> tuple[str, Person]:
    """A dataset on which a new person and everybody have a budget in this currency."""
    person = world.person()
    path = world.write_csv(some_rows(400) if rows is None else rows)
    dataset = world.dataset(path, **card)
    for holder in ("*", person.name):
        reply = world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=GRANTS[currency])
        made(reply)
    return dataset, person


def spent(world: World, dataset: str, holder: str) -> Json:
    budget: Json = world.budget(dataset, holder)["spent"]
    return budget


def test_an_answer_is_charged_stored_and_replayed_byte_for_byte(live_on_each: World) -> None:
    world = live_on_each
    dataset, person = opened(world, "zcdp")
    client, key = world.client(person), new_key()
    first = ask(client, question(dataset), key)
    answer = made(first)
    assert [item["term"] for item in answer["value"]["coefficients"]] == TERMS
    for item in answer["value"]["coefficients"]:
        assert math.isfinite(item["value"])
        assert item["standard_error"] is item["interval"] is None
    assert answer["interval"] is None
    assert answer["value"]["rows"] >= 1
    mechanism = answer["mechanism"]
    assert (mechanism["kind"], mechanism["steps"], mechanism["sampling_rate"]) == (KIND, 100, None)
    assert mechanism["clipping_norm"] == pytest.approx(math.sqrt(3))
    assert answer["charged"]["rho"] > 0
    assert "Canonne" in answer["theorem"]
    again = ask(client, question(dataset), key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    reused = ask(client, question(dataset), new_key())
    assert reused.content == first.content
    (entry,) = world.entries(dataset, "charge")
    body = entry["body"]
    assert (body["query"], body["mechanism"]) == ("logistic_regression", KIND)
    assert (body["steps"], body["moves"], body["rate"]) == (100, 1, "1")
    assert entry["hash"] == answer["receipt"]["hash"]
    stored = made(client.get(f"/v1/queries/{answer['id']}"))
    assert (stored["status"], stored["progress"], stored["answer"]) == ("answered", None, answer)
    world.must_be_sound()


SAMPLED = descent(steps=20, sampling_rate=0.1)
PAYS = {
    "approximate": {"all rows": True, "samples": True, "a rho": False},
    "zcdp": {"all rows": True, "samples": False, "a rho": True},
    "renyi": {"all rows": True, "samples": True, "a rho": True},
    "pure": {"all rows": False, "samples": False, "a rho": False},
    "gdp": {"all rows": False, "samples": False, "a rho": False},
}
ASKED: dict[str, Json] = {
    "all rows": {"privacy": BY_DELTA},
    "samples": {"privacy": BY_DELTA, "mechanism": SAMPLED},
    "a rho": {"privacy": {"rho": "0.01"}},
}


@pytest.mark.parametrize("currency", PAYS)
def test_each_currency_pays_for_the_noise_it_can_count_and_names_the_others(
    live: World, currency: str
) -> None:
    dataset, person = opened(live, currency)
    for what, pays in PAYS[currency].items():
        before = spent(live, dataset, person.name)
        asked = question(dataset) | ASKED[what]
        preview = live.client(person).post("/v1/queries/preview", json=asked)
        reply = ask(live.client(person), asked, new_key())
        assert preview.is_success == reply.is_success == pays, (what, reply.text)
        if pays:
            shown = preview.json()
            assert shown["fits"]
            assert shown["expected_error"]["half_width"] is None
            assert [each["kind"] for each in shown["alternatives"]] == [KIND]
            charged = reply.json()["charged"]
            assert {name: charged[name] for name in shown["price"]} == shown["price"]
            assert ("rho" in shown["price"]) == (what != "samples")
            assert spent(live, dataset, person.name) != before
        else:
            assert preview.status_code == reply.status_code == 422
            able = [name for name, can in PAYS.items() if can[what]]
            assert reply.json()["detail"].endswith(f"currencies that can: {', '.join(able)}")
            assert spent(live, dataset, person.name) == before


# Degenerate data


NOBODY: list[object] = ["", "", "", "", ""]
STRANGE: dict[str, list[list[object]]] = {
    "no row": [],
    "all missing": [NOBODY] * 5,
    "one row": [[50, 1000, "north", "true", "2021-01-11"]],
    "a constant column": [[50, i, "north", ("true", "false")[i % 2], ""] for i in range(50)],
    "the same outcome": [[i, i, "west", "true", ""] for i in range(50)],
}


@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.parametrize("mechanism", [descent(), SAMPLED], ids=["all rows", "samples"])
def test_degenerate_data_are_answered_and_charged(live: World, what: str, mechanism: Json) -> None:
    dataset, person = opened(live, rows=STRANGE[what])
    answer = made(ask(live.client(person), question(dataset, mechanism=mechanism), new_key()))
    assert all(math.isfinite(item["value"]) for item in answer["value"]["coefficients"])
    assert answer["charged"]["epsilon"] == 0.5
    assert spent(live, dataset, person.name)["epsilon"] == 0.5


def test_an_empty_selection_is_answered_and_charged(live: World) -> None:
    dataset, person = opened(live)
    nobody = {"where": {"column": "age", "op": ">", "value": 119}}
    answer = made(ask(live.client(person), question(dataset, nobody), new_key()))
    assert all(math.isfinite(item["value"]) for item in answer["value"]["coefficients"])
    assert spent(live, dataset, person.name)["epsilon"] == 0.5


# Cells


def test_a_filter_on_cells_is_charged_to_those_cells(live: World) -> None:
    dataset, person = opened(live, "zcdp", cells={"column": "region"})
    client = live.client(person)
    north = {"where": {"column": "region", "op": "==", "value": "north"}, "features": ["age"]}
    answer = made(ask(client, question(dataset, north), new_key()))
    assert answer["charged"]["cells"] == ["north"]
    south = {"where": {"column": "region", "op": "==", "value": "south"}, "features": ["age"]}
    made(ask(client, question(dataset, south), new_key()))
    budget = live.budget(dataset, person.name)
    spent = {each["cell"]: each["spent"]["rho"] for each in budget["cells"]}
    assert spent["north"] == spent["south"] == answer["charged"]["rho"]
    assert spent["east"] == 0.0
    everybody = made(ask(client, question(dataset, {"features": ["age"]}), new_key()))
    assert everybody["charged"]["cells"] is None


# Invalid input


WRONG: dict[str, tuple[Json, str]] = {
    "no steps": ({"mechanism": descent(steps=0)}, "/mechanism/steps"),
    "steps below zero": ({"mechanism": descent(steps=-3)}, "/mechanism/steps"),
    "half a step": ({"mechanism": descent(steps=1.5)}, "/mechanism/steps"),
    "steps as text": ({"mechanism": descent(steps="10")}, "/mechanism/steps"),
    "too many steps": ({"mechanism": descent(steps=10_001)}, "/mechanism/steps"),
    "no clipping norm": ({"mechanism": descent(clipping_norm=0)}, "/mechanism/clipping_norm"),
    "a norm below zero": ({"mechanism": descent(clipping_norm=-1.0)}, "/mechanism/clipping_norm"),
    "a norm as text": ({"mechanism": descent(clipping_norm="1")}, "/mechanism/clipping_norm"),
    "a norm of true": ({"mechanism": descent(clipping_norm=True)}, "/mechanism/clipping_norm"),
    "no learning rate": ({"mechanism": descent(learning_rate=0)}, "/mechanism/learning_rate"),
    "a rate below zero": ({"mechanism": descent(learning_rate=-0.1)}, "/mechanism/learning_rate"),
    "a sample of none": ({"mechanism": descent(sampling_rate=0)}, "/mechanism/sampling_rate"),
    "a sample above 1": ({"mechanism": descent(sampling_rate=1.01)}, "/mechanism/sampling_rate"),
    "a sample below 0": ({"mechanism": descent(sampling_rate=-0.5)}, "/mechanism/sampling_rate"),
    "no rows expected": ({"mechanism": descent(expected_rows=0)}, "/mechanism/expected_rows"),
    "an unknown member": ({"mechanism": descent(momentum=0.5)}, "/mechanism/momentum"),
    "its steps for laplace": (
        {"query": {"kind": "count"}, "mechanism": {"kind": "laplace", "steps": 10}},
        "/mechanism/steps",
    ),
    "its norm for another": (
        {"mechanism": {"kind": "gaussian", "clipping_norm": 1.0}},
        "/mechanism/clipping_norm",
    ),
    "noise of a noisy max": ({"mechanism": descent(noise="gumbel")}, "/mechanism/noise"),
    "a mechanism for others": ({"mechanism": {"kind": "laplace"}}, "/mechanism/kind"),
    "a descent for a count": (
        {"query": {"kind": "count"}, "mechanism": descent()},
        "/mechanism/kind",
    ),
    "epsilon alone": ({"privacy": {"epsilon": 1}}, "/privacy"),
    "a half width": ({"privacy": {"half_width": 1}}, "/privacy"),
    "a rho for samples": ({"privacy": {"rho": 0.1}, "mechanism": SAMPLED}, "/privacy"),
    "an outcome that is not boolean": ({"query": QUERY | {"outcome": "age"}}, "/query/outcome"),
    "an undeclared outcome": ({"query": QUERY | {"outcome": "absent"}}, "/query/outcome"),
    "an undeclared feature": ({"query": QUERY | {"features": ["absent"]}}, "/query/features/0"),
    "a feature twice": ({"query": QUERY | {"features": ["age", "age"]}}, "/query/features"),
    "a date": ({"query": QUERY | {"features": ["age", "seen"]}}, "/query/features/1"),
    "no feature": ({"query": QUERY | {"features": []}}, "/query/features"),
    "the outcome among the features": (
        {"query": QUERY | {"features": ["age", "smoker"]}},
        "/query/features/1",
    ),
    "an intercept of 1": ({"query": QUERY | {"intercept": 1}}, "/query/intercept"),
    "groups": ({"query": QUERY | {"group_by": ["region"]}}, "/query/group_by"),
}


@pytest.fixture(scope="module")
def asker(live: World) -> tuple[httpx.Client, str, Person]:
    dataset, person = opened(live)
    return live.client(person), dataset, person


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_regression_names_its_field_and_costs_nothing(
    live: World, asker: tuple[httpx.Client, str, Person], wrong: str
) -> None:
    client, dataset, person = asker
    changes, pointer = WRONG[wrong]
    body = question(dataset) | changes
    for path in ("/v1/queries", "/v1/queries/preview"):
        reply = client.post(path, json=body, headers={"Idempotency-Key": new_key()})
        assert reply.status_code == 422, reply.text
        assert [error["pointer"] for error in reply.json()["errors"]] == [pointer]
    assert spent(live, dataset, person.name)["epsilon"] == 0.0


def test_persons_with_several_rows_are_not_sampled(live: World) -> None:
    rows = [[i // 2, *row] for i, row in enumerate(some_rows(40))]
    path = live.write_csv(rows, ["who", *HEADER])
    person = live.person()
    dataset = live.dataset(path, person={"kind": "column", "column": "who", "rows_max": 2})
    for holder in ("*", person.name):
        url = f"/v1/datasets/{dataset}/budgets/{holder}"
        made(live.admin.put(url, json=GRANTS["approximate"]))
    client = live.client(person)
    reply = ask(client, question(dataset, mechanism=SAMPLED), new_key())
    assert [error["pointer"] for error in reply.json()["errors"]] == ["/mechanism/sampling_rate"]
    answer = made(ask(client, question(dataset), new_key()))
    (entry,) = live.entries(dataset, "charge")
    assert entry["body"]["moves"] == 2
    assert answer["status"] == "answered"
