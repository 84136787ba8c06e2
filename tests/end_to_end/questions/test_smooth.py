"""Smooth sensitivity over HTTP: previewed, charged and answered; refused by name; S stays
hidden.
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.server import Json, Person, World, ask, exact, made, new_key

SMOOTH: Json = {"kind": "smooth_sensitivity"}
WHERE: Json = {"column": "age", "op": "<", "value": 30}
KINDS: dict[str, Json] = {
    "median": {"kind": "median", "column": "age"},
    "quantile": {"kind": "quantile", "column": "income", "q": "0.9", "where": WHERE},
    "min": {"kind": "min", "column": "age", "missing": 7},
    "max": {"kind": "max", "column": "income", "rank": 3},
    "iqr": {"kind": "iqr", "column": "age"},
    "trimmed_mean": {"kind": "trimmed_mean", "column": "income", "trim": 0.1},
}
NOISES: dict[str, Json] = {
    "student_t": {"epsilon": "0.5"},
    "cauchy": {"epsilon": "0.5"},
    "laplace": {"epsilon": "0.5", "delta": "1e-6"},
    "gaussian": {"epsilon": "0.5", "delta": "1e-6"},
    "laplace_log_normal": {"rho": "0.1"},
    "uniform_log_normal": {"rho": "0.1"},
    "arsinh_normal": {"rho": "0.1"},
}


def smooth(dataset: str, query: Json, epsilon: object = 1, **more: Any) -> Json:
    base = {"dataset": dataset, "query": query, "privacy": {"epsilon": epsilon}}
    return {**base, "mechanism": SMOOTH, **more}


def opened(world: World, person: Person, dataset: str, budget: Json) -> str:
    for holder in ("*", person.name):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=budget))
    return dataset


def ages(count: int) -> list[list[object]]:
    return [[i % 100, 1000 + i, "north", "true", "2021-01-01"] for i in range(count)]


@pytest.fixture(scope="module")
def asker(live_on_each: World) -> tuple[World, Person, str]:
    world = live_on_each
    person = world.person()
    path = world.write_csv(ages(400))
    dataset = world.dataset(path, neighbours="replace_one", rows=400)
    return world, person, opened(world, person, dataset, {"currency": "pure", "epsilon": 100_000})


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_costs_its_preview_and_hides_its_scale(
    asker: tuple[World, Person, str], name: str
) -> None:
    world, person, dataset = asker
    client = world.client(person)
    question = smooth(dataset, KINDS[name], "0.123456789012")
    before = world.spent(dataset, person.name)
    preview = made(client.post("/v1/queries/preview", json=question))
    assert preview["fits"]
    error = preview["expected_error"]
    assert error["half_width"] is None
    assert error["smooth_sensitivities"] > 0
    assert "depends on the rows" in error["text"]
    assert world.spent(dataset, person.name) == before

    request_key = new_key()
    answer = made(ask(client, question, request_key))
    assert answer["interval"] is None
    assert exact(answer["charged"]) == exact(preview["price"]) == Decimal("0.123456789012")
    assert world.spent(dataset, person.name) - before == exact(preview["price"])
    # Everything in the reply except the value was known before any row was read.
    assert answer["mechanism"] == preview["mechanism"]
    assert answer["mechanism"]["kind"] == "smooth_sensitivity"
    public = {"id", "status", "value", "mechanism", "interval", "charged", "theorem", "receipt"}
    assert set(answer) <= public | set(preview)
    assert ask(client, question, request_key).json() == answer
    world.must_be_sound()


def test_large_budgets_give_answers_near_the_truth(asker: tuple[World, Person, str]) -> None:
    """Ages 0 to 99 four times and incomes 1000 to 1399 make 400 rows.

    At epsilon 80 the noise is as large as a gap between values. Student noise exceeds 30 gaps with
    probability below 1e-6.
    """
    world, person, dataset = asker
    client = world.client(person)

    def value(query: Json) -> float:
        mechanism = {**SMOOTH, "noise": "student_t", "degrees": 5}
        question = smooth(dataset, query, 80, mechanism=mechanism)
        return float(made(ask(client, question, new_key()))["value"])

    assert abs(value({"kind": "median", "column": "income", "missing": 0}) - 1199) < 30
    assert abs(value({"kind": "quantile", "column": "income", "q": 0.9}) - 1359) < 40
    assert abs(value({"kind": "iqr", "column": "age"}) - 50) < 30
    assert abs(value(KINDS["trimmed_mean"]) - 1199.5) < 30


@pytest.mark.parametrize("noise", NOISES)
def test_every_noise_is_charged_by_its_own_theorem(live: World, noise: str) -> None:
    person = live.person()
    budget = {"currency": "zcdp", "epsilon": 10, "delta": "1e-5"}
    if "delta" in NOISES[noise]:
        budget = {"currency": "approximate", "epsilon": 10, "delta": "1e-5"}
    dataset = opened(live, person, live.dataset(), budget)
    mechanism = {**SMOOTH, "noise": noise}
    question = smooth(dataset, KINDS["median"], privacy=NOISES[noise], mechanism=mechanism)
    answer = made(ask(live.client(person), question, new_key()))
    assert 0 <= answer["value"] <= 120
    shown_mechanism = answer["mechanism"]
    assert shown_mechanism["noise"] == noise
    assert shown_mechanism["beta"] > 0
    spent = live.budget(dataset, person.name)["spent"]
    for name, amount in NOISES[noise].items():
        if name in spent:
            assert spent[name] == pytest.approx(float(amount), rel=1e-9)
    charge = live.entries(dataset, "charge")[-1]
    assert noise in json.dumps(charge)
    live.must_be_sound()


def test_an_interval_is_released_where_it_is_paid_for(asker: tuple[World, Person, str]) -> None:
    world, person, dataset = asker
    before = world.spent(dataset, person.name)
    mechanism = {**SMOOTH, "interval_epsilon": "0.5"}
    answer = made(
        ask(
            world.client(person),
            smooth(dataset, KINDS["median"], 2, mechanism=mechanism),
            new_key(),
        )
    )
    assert answer["interval"]["low"] <= answer["value"] <= answer["interval"]["high"]
    assert answer["interval"]["confidence"] == 0.95
    assert world.spent(dataset, person.name) - before == 2


def test_a_noise_the_account_cannot_pay_for_is_refused(
    asker: tuple[World, Person, str],
) -> None:
    world, person, dataset = asker
    for noise in ("laplace", "arsinh_normal"):
        privacy = {"epsilon": "0.5", "delta": "1e-6"}
        mechanism = {**SMOOTH, "noise": noise}
        question = smooth(dataset, KINDS["median"], privacy=privacy, mechanism=mechanism)
        before = world.spent(dataset, person.name)
        reply = ask(world.client(person), question, new_key())
        assert reply.status_code == 422
        assert "pure" in reply.text
        assert world.spent(dataset, person.name) == before


@pytest.mark.parametrize("name", ["median", "iqr", "trimmed_mean"])
def test_sparse_data_get_a_normal_charged_answer(
    asker: tuple[World, Person, str], name: str
) -> None:
    world, person, _ = asker
    missing: list[list[object]] = [["", "", "", "", ""]] * 3
    tables = [missing, ages(1), ages(1) * 20]
    for rows in tables:
        lines = [[*row[:4], f"2021-03-{len(rows):02d}" if row[4] else ""] for row in rows]
        path = world.write_csv(lines)
        dataset = world.dataset(path, neighbours="replace_one", rows=len(rows))
        opened(world, person, dataset, {"currency": "pure", "epsilon": 1000})
        before = world.spent(dataset, person.name)
        answer = made(ask(world.client(person), smooth(dataset, KINDS[name]), new_key()))
        assert answer["status"] == "answered"
        assert world.spent(dataset, person.name) - before == 1


PLANTED = "planted-value-9d2e"
MECHANISMS: list[tuple[Json, str]] = [
    ({"gamma": 1}, "/mechanism/gamma"),
    ({"noise": "cauchy", "gamma": 0.5}, "/mechanism/gamma"),
    ({"noise": "cauchy", "gamma": PLANTED}, "/mechanism/gamma"),
    ({"noise": "student_t", "gamma": 2}, "/mechanism/gamma"),
    ({"noise": "student_t", "beta": 1}, "/mechanism/beta"),
    ({"noise": "student_t", "degrees": 2, "beta": 0.5}, "/mechanism/beta"),
    ({"beta": 0}, "/mechanism/beta"),
    ({"beta": -1}, "/mechanism/beta"),
    ({"beta": 1e-300}, "/mechanism/beta"),
    ({"noise": "student_t", "degrees": 1, "beta": 50.00000001}, "/mechanism/beta"),
    ({"beta": PLANTED}, "/mechanism/beta"),
    ({"degrees": 0}, "/mechanism/degrees"),
    ({"degrees": 1.5}, "/mechanism/degrees"),
    ({"noise": PLANTED}, "/mechanism/noise"),
    ({"noise": "gumbel"}, "/mechanism/noise"),
    ({"noise": "laplace"}, "/privacy"),
    ({"noise": "arsinh_normal", "sigma": 9}, "/mechanism/sigma"),
    ({"scale": 1}, "/mechanism/scale"),
    ({"interval_epsilon": 1}, "/mechanism/interval_epsilon"),
    ({"interval_epsilon": 0}, "/mechanism/interval_epsilon"),
]
QUESTIONS: list[tuple[Json, str]] = [
    ({"query": {**KINDS["median"], "candidates": [1, 2]}}, "/query/candidates"),
    ({"query": {**KINDS["median"], "missing": 121}}, "/query/missing"),
    ({"query": {**KINDS["median"], "missing": PLANTED}}, "/query/missing"),
    ({"query": {"kind": "median", "column": "seen"}}, "/mechanism/kind"),
    ({"query": {"kind": "iqr", "column": "region"}}, "/query/column"),
    ({"query": {"kind": "iqr"}}, "/query/column"),
    ({"query": {**KINDS["iqr"], "group_by": ["region"]}}, "/query/group_by"),
    ({"query": {"kind": "trimmed_mean", "column": "age"}}, "/query/trim"),
    ({"query": {**KINDS["trimmed_mean"], "trim": 0.5}}, "/query/trim"),
    ({"query": {**KINDS["trimmed_mean"], "trim": 0}}, "/query/trim"),
    ({"query": {**KINDS["trimmed_mean"], "where": WHERE}}, "/query/where"),
    ({"query": {"kind": "count"}}, "/mechanism/kind"),
    ({"privacy": {"half_width": 5}}, "/privacy"),
    ({"privacy": {"epsilon": 101}}, "/privacy/epsilon"),
]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [*(({"mechanism": {**SMOOTH, **each}}, at) for each, at in MECHANISMS), *QUESTIONS],
    ids=lambda case: json.dumps(case)[:70],
)
def test_an_impossible_request_is_refused_by_its_field_and_costs_nothing(
    asker: tuple[World, Person, str], changes: Json, pointer: str
) -> None:
    world, person, dataset = asker
    client = world.client(person)
    before = world.spent(dataset, person.name)
    for path in ("/v1/queries", "/v1/queries/preview"):
        reply = client.post(path, json={**smooth(dataset, KINDS["median"]), **changes})
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid")
        assert pointer in [error["pointer"] for error in reply.json()["errors"]], reply.text
        assert PLANTED not in reply.text
    assert world.spent(dataset, person.name) == before


def test_a_trimmed_mean_under_add_remove_is_refused(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    reply = ask(live.client(person), smooth(dataset, KINDS["trimmed_mean"]), new_key())
    assert reply.status_code == 422
    assert [each["pointer"] for each in reply.json()["errors"]] == ["/query/kind"]
