"""Malformed bodies, paths, headers and administrative requests: each is a 4xx that quotes no value
and changes no ledger.
"""

from collections.abc import Iterator

import pytest

from tests.end_to_end.http.bad_requests import HUGE_INTEGER, PLANTED, must_be_a_problem, send, shown
from tests.server import Json, Person, World, ask, card, count, made, new_key

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
