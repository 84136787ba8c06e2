"""Invalid questions: every reply is a 4xx that names the field, quotes nothing, charges nothing."""

import json

import pytest

from tests.end_to_end.http.bad_requests import PLANTED, must_be_a_problem, send, shown
from tests.server import Json, Person, World, ask, count, new_key

WHERE = "/query/where"
AGE: Json = {"column": "age", "op": ">=", "value": 1}


def nested(depth: int) -> Json:
    inner = AGE
    for _ in range(depth):
        inner = {"not": inner}
    return inner


def where(condition: object) -> Json:
    return {"query": {"kind": "count", "where": condition}}


def histogram(column: str, edges: object) -> Json:
    return {"query": {"kind": "histogram", "column": column, "edges": edges}}


def grouped(*counts: int) -> Json:
    """A query with more groups than the limit."""
    columns = ("age", "income")
    by = [
        {"column": name, "edges": [100 * i / count for i in range(count + 1)]}
        for name, count in zip(columns, counts, strict=True)
    ]
    return {"query": {"kind": "count", "group_by": by}}


def learned(**settings: object) -> Json:
    query = {"kind": "logistic_regression", "outcome": "smoker", "features": ["age"]}
    return {"query": query, "mechanism": {"kind": "noisy_gradient_descent", **settings}}


WRONG: list[tuple[Json, str]] = [
    (grouped(1001, 100), "/query/group_by"),
    (histogram("income", [i / 10 for i in range(100_002)]), "/query/edges"),
    *(
        (learned(clipping_norm=norm), "/mechanism/clipping_norm")
        for norm in (0, -1, 0.0, -0.0, 1e-320, 1e10, True, "1", PLANTED)
    ),
    (learned(learning_rate=0), "/mechanism/learning_rate"),
    (learned(steps=0), "/mechanism/steps"),
    (learned(sampling_rate=1.5), "/mechanism/sampling_rate"),
    ({"privacy": {"epsilon": 0}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": -1}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": -0.0}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": 1e-320}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": 1e-13}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": 2**63}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": 9223373}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": 1e300}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": 9000000}}, "/privacy/epsilon"),  # there would be no noise
    ({"privacy": {"epsilon": True}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": None}}, "/privacy"),
    ({"privacy": {"epsilon": [0.1]}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": {"value": 0.1}}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": PLANTED}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "NaN"}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "Infinity"}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "1e999"}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "1e-999999999"}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "0.1 "}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "0,1"}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "1_0"}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": ""}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "\u0661"}}, "/privacy/epsilon"),
    ({"privacy": {"epsilon": "1" * 100}}, "/privacy/epsilon"),
    ({"privacy": {}}, "/privacy"),
    ({"privacy": {"epsilon": 0.1, "extra": PLANTED}}, "/privacy/extra"),
    ({"privacy": 0.1}, "/privacy"),
    ({"privacy": None}, "/privacy"),
    ({"dataset": ""}, "/dataset"),
    ({"dataset": 7}, "/dataset"),
    ({"dataset": None}, "/dataset"),
    ({"dataset": PLANTED * 20}, "/dataset"),
    ({"fresh": "yes"}, "/fresh"),
    ({"fresh": 1}, "/fresh"),
    ({"confidence": 1}, "/confidence"),
    ({"confidence": 0}, "/confidence"),
    ({"confidence": 1.5}, "/confidence"),
    ({"confidence": "0.9"}, "/confidence"),
    ({"confidence": True}, "/confidence"),
    ({"mechanism": {"kind": PLANTED}}, "/mechanism/kind"),
    ({"mechanism": {"kind": "laplace", "seed": 7}}, "/mechanism/seed"),
    ({"surprise": PLANTED}, "/surprise"),
    ({"query": {"kind": PLANTED}}, "/query/kind"),
    ({"query": {}}, "/query"),
    ({"query": "count"}, "/query"),
    ({"query": []}, "/query"),
    ({"query": {"kind": "count", "column": "age"}}, "/query/column"),
    ({"query": {"kind": "sum"}}, "/query/column"),
    ({"query": {"kind": "sum", "column": PLANTED}}, "/query/column"),
    ({"query": {"kind": "sum", "column": "region"}}, "/query/column"),
    ({"query": {"kind": "mean", "column": 7}}, "/query/column"),
    ({"query": {"kind": "count", "group_by": ["age"]}}, "/query/group_by/0"),
    ({"query": {"kind": "count", "group_by": ["region", "region"]}}, "/query/group_by"),
    ({"query": {"kind": "count", "group_by": "region"}}, "/query/group_by"),
    ({"query": {"kind": "histogram", "column": "age"}}, "/query/edges"),
    (histogram("age", [5, 5]), "/query/edges"),
    (histogram("age", [9, 5]), "/query/edges"),
    (histogram("age", [5]), "/query/edges"),
    (histogram("age", [1, PLANTED]), "/query/edges/1"),
    (histogram("seen", ["2020-01-01", PLANTED]), "/query/edges/1"),
    (histogram("region", [1, 2]), "/query/edges"),
    (where({**AGE, "column": PLANTED}), f"{WHERE}/column"),
    (where({**AGE, "op": PLANTED}), f"{WHERE}/op"),
    (where({**AGE, "op": "; DROP TABLE rows"}), f"{WHERE}/op"),
    (where({**AGE, "value": PLANTED}), f"{WHERE}/value"),
    (where({**AGE, "value": True}), f"{WHERE}/value"),
    (where({**AGE, "value": None}), f"{WHERE}/value"),
    (where({**AGE, "value": [1]}), f"{WHERE}/value"),
    (where({**AGE, "value": 2**70}), f"{WHERE}/value"),
    (where({**AGE, "value": 1e300}), f"{WHERE}/value"),
    (where({"column": "region", "op": "==", "value": PLANTED}), f"{WHERE}/value"),
    (where({"column": "region", "op": "<", "value": "north"}), f"{WHERE}/op"),
    (where({"column": "region", "op": "in", "value": ["north", PLANTED]}), f"{WHERE}/value/1"),
    (where({"column": "age", "op": "between", "value": [1]}), f"{WHERE}/value"),
    (where({"column": "seen", "op": "==", "value": "2020-1-1"}), f"{WHERE}/value"),
    (where({"all": [AGE, {"any": [{**AGE, "column": PLANTED}]}]}), f"{WHERE}/all/1/any/0/column"),
    (where({"all": AGE}), f"{WHERE}/all"),
    (where({"not": AGE, "surprise": PLANTED}), f"{WHERE}/surprise"),
    (where(PLANTED), WHERE),
    (where(nested(30)), WHERE),
    (where({"all": [AGE] * 200}), WHERE),
]  # fmt: skip


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(("changes", "pointer"), WRONG, ids=shown)
def test_an_invalid_question_is_refused_by_its_field_and_its_value_is_not_quoted(
    live: World, asker: Person, changes: Json, pointer: str
) -> None:
    client = live.client(asker)
    question = {**count("target", 0.1), **changes}
    reply = ask(client, question, new_key())
    must_be_a_problem(reply, pointer)
    assert reply.status_code == 422
    preview = client.post("/v1/queries/preview", json=question)
    must_be_a_problem(preview)
    assert preview.status_code == 422


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("missing", ["dataset", "query", "privacy"])
def test_a_missing_field_is_named(live: World, asker: Person, missing: str) -> None:
    question = count("target", 0.1)
    del question[missing]
    must_be_a_problem(ask(live.client(asker), question, new_key()), f"/{missing}")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("raw", [b"null", b"1", b'"x"', b"[]", b"true", b"[1]", b"{}"])
def test_a_body_that_is_no_question_is_refused(live: World, asker: Person, raw: bytes) -> None:
    for path in ("/v1/queries", "/v1/queries/preview"):
        reply = send(live.client(asker), path, raw)
        must_be_a_problem(reply)
        assert reply.status_code == 422


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("depth", [100, 500, 900, 1500, 5000])
def test_deep_filters_are_refused_at_every_depth(live: World, asker: Person, depth: int) -> None:
    where = b'{"not":' * depth + json.dumps(AGE).encode() + b"}" * depth
    raw = (
        b'{"dataset":"target","privacy":{"epsilon":0.1},"query":{"kind":"count","where":'
        + where
        + b"}}"
    )
    for path in ("/v1/queries", "/v1/queries/preview"):
        must_be_a_problem(send(live.client(asker), path, raw))
