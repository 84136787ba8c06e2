"""Linear regression over HTTP: answers, prices in every currency, refusals, degenerate data."""

import json
import math
from decimal import Decimal

import duckdb
import numpy as np
import pytest

from app.demo import census
from app.demo.cards import CENSUS
from tests.server import COLUMNS, HEADER, Json, Person, World, ask, exact, made, new_key

DELTA = "1e-6"
GRANTS: dict[str, Json] = {
    "pure": {"currency": "pure", "epsilon": 50},
    "approximate": {"currency": "approximate", "epsilon": 50, "delta": DELTA},
    "zcdp": {"currency": "zcdp", "rho": 10, "delta": DELTA},
    "renyi": {"currency": "renyi", "epsilon": 50, "delta": DELTA},
    "gdp": {"currency": "gdp", "epsilon": 50, "delta": DELTA},
}
QUERY: Json = {
    "kind": "linear_regression",
    "outcome": "income",
    "features": ["age", "smoker", "region"],
}
TERMS = ["(intercept)", "age", "smoker", "region=south", "region=east", "region=west"]


def opened(world: World, grant: Json, dataset: str | None = None) -> tuple[str, Person]:
    person, dataset = world.person(), dataset or world.dataset()
    for holder in (person.name, "*"):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=grant))
    return dataset, person


def question(dataset: str, query: Json = QUERY, **more: object) -> Json:
    return {"dataset": dataset, "query": query, "privacy": {"epsilon": 1}, **more}


@pytest.mark.parametrize(
    ("currency", "privacy", "kind"),
    [
        ("pure", {"epsilon": 1}, "laplace"),
        ("approximate", {"epsilon": 1}, "laplace"),
        ("approximate", {"epsilon": 1, "delta": 1e-7}, "gaussian"),
        ("zcdp", {"epsilon": 1}, "laplace"),
        ("zcdp", {"rho": "0.25"}, "gaussian"),
        ("renyi", {"epsilon": 1}, "laplace"),
        ("renyi", {"rho": "0.25"}, "gaussian"),
        ("gdp", {"epsilon": 1}, "laplace"),
    ],
)
def test_a_regression_is_one_charge_in_every_currency(
    live: World, currency: str, privacy: Json, kind: str
) -> None:
    dataset, person = opened(live, GRANTS[currency])
    client = live.client(person)
    asked = question(dataset, privacy=privacy)
    preview = made(client.post("/v1/queries/preview", json=asked))
    answer = made(ask(client, asked, new_key()))
    assert answer["mechanism"] == preview["mechanism"]
    assert answer["mechanism"]["kind"] == kind
    (noise,) = answer["mechanism"]["noise"]
    # The design has 1, age, smoker, income and a region: 10 products, two halved squares, and n.
    assert (noise["measure"], noise["sensitivity"]) == ("moments", 12.0)
    assert answer["mechanism"]["moments"] == 1 + 18 + 2
    if kind == "laplace":
        assert exact(answer["charged"]) == exact(preview["price"]) == 1
        assert noise["scale"] == pytest.approx(12.0)
    elif "rho" in privacy:
        assert answer["charged"]["rho"] == preview["price"]["rho"]
        assert noise["scale"] == pytest.approx(math.sqrt(2 * 11.5))
    value = answer["value"]
    assert [item["term"] for item in value["coefficients"]] == TERMS
    assert value["rows"]["interval"]["covers"] == "noise"
    assert answer["interval"] is None
    error = preview["expected_error"]
    assert error["half_width"] is None
    assert "depends on what is released" in error["text"]
    tradeoff = made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}/tradeoff"))
    assert not tradeoff["exact"]
    live.must_be_sound()


def test_a_preview_shows_both_mechanisms_side_by_side(live: World) -> None:
    dataset, person = opened(live, GRANTS["zcdp"])
    asked = question(dataset, privacy={"rho": "0.25"})
    preview = made(live.client(person).post("/v1/queries/preview", json=asked))
    *moments, descent = preview["alternatives"]
    scales = {alternative["kind"]: alternative["mechanism"]["noise"][0] for alternative in moments}
    assert set(scales) == {"laplace", "gaussian"}
    assert descent["kind"] == "noisy_gradient_descent"
    assert preview["mechanism"]["kind"] == "gaussian"
    assert all(
        alternative["price"].get("rho", 0) <= 0.25 for alternative in preview["alternatives"]
    )
    assert scales["gaussian"]["scale"] < scales["laplace"]["scale"]


def test_gradient_descent_fits_it_but_refuses_a_ridge(live: World) -> None:
    dataset, person = opened(live, GRANTS["zcdp"])
    descent = {"kind": "noisy_gradient_descent", "steps": 5}
    body = {**question(dataset, privacy={"rho": "0.01"}), "mechanism": descent}
    answer = made(ask(live.client(person), body, new_key()))
    assert answer["mechanism"]["kind"] == descent["kind"]
    assert answer["charged"]["rho"] <= 0.01
    assert [item["term"] for item in answer["value"]["coefficients"]] == TERMS
    assert all(item["standard_error"] is None for item in answer["value"]["coefficients"])
    ridged = {**body, "query": {**body["query"], "ridge": 1}}
    refused = ask(live.client(person), ridged, new_key())
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/query/ridge"


def test_the_fit_of_the_census_is_near_the_fit_without_noise(live: World) -> None:
    """Three intervals at 1 - 1e-7 miss a coefficient with probability 3e-7.

    An epsilon of 1 on 28,551 complete rows leaves the slope of age within 90 a year. It leaves the
    difference between the sexes within 1300. Both hold except with probability 1e-6.
    """
    census.write(live.ledger.data / "census.parquet")
    made(live.admin.post("/v1/datasets", json={**CENSUS, "name": "census"}))
    dataset, person = opened(live, GRANTS["pure"], "census")
    query = {**QUERY, "features": ["age", "sex"]}
    asked = question(dataset, query, confidence=1 - 1e-7)
    value = made(ask(live.client(person), asked, new_key()))["value"]
    with duckdb.connect() as connection:
        path = live.ledger.data / "census.parquet"
        rows = connection.execute(
            "SELECT 1, age, CAST(sex = 'male' AS INTEGER), least(income, 200000) "
            f"FROM '{path}' WHERE income IS NOT NULL"
        ).fetchall()
    table = np.array(rows, dtype=np.float64)
    exact_coefficients = np.linalg.lstsq(table[:, :-1], table[:, -1], rcond=None)[0]
    for item, number in zip(value["coefficients"], exact_coefficients, strict=True):
        # Income is rounded down to a grid of 3.05.
        assert item["interval"]["low"] - 4 <= number <= item["interval"]["high"] + 4
        assert item["standard_error"] > 0
    _, age, sex = value["coefficients"]
    assert abs(age["value"] - exact_coefficients[1]) < 90
    assert abs(sex["value"] - exact_coefficients[2]) < 1300
    assert abs(value["rows"]["value"] - len(table)) < 200
    residual = table[:, -1] - table[:, :-1] @ exact_coefficients
    assert value["residual_standard_deviation"]["value"] == pytest.approx(residual.std(), rel=0.1)


def test_a_filter_on_one_cell_is_charged_to_that_cell(live: World) -> None:
    dataset, person = opened(live, GRANTS["pure"], live.dataset(cells={"column": "region"}))
    where = {"column": "region", "op": "==", "value": "north"}
    query = {**QUERY, "features": ["age"], "where": where}
    answer = made(ask(live.client(person), question(dataset, query), new_key()))
    assert answer["charged"]["cells"] == ["north"]


EMPTY: list[object] = [""] * len(HEADER)
DATA: dict[str, list[list[object]]] = {
    "nothing but missing": [EMPTY] * 20,
    "one row": [[30, 1000, "north", "true", "2021-01-01"]],
    "a constant column": [[30, 10 * i, "south", "false", "2021-01-01"] for i in range(50)],
    "values out of bounds": [["9999", "1e300", "nowhere", "?", "2021-01-01"]] * 30,
}


@pytest.mark.parametrize("what", DATA)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_degenerate_data_are_answered_and_charged(live: World, what: str, neighbours: str) -> None:
    """A singular table still gets standard errors with probability 0.005, so they are not
    checked.
    """
    rows = {"rows": len(DATA[what])} if neighbours == "replace_one" else {}
    seen = "2021-01-01" if neighbours == "add_remove" else "2022-02-02"  # data no other test uses
    path = live.write_csv([[*row[:-1], seen] for row in DATA[what]])
    dataset, person = opened(
        live, GRANTS["pure"], live.dataset(path, neighbours=neighbours, **rows)
    )
    for where in ({}, {"where": {"column": "age", "op": "<", "value": 0}}):
        reply = ask(live.client(person), question(dataset, {**QUERY, **where}), new_key())
        value = made(reply)["value"]
        assert [item["term"] for item in value["coefficients"]] == TERMS
        assert "NaN" not in reply.text
        assert "Infinity" not in reply.text
    assert live.spent(dataset, person.name) == Decimal(2)
    live.must_be_sound()


def test_the_same_key_gives_the_same_bytes(live: World) -> None:
    dataset, person = opened(live, GRANTS["pure"])
    client, key = live.client(person), new_key()
    first, again = (ask(client, question(dataset), key) for _ in range(2))
    assert first.text == again.text
    assert live.spent(dataset, person.name) == 1


MANY = {
    "name": "many",
    "type": "category",
    "values": [f"v{i}" for i in range(64)],
}
WRONG: dict[str, tuple[Json, str]] = {
    "an outcome that is no number": ({"outcome": "region"}, "/query/outcome"),
    "a date as outcome": ({"outcome": "seen"}, "/query/outcome"),
    "an outcome that is not there": ({"outcome": "shoes"}, "/query/outcome"),
    "the outcome among the features": ({"features": ["age", "income"]}, "/query/features/1"),
    "a feature that is not there": ({"features": ["age", "shoes"]}, "/query/features/1"),
    "a date as feature": ({"features": ["seen"]}, "/query/features/0"),
    "a feature twice": ({"features": ["age", "smoker", "age"]}, "/query/features"),
    "no feature": ({"features": []}, "/query/features"),
    "a feature that is a number": ({"features": [3]}, "/query/features/0"),
    "too many terms": ({"features": ["many", "age"]}, "/query/features"),
    "a negative ridge": ({"ridge": -0.5}, "/query/ridge"),
    "a ridge that is a text": ({"ridge": "1"}, "/query/ridge"),
    "an intercept that is a number": ({"intercept": 1}, "/query/intercept"),
    "groups": ({"group_by": ["region"]}, "/query/group_by"),
    "a filter of no column": (
        {"where": {"column": "shoes", "op": "is_null"}},
        "/query/where/column",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_regression_names_its_field_and_costs_nothing(live: World, wrong: str) -> None:
    members, pointer = WRONG[wrong]
    path = live.write_csv([[30, 5, "north", "true", "2021-01-01", "v1"]], [*HEADER, "many"])
    dataset, person = opened(live, GRANTS["pure"], live.dataset(path, columns=[*COLUMNS, MANY]))
    reply = ask(live.client(person), question(dataset, {**QUERY, **members}), new_key())
    assert reply.status_code == 422, reply.text
    assert reply.json()["errors"][0]["pointer"] == pointer
    assert live.spent(dataset, person.name) == 0


@pytest.mark.parametrize("kind", [None, "laplace", "gaussian"])
def test_a_half_width_is_refused(live: World, kind: str | None) -> None:
    dataset, person = opened(live, GRANTS["zcdp"])
    mechanism = {} if kind is None else {"mechanism": {"kind": kind}}
    body = question(dataset, privacy={"half_width": 10}, **mechanism)
    reply = ask(live.client(person), body, new_key())
    assert reply.status_code == 422
    (error,) = reply.json()["errors"]
    assert error["pointer"] == "/privacy/half_width"
    assert "depends on what is released" in error["rule"]
    other = {**body, "privacy": {"epsilon": 1}, "mechanism": {"kind": "exponential"}}
    reply = ask(live.client(person), other, new_key())
    assert [error["pointer"] for error in reply.json()["errors"]] == ["/mechanism/kind"]
    assert live.spent(dataset, person.name) == 0


def test_the_ledger_entry_holds_the_number_of_measured_moments(live: World) -> None:
    dataset, person = opened(live, GRANTS["pure"])
    made(ask(live.client(person), question(dataset), new_key()))
    (entry,) = live.entries(dataset, "charge")
    text = json.dumps(entry)
    assert '"moments": 21' in text
    assert '"measure": "moments"' in text
