"""Error messages for newcomers: they suggest the intended name and never quote a value."""

from typing import Any

import httpx
import pytest

from tests.server import Json, World, ask, card, made, new_key


@pytest.fixture(scope="module", autouse=True)
def _target(live: World) -> None:
    live.dataset(name="target")
    live.grant("target", "*", 1000)
    live.grant("target", "ada", 1000)


def rules(reply: httpx.Response) -> dict[str, str]:
    assert reply.status_code == 422, reply.text
    return {error["pointer"]: error["rule"] for error in reply.json()["errors"]}


def question(query: Json, **changes: Any) -> Json:
    return {"dataset": "target", "query": query, "privacy": {"epsilon": 0.1}} | changes


COUNT: Json = {"kind": "count"}
MISSPELT: list[tuple[Json, str, str]] = [
    (
        question({"kind": "sum", "column": "incme"}),
        "/query/column",
        "no column 'incme'; did you mean 'income'?",
    ),
    (
        question({"kind": "count", "where": {"column": "Age", "op": ">=", "value": 1}}),
        "/query/where/column",
        "no column 'Age'; did you mean 'age'?",
    ),
    (
        question({"kind": "count", "group_by": ["regin"]}),
        "/query/group_by/0",
        "no column 'regin'; did you mean 'region'?",
    ),
    (
        question({"kind": "count", "where": {"column": "region", "op": "==", "value": "noth"}}),
        "/query/where/value",
        "must be one of the categories on the dataset's card; did you mean 'north'?",
    ),
    (
        question({"kind": "count", "wher": {}}),
        "/query/wher",
        "there is no such field; did you mean 'where'?",
    ),
    (
        question({"kind": "histogram", "column": "age", "edgs": [0, 1]}),
        "/query/edgs",
        "there is no such field; did you mean 'edges'?",
    ),
    (
        question({"kind": "count", "where": {"all": [{"colunm": "age", "op": ">="}]}}),
        "/query/where/all/0/colunm",
        "there is no such field; did you mean 'column'?",
    ),
    (
        question(COUNT, privcy={"epsilon": 1}),
        "/privcy",
        "there is no such field; did you mean 'privacy'?",
    ),
    (
        question(COUNT, privacy={"epsilon": 0.1, "detla": 1e-6}),
        "/privacy/detla",
        "there is no such field; did you mean 'delta'?",
    ),
    (
        question(COUNT, mechanism={"kind": "laplace", "nois": "laplace"}),
        "/mechanism/nois",
        "there is no such field; did you mean 'noise'?",
    ),
]


@pytest.mark.parametrize(("body", "pointer", "rule"), MISSPELT, ids=[m[1] for m in MISSPELT])
def test_a_misspelt_name_gets_the_nearest_as_suggestion(
    live: World, body: Json, pointer: str, rule: str
) -> None:
    for path in ("/v1/queries", "/v1/queries/preview"):
        assert rules(live.client("ada").post(path, json=body))[pointer] == rule


def test_a_misspelt_kind_gets_the_nearest_as_suggestion(live: World) -> None:
    client = live.client("ada")
    kind = rules(ask(client, question({"kind": "cuont"}), new_key()))["/query/kind"]
    assert kind.endswith("; did you mean 'count'?")
    noise = rules(ask(client, question(COUNT, mechanism={"kind": "laplase"}), new_key()))
    assert noise["/mechanism/kind"].endswith("; did you mean 'laplace'?")
    where = {"column": "age", "op": "betwen", "value": [1, 2]}
    errors = rules(ask(client, question({"kind": "count", "where": where}), new_key()))
    assert errors["/query/where/op"].endswith("; did you mean 'between'?")


def test_sql_suggests_the_nearest_column_too(live: World) -> None:
    body = {"sql": "SELECT AVG(incme) FROM target", "privacy": {"epsilon": 0.1}}
    assert "no column 'incme'; did you mean 'income'?" in ask(live.client("ada"), body).text


def test_only_a_grant_reveals_declared_names(live: World) -> None:
    body = question({"kind": "sum", "column": "incme"})
    reply = ask(live.client("bob"), body, new_key())
    assert reply.status_code == 403
    assert "income" not in reply.text


def test_a_misspelt_field_or_currency_of_a_budget_gets_a_suggestion(live: World) -> None:
    path = "/v1/datasets/target/budgets/bob"
    errors = rules(live.admin.put(path, json={"currency": "zcpd", "epsilno": 1}))
    assert errors["/currency"].endswith("; did you mean 'zcdp'?")
    assert errors["/epsilno"] == "there is no such field; did you mean 'epsilon'?"


def test_a_misspelt_role_gets_the_nearest_as_suggestion(live: World) -> None:
    errors = rules(live.admin.post("/v1/analysts", json={"name": "x", "role": "analist"}))
    assert errors["/role"].endswith("; did you mean 'analyst'?")


# Query parameters


def operations(live: World) -> list[tuple[str, str]]:
    paths = live.admin.get("/openapi.json").json()["paths"]
    return [(path, method) for path, each in paths.items() for method in each]


def test_an_unknown_query_parameter_is_refused_everywhere(live: World) -> None:
    found = operations(live)
    assert len(found) > 25
    for path, method in [*found, ("/openapi.json", "get")]:
        address = path
        for part in ("{dataset}", "{holder}", "{name}", "{id}", "{key_id}"):
            address = address.replace(part, "target")
        reply = live.admin.request(method, address, params={"nonsense": "planted"})
        if reply.status_code == 403:
            reply = live.client("ada").request(method, address, params={"nonsense": "planted"})
        assert "there is no such query parameter" in rules(reply)["/nonsense"], (path, method)
        assert "planted" not in reply.text


def test_a_misspelt_query_parameter_gets_the_nearest_as_suggestion(live: World) -> None:
    errors = rules(live.admin.get("/v1/ledger", params={"limt": 5}))
    assert errors == {"/limt": "there is no such query parameter; did you mean 'limit'?"}
    errors = rules(live.client("ada").get("/v1/budgets", params={"xyz": 5}))
    assert errors["/xyz"].startswith("there is no such query parameter; this path takes ")


def test_a_query_parameter_that_is_given_twice_is_refused(live: World) -> None:
    twice = "dataset=people&dataset=planted"
    reply = live.client("ada").get("/v1/budgets", params=twice)
    assert reply.status_code == 422
    assert rules(reply) == {"/dataset": "a query parameter is given once only"}
    assert "planted" not in reply.text


def test_without_a_key_no_reply_mentions_parameters(live: World) -> None:
    reply = live.server.client().get("/v1/ledger", params={"limt": 5})
    assert reply.status_code == 401


# Losses that the account cannot count


def refused_by(live: World, name: str, grant: Json, **changes: Any) -> str:
    live.person(name)
    live.dataset(name=name)
    for holder in ("*", name):
        made(live.admin.put(f"/v1/datasets/{name}/budgets/{holder}", json=grant))
    body = question(COUNT, dataset=name, **changes)
    return rules(ask(live.client(name), body, new_key()))["/mechanism"]


def test_a_rho_on_an_approximate_account_suggests_a_delta(live: World) -> None:
    message = refused_by(
        live,
        "rho-asked",
        {"currency": "approximate", "epsilon": 10, "delta": 1e-5},
        privacy={"rho": 0.1},
        mechanism={"kind": "gaussian"},
    )
    assert message == (
        "the account of rho-asked is approximate and counts epsilon and delta, and this loss is a "
        "rho without an epsilon: add a delta to privacy, or give privacy as epsilon without delta "
        "and choose a mechanism that needs no delta, such as laplace, or ask an administrator for "
        "a budget in another currency; currencies that can: zcdp, renyi"
    )


def test_a_delta_on_a_pure_account_suggests_laplace(live: World) -> None:
    message = refused_by(
        live,
        "delta-asked",
        {"currency": "pure", "epsilon": 10},
        privacy={"epsilon": 0.1, "delta": 1e-6},
        mechanism={"kind": "gaussian"},
    )
    assert "is pure and counts epsilon alone, and this loss has a delta" in message
    assert "such as laplace" in message


# Cards


def test_an_invalid_column_is_the_only_error(live: World) -> None:
    columns = [{"name": "age", "type": "integr", "low": 0, "high": 1}]
    broken_rules = rules(live.admin.post("/v1/datasets", json=card("x.csv", columns=columns)))
    assert set(broken_rules) == {"/columns/0/type"}
    assert broken_rules["/columns/0/type"].endswith("; did you mean 'integer'?")
    broken_rules = rules(live.admin.post("/v1/datasets", json=card("x.csv", columns=[])))
    assert broken_rules == {"/columns": "at least 1 of them"}


def test_cells_of_a_misspelt_column_get_the_nearest_as_suggestion(live: World) -> None:
    body = card("x.csv", cells={"column": "regoin"})
    errors = rules(live.admin.post("/v1/datasets", json=body))
    assert "cells must name a declared column; did you mean 'region'?" in errors.values()


# Half widths


def test_a_half_width_may_be_decimal_text(live: World) -> None:
    client = live.client("ada")
    as_number = made(
        client.post("/v1/queries/preview", json=question(COUNT, privacy={"half_width": 12.5}))
    )
    for text in ("12.5", "12.50", "1.25e1"):
        body = question(COUNT, privacy={"half_width": text})
        assert made(client.post("/v1/queries/preview", json=body)) == as_number
    for text in ("0", "-1", "12,5", "1e400", "1e-400", "NaN", ""):
        body = question(COUNT, privacy={"half_width": text})
        assert "/privacy/half_width" in rules(client.post("/v1/queries/preview", json=body))


def test_a_half_width_of_many_digits_is_never_exceeded(live: World) -> None:
    text = "12.49999999999999999999"  # the nearest float is 12.5, which is wider
    body = question(COUNT, privacy={"half_width": text})
    shown = made(live.client("ada").post("/v1/queries/preview", json=body))
    assert shown["expected_error"]["half_width"] < 12.5
