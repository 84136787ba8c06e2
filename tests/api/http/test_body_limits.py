"""Limits on bodies: what is counted before the parser runs, and who may send a large one."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from app.api.http.body_limits import (
    DEPTH_MAX,
    KEYS_MAX,
    LISTS_MAX,
    LargeBodies,
    check_shape,
)
from app.api.http.json_body import StrictAdapter, strict_json
from app.api.previews.models import PREVIEWED
from app.data.expressions import LOOKUP_MAX
from app.errors import Malformed, TooLarge, TooManyRunning
from app.planning.request import Question
from app.queries.candidates import CANDIDATES_MAX
from app.queries.workloads.workload import PREDICATES_MAX
from app.queries.workloads.workload import VALUES_MAX as COMPARED_MAX

BODY_BYTES = 4 << 20
PRIVACY = {"epsilon": 0.01}


def question(query: dict[str, Any]) -> dict[str, Any]:
    return {"dataset": "census", "query": query, "privacy": PRIVACY}


def comparison(number: int) -> dict[str, Any]:
    return {"column": "household_size", "op": ">=", "value": number}


def workload(predicates: int, parts: int) -> dict[str, Any]:
    listed = [
        {"name": f"p{i}", "where": {"any": [comparison(i + k) for k in range(parts)]}}
        for i in range(predicates)
    ]
    return question({"kind": "workload", "predicates": listed})


def filling(item: str) -> bytes:
    """A list of as many items as fit in a body."""
    return f"[{','.join([item] * ((BODY_BYTES - 300) // (len(item) + 1)))}]".encode()


# Largest bodies that must stay valid


LARGEST = {
    "candidates": question(
        {"kind": "median", "column": "income", "candidates": list(range(CANDIDATES_MAX))}
    ),
    "edges": question(
        {"kind": "histogram", "column": "income", "edges": list(range(CANDIDATES_MAX + 1))}
    ),
    "a workload": workload(PREDICATES_MAX, COMPARED_MAX // PREDICATES_MAX),
    "SQL": {"sql": "SELECT COUNT(*) FROM t WHERE " + "a > 1 AND " * 900 + "a > 2", **PRIVACY},
    "previews": [workload(100, 6)] * 100,
    "a lookup": {"lookup": {"column": "region", "map": {f"k{i}": i for i in range(LOOKUP_MAX)}}},
}


@pytest.mark.parametrize("what", LARGEST)
def test_the_largest_valid_bodies_stay_within_the_limits(what: str) -> None:
    assert strict_json(json.dumps(LARGEST[what]).encode()) == LARGEST[what]


def test_a_body_may_have_as_many_levels_as_a_filter_needs() -> None:
    where: Any = comparison(1)
    for _ in range(19):
        where = {"all": [where]}
    check_shape(json.dumps({"questions": [workload(1, 1) | {"where": [where] * 50}]}).encode())


# Refused before the parser runs


@pytest.fixture
def parser_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    loads = json.loads

    def counted(text: str, **hooks: Any) -> Any:
        calls.append(text)
        return loads(text, **hooks)

    monkeypatch.setattr(json, "loads", counted)
    return calls


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (filling("[[[[[[[]]]]]]]"), TooLarge),
        (filling("[" * 200 + "]" * 200), TooLarge),
        (filling('{"":' * 150 + "0" + "}" * 150), TooLarge),
        (filling("0"), TooLarge),
        (b"[" * LISTS_MAX, Malformed),
        (b'{"":' * (DEPTH_MAX + 1) + b"0" + b"}" * (DEPTH_MAX + 1), Malformed),
        (b'["]]]\\"]' + b"]" * 200 + b'",' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"]", Malformed),
        (b'["\\\\",' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"]", Malformed),
    ],
    ids=["lists", "deep lists", "objects", "values", "unclosed", "deep", "text", "backslash"],
)
def test_bodies_that_would_keep_the_parser_busy_never_reach_it(
    raw: bytes, error: type[Exception], parser_calls: list[str]
) -> None:
    with pytest.raises(error):
        strict_json(raw)
    assert parser_calls == []


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * DEPTH_MAX + b"]" * DEPTH_MAX,
        json.dumps(["[" * 1000, '"' + "{" * 1000, "\\" * 7 + '"' + "[" * 1000]).encode(),
        json.dumps([[], {}] * 1000).encode(),
    ],
    ids=["at the limit", "brackets in texts", "wide"],
)
def test_only_levels_outside_texts_count(raw: bytes) -> None:
    assert strict_json(raw) == json.loads(raw)


# Keys


def keys(count: int) -> dict[str, int]:
    return dict.fromkeys(map(str, range(count)), 0)


@pytest.mark.parametrize(
    "sent",
    [
        keys(KEYS_MAX + 1),
        keys(100_000),
        [question({"kind": "count", "where": keys(KEYS_MAX + 1)})],
        {"point": keys(KEYS_MAX + 1)},
        {"map": {"a": keys(KEYS_MAX + 1)}},
    ],
)
def test_only_the_map_of_a_lookup_may_have_many_keys(sent: Any) -> None:
    with pytest.raises(TooLarge, match="1000 keys"):
        strict_json(json.dumps(sent).encode())


@pytest.mark.parametrize("model", [Question, PREVIEWED])
@pytest.mark.parametrize(
    "sent",
    [
        keys(KEYS_MAX),
        [keys(KEYS_MAX)] * 100,
        question(keys(KEYS_MAX)),
        question({"kind": "prediction_variance", "point": {key: [] for key in keys(KEYS_MAX)}}),
        question({"kind": "workload", "predicates": [keys(KEYS_MAX)] * 100}),
    ],
)
def test_a_body_within_the_limits_has_a_bounded_number_of_errors(model: Any, sent: Any) -> None:
    data = strict_json(json.dumps(sent).encode())
    with pytest.raises(ValidationError) as caught:
        StrictAdapter(model).validate_python(data)
    assert caught.value.error_count() <= 10 * KEYS_MAX


# Places for large bodies


def test_an_analyst_has_a_limited_number_of_large_bodies_in_memory() -> None:
    bodies = LargeBodies(each=2, most=3)
    bodies.take("ada")
    bodies.take("ada")
    with pytest.raises(TooManyRunning, match="2 of your large bodies"):
        bodies.take("ada")
    bodies.take("bob")
    with pytest.raises(TooManyRunning, match="reading 3 large bodies"):
        bodies.take("eve")
    bodies.give_back("ada")
    bodies.take("eve")
