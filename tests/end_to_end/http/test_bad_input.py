"""Invalid input: every reply is a 4xx that names the field, quotes no value and changes no
ledger.
"""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.server import Json, Person, World, ask, card, count, made, new_key

PLANTED = "planted-value-7c1f"
HUGE_INTEGER = "1" + "0" * 5000


@pytest.fixture(scope="module")
def asker(live: World) -> Person:
    """An analyst with a budget on the dataset `target`."""
    person = live.person("asker")
    live.dataset(name="target")
    live.grant("target", "*", 1000)
    live.grant("target", "asker", 1000)
    return person


@pytest.fixture
def unchanged(live: World, asker: Person) -> Iterator[None]:
    """Check that a test leaves the ledger unchanged and the server running."""
    before = live.admin.get("/v1/ledger/export").text
    yield
    assert live.admin.get("/v1/ledger/export").text == before
    assert "unexpected" not in live.server.output()
    assert PLANTED not in live.server.output()


def send(client: httpx.Client, path: str, raw: bytes, method: str = "POST") -> httpx.Response:
    headers = {"Content-Type": "application/json", "Idempotency-Key": new_key()}
    return client.request(method, path, content=raw, headers=headers)


def must_be_a_problem(reply: httpx.Response, pointer: str | None = None) -> None:
    assert 400 <= reply.status_code < 500, (reply.status_code, reply.text)
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert {"type", "title", "status", "detail"} <= set(problem)
    assert problem["status"] == reply.status_code
    assert problem["type"].startswith("/problems/")
    assert PLANTED not in reply.text
    if pointer is not None:
        assert pointer in [error["pointer"] for error in problem["errors"]], problem


MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{planted-value-7c1f",
    "a NaN literal": b'{"dataset": "target", "privacy": {"epsilon": NaN}}',
    "an infinity": b'{"dataset": "target", "privacy": {"epsilon": -Infinity}}',
    "1e999": b'{"dataset": "target", "privacy": {"epsilon": 1e999}}',
    "a key twice": b'{"dataset": "target", "dataset": "planted-value-7c1f"}',
    "a key twice, deep": b'{"privacy": {"epsilon": 1, "epsilon": 2}}',
    "not UTF-8": b'{"dataset": "\xff\xfe"}',
    "UTF-16": '{"dataset": "target"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"dataset": "target"}',
    "a lone surrogate": b'{"dataset": "\\ud800"}',
    "a surrogate as a key": b'{"\\udfff": 1}',
    "NUL": b'{"dataset": "tar\\u0000get"}',
    "NUL as a key": b'{"a\\u0000": 1}',
    "a bare NUL": b'{"dataset": "\x00"}',
    "a control character": b'{"dataset": "\n"}',
    "two values": b'{"dataset": "target"} {}',
    "a comma too many": b'{"dataset": "target",}',
    "single quotes": b"{'dataset': 'target'}",
    "depth": b"[" * 100_000 + b"]" * 100_000,
    "depth of objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "an integer of 5000 digits": b'{"dataset": ' + HUGE_INTEGER.encode() + b"}",
}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("what", MALFORMED)
@pytest.mark.parametrize("path", ["/v1/queries", "/v1/queries/preview"])
def test_a_body_that_is_not_strict_json_is_malformed(
    live: World, asker: Person, what: str, path: str
) -> None:
    reply = send(live.client(asker), path, MALFORMED[what])
    must_be_a_problem(reply)
    assert (reply.status_code, reply.json()["type"]) == (400, "/problems/malformed")


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        (b'{"dataset": "target",\n "query"', "The body is not valid JSON: line 2, column 9."),
        (b'{"dataset": "target"} {}', "The body is not valid JSON: line 1, column 23."),
        (b"", "The body is not valid JSON: line 1, column 1."),
        (b'{"dataset": "\xff"}', "The body is not UTF-8 at byte 13."),
        (b"[" * 50_000, "The body is nested too deeply."),
    ],
)
def test_the_reply_names_the_position_where_json_ends(
    live: World, asker: Person, raw: bytes, detail: str
) -> None:
    assert send(live.client(asker), "/v1/queries", raw).json()["detail"] == detail


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("what", MALFORMED)
def test_bodies_of_administrators_are_read_as_strictly(live: World, what: str) -> None:
    for method, path in (
        ("POST", "/v1/datasets"),
        ("PATCH", "/v1/datasets/target"),
        ("POST", "/v1/analysts"),
        ("PATCH", "/v1/analysts/asker"),
        ("PUT", "/v1/datasets/target/budgets/asker"),
    ):
        reply = send(live.admin, path, MALFORMED[what], method)
        must_be_a_problem(reply)
        assert reply.status_code == 400


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


def shown(case: object) -> str:
    return json.dumps(case)[:60] if isinstance(case, dict) else ""


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


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("field", ["epsilon", "delta"])
@pytest.mark.parametrize(
    "amount",
    [-1, 1e-320, 2**63, 1e300, True, [], {}, "NaN", "x", "", "-1", 10**30, None],
    ids=repr,
)
def test_an_invalid_limit_is_refused_by_its_field(live: World, field: str, amount: object) -> None:
    body = {"currency": "approximate", "epsilon": 1, "delta": 1e-6, field: amount}
    reply = live.admin.put("/v1/datasets/target/budgets/asker", json=body)
    must_be_a_problem(reply, f"/{field}")
    assert reply.status_code == 422


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "changes",
    [
        {"name": 7},
        {"name": None},
        {"name": "x" * 201},
        {"columns": {"age": "integer"}},
        {"columns": [{"name": "age", "type": "integer", "low": True, "high": 2}]},
        {"columns": [{"name": "age", "type": "integer", "low": "0", "high": 2}]},
        {"columns": [{"name": "age", "type": "integer", "low": 0, "high": 2**63}]},
        {"columns": [{"name": "income", "type": "number", "low": 0, "high": 1e16}]},
        {"columns": [{"name": "income", "type": "number", "low": 0, "high": 1e-300}]},
        {"columns": [{"name": "income", "type": "number", "low": PLANTED, "high": 1}]},
        {"columns": [{"name": "region", "type": "category", "values": []}]},
        {"columns": [{"name": "region", "type": "category", "values": ["a", "a"]}]},
        {"columns": [{"name": "region", "type": "category", "values": ["a", 7]}]},
        {"columns": [{"name": "seen", "type": "date", "low": PLANTED, "high": "2020-01-01"}]},
        {"columns": [{"name": "seen", "type": "date", "low": "2021-01-01", "high": "2020-01-01"}]},
        {"source": {"engine": PLANTED, "path": "x.csv"}},
        {"source": {"path": 7}},
        {"source": {"path": ""}},
        {"source": "people.csv"},
        {"person": {"kind": "column", "column": "age", "rows_max": 0}},
        {"neighbours": PLANTED},
        {"rows": -1},
        {"cells": {"column": "age", "edges": [0, PLANTED]}},
        {"description": "x" * 10_001},
        {"reason": "x" * 1_001},
    ],
    ids=shown,
)
def test_an_invalid_registration_is_refused(live: World, changes: Json) -> None:
    reply = live.admin.post("/v1/datasets", json=card("people.csv", **changes))
    must_be_a_problem(reply)
    assert reply.status_code == 422
    assert reply.json()["errors"]


@pytest.mark.usefixtures("unchanged")
def test_a_body_too_large_is_refused_with_and_without_a_declared_length(
    live: World, asker: Person
) -> None:
    client = live.client(asker)
    large = b'{"dataset": "' + b"x" * (5 << 20) + b'"}'
    declared = send(client, "/v1/queries", large)
    must_be_a_problem(declared)

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(large), 65536):
            yield large[start : start + 65536]

    headers = {"Content-Type": "application/json"}
    streamed = client.post("/v1/queries", content=chunks(), headers=headers)
    must_be_a_problem(streamed)
    assert (declared.status_code, streamed.status_code) == (413, 413)


@pytest.mark.usefixtures("unchanged")
def test_unknown_paths_and_methods_are_problems(live: World, asker: Person) -> None:
    client = live.client(asker)
    for method, path, status in (
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/queries/", 404),
        ("GET", f"/{PLANTED}", 404),
        ("GET", "/v1/queries/%00", 404),
        ("GET", "/v1/queries/%ff", 404),
        ("GET", "/v1/datasets/%00", 404),
        ("GET", "/v1/datasets/%ED%A0%80", 404),
        ("GET", f"/v1/datasets/{'x' * 5000}", 404),
        ("GET", "/v1/datasets/..%2f..%2fetc", 404),
        ("DELETE", "/v1/queries", 405),
        ("PUT", "/v1/queries/preview", 405),
    ):
        reply = client.request(method, path)
        assert reply.status_code == status, (method, path, reply.text)
        must_be_a_problem(reply)


@pytest.mark.usefixtures("unchanged")
def test_odd_parameters_and_headers_are_refused(live: World, asker: Person) -> None:
    for path, parameters in (
        ("/v1/ledger", {"dataset": "x" * 201}),
        ("/v1/ledger", {"limit": PLANTED}),
        ("/v1/ledger", {"cursor": "x" * 1001}),
        ("/v1/datasets/target/sample", {"rows": "1.5"}),
    ):
        must_be_a_problem(live.admin.get(path, params=parameters))
    body = {"currency": "pure", "epsilon": 1}
    reply = live.admin.put(
        "/v1/datasets/target/budgets/asker", json=body, headers={"If-Match": PLANTED}
    )
    must_be_a_problem(reply)


def test_after_all_this_an_ordinary_question_is_answered(live: World, asker: Person) -> None:
    made(ask(live.client(asker), count("target", 0.1), new_key()))
    live.must_be_sound()
