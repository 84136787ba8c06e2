"""Workloads, running totals and randomised columns over HTTP: answers, prices, refusals."""

from decimal import Decimal

import pytest

from tests.server import Json, World, ask, exact, made, new_key

ADULT: Json = {"column": "age", "op": ">=", "value": 18}
SMOKER: Json = {"column": "smoker", "op": "==", "value": True}
WORKLOAD: Json = {
    "kind": "workload",
    "predicates": [
        {"name": "adults", "where": ADULT},
        {"name": "children", "where": {"column": "age", "op": "<", "value": 18}},
        {"name": "adults who smoke", "where": {"all": [ADULT, SMOKER]}},
        {"name": "of no age", "where": {"column": "age", "op": "is_null"}},
    ],
}
RANGES: Json = {
    "kind": "workload",
    "strategy": "hierarchical",
    "nonnegative": True,
    "predicates": [
        {
            "name": f"{low}-{high}",
            "where": {"column": "seen", "op": "between", "value": [low, high]},
        }
        for low, high in (
            ("2020-01-01", "2021-03-31"),
            ("2021-02-01", "2021-05-31"),
            ("2021-05-01", "2021-09-30"),
        )
    ],
}


def question(dataset: str, query: Json, epsilon: str = "0.25", **more: object) -> Json:
    return {"dataset": dataset, "query": query, "privacy": {"epsilon": epsilon}, **more}


@pytest.mark.parametrize("query", [WORKLOAD, RANGES], ids=["cells", "hierarchical"])
def test_a_workload_is_one_charge_and_each_answer_has_its_interval(
    live: World, query: Json
) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    asked = question(dataset, query)
    preview = made(client.post("/v1/queries/preview", json=asked))
    answer = made(ask(client, asked, new_key()))
    assert exact(answer["charged"]) == exact(preview["price"]) == Decimal("0.25")
    assert live.spent(dataset, person.name) == Decimal("0.25")
    assert answer["mechanism"] == preview["mechanism"]
    curve = made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}/tradeoff"))
    assert not curve["exact"]
    names = [predicate["name"] for predicate in query["predicates"]]
    assert [item["name"] for item in answer["value"]] == names
    for item in answer["value"]:
        interval = item["interval"]
        assert interval["low"] <= item["value"] <= interval["high"]
        assert (interval["confidence"], interval["covers"]) == (0.95, "noise")
    widest = preview["expected_error"]["half_width"]
    assert (
        all(
            item["interval"]["high"] - item["interval"]["low"] <= 2 * widest + 1e-6
            for item in answer["value"]
        )
        or query is RANGES
    )  # widened to cover the non-negativity correction
    live.must_be_sound()


def test_a_workload_is_near_the_exact_counts_and_its_alternatives_are_listed(live: World) -> None:
    """Noise of scale 1/10 on 60 rows is off by 4 with probability below 1e-15."""
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1000)
    client = live.client(person)
    body = question(dataset, WORKLOAD, "10")
    values = {item["name"]: item["value"] for item in made(ask(client, body, new_key()))["value"]}
    assert abs(values["adults"] - 42) < 4
    assert abs(values["children"] - 18) < 4
    assert abs(values["adults who smoke"] - 21) < 4
    assert abs(values["of no age"]) < 4
    preview = made(client.post("/v1/queries/preview", json=body))
    strategies = [each["mechanism"]["strategy"] for each in preview["alternatives"]]
    assert strategies == ["identity", "cells"]
    errors = [each["expected_error"]["total_squared_error"] for each in preview["alternatives"]]
    chosen = preview["expected_error"]["total_squared_error"]
    assert chosen == min(errors)


def test_a_workload_can_be_priced_by_its_half_width(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1000)
    client = live.client(person)
    body = {"dataset": dataset, "query": WORKLOAD, "privacy": {"half_width": 20}}
    answer = made(ask(client, body, new_key()))
    for item in answer["value"]:
        assert item["interval"]["high"] - item["interval"]["low"] <= 40
    wider = {**body, "privacy": {"half_width": 40}}
    preview = made(client.post("/v1/queries/preview", json=wider))
    assert exact(preview["price"]) < exact(answer["charged"])


def test_a_cdf_never_falls_and_ends_near_the_number_of_rows(live: World) -> None:
    """Ages are 0 to 59. Noise of scale 1/10 on four bins is off by 8 with probability below
    1e-15.
    """
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1000)
    client = live.client(person)
    asked = question(dataset, {"kind": "cdf", "column": "age", "edges": [0, 18, 30, 45, 120]}, "10")
    preview = made(client.post("/v1/queries/preview", json=asked))
    answer = made(ask(client, asked, new_key()))
    assert exact(answer["charged"]) == exact(preview["price"]) == 10
    values = [item["value"] for item in answer["value"]]
    assert values == sorted(values)
    for value, count in zip(values, (18, 30, 45, 60), strict=True):
        assert abs(value - count) < 8
    assert [item["up_to"] for item in answer["value"]] == [18, 30, 45, 120]
    assert answer["value"][-1]["share"]["value"] == 1
    live.must_be_sound()


def fixed_dataset(live: World, name: str) -> str:
    """60 persons with one row each under replace_one: 30 smoke."""
    dataset = live.dataset(neighbours="replace_one", rows=60)
    live.grant(dataset, "*", 1000)
    live.grant(dataset, name, 1000)
    return dataset


def test_a_randomised_column_reports_every_row_and_costs_its_epsilon(live: World) -> None:
    person = live.person()
    dataset = fixed_dataset(live, person.name)
    client = live.client(person)
    query = {"kind": "randomized_column", "column": "smoker", "missing": False}
    body = question(dataset, query, "15")
    preview = made(client.post("/v1/queries/preview", json=body))
    answer = made(ask(client, body, new_key()))
    assert exact(answer["charged"]) == exact(preview["price"]) == 15
    assert answer["mechanism"]["kind"] == "randomized_response"
    assert [item["outcome"] for item in answer["value"]] == [False, True]
    assert sum(item["reported"] for item in answer["value"]) == 60
    # At epsilon 15 a row is flipped with probability 3e-7: more than 10 of 60 never are.
    assert all(abs(item["value"] - 30) < 10 for item in answer["value"])
    curve = made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}/tradeoff"))
    assert curve["exact"]
    assert "randomised response" in curve["theorem"]
    wide = {**body, "privacy": {"half_width": 40}}
    assert exact(made(client.post("/v1/queries/preview", json=wide))["price"]) < 15
    grid = {**query, "column": "region", "missing": "north", "grid": {"rows": 2, "columns": 2}}
    answer = made(ask(client, question(dataset, grid, "2"), new_key()))
    assert len(answer["value"]) == 4
    live.must_be_sound()


def test_a_randomised_column_is_refused_if_the_number_of_rows_is_private(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    query = {"kind": "randomized_column", "column": "smoker"}
    reply = ask(live.client(person), question(dataset, query), new_key())
    assert reply.status_code == 422
    (error,) = reply.json()["errors"]
    assert error["pointer"] == "/query/kind"
    assert "add_remove" in error["rule"]
    assert live.spent(dataset, person.name) == 0


def predicates(*wheres: Json) -> list[Json]:
    return [{"name": str(i), "where": where} for i, where in enumerate(wheres)]


WRONG: dict[str, tuple[Json, str]] = {
    "an undeclared column": (
        {"predicates": predicates(ADULT, {"column": "shoes", "op": "==", "value": 1})},
        "/query/predicates/1/where/column",
    ),
    "a name twice": (
        {"predicates": [{"name": "a", "where": ADULT}, {"name": "a", "where": SMOKER}]},
        "/query/predicates/1/name",
    ),
    "no predicate": ({"predicates": []}, "/query/predicates"),
    "too many": ({"predicates": predicates(*[ADULT] * 1001)}, "/query/predicates"),
    "no name": ({"predicates": [{"where": ADULT}]}, "/query/predicates/0/name"),
    "an unknown strategy": (
        {"predicates": predicates(ADULT), "strategy": "best"},
        "/query/strategy",
    ),
    "a hierarchy of booleans": (
        {"predicates": predicates(SMOKER), "strategy": "hierarchical"},
        "/query/strategy",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_workload_names_its_field_and_costs_nothing(live: World, wrong: str) -> None:
    members, pointer = WRONG[wrong]
    person = live.person()
    dataset = live.open_dataset(person)
    query = {"kind": "workload", **members}
    reply = ask(live.client(person), question(dataset, query), new_key())
    assert reply.status_code == 422
    assert [error["pointer"] for error in reply.json()["errors"]] == [pointer]
    assert live.spent(dataset, person.name) == 0
