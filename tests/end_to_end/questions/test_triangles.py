"""Triangles over HTTP: edges registered, counted, charged; refused by name; audited."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.audit import runs
from tests.conftest import Counts, Template
from tests.crowd import answers
from tests.end_to_end.audits.audit_bounds import log_ratio, loss_at_least
from tests.server import Json, Person, World, ask, exact, made, new_key

QUERY: Json = {"kind": "triangles"}
EDGE: Json = {"kind": "edge", "ends": ["a", "b"]}
BOTH: Json = {"epsilon": "1", "delta": "1e-6"}
Pairs = Sequence[tuple[object, object]]


def ends(nodes: int) -> list[Json]:
    return [{"name": name, "type": "integer", "low": 0, "high": nodes - 1} for name in "ab"]


def graph(world: World, person: Person, pairs: Pairs, nodes: int, **budget: Any) -> str:
    path = world.write_csv(pairs, ["a", "b"])
    dataset = world.dataset(path, person=EDGE, columns=ends(nodes))
    body = budget or {"currency": "approximate", "epsilon": 10_000, "delta": "0.1"}
    for holder in ("*", person.name):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=body))
    return dataset


def triangle_question(dataset: str, privacy: Json | None = None, **more: Any) -> Json:
    return {"dataset": dataset, "query": QUERY, "privacy": privacy or BOTH, **more}


def test_triangles_cost_their_preview_and_report_their_bound(live_on_each: World) -> None:
    """A complete graph of 40 nodes among 1000, written twice, with loops.

    It has 9880 triangles, and each edge is part of 38.
    """
    world = live_on_each
    person = world.person()
    pairs = [*combinations(range(40), 2)]
    sent: Pairs = [*pairs, *((b, a) for a, b in pairs), (7, 7), (5, 5000), ("", 3)]
    dataset = graph(world, person, sent, 1000)
    client = world.client(person)
    question = triangle_question(dataset)
    preview = made(client.post("/v1/queries/preview", json=question))
    assert preview["mechanism"]["kind"] == "noisy_bound"
    assert preview["expected_error"]["half_width"] is None
    kinds = {each["kind"] for each in preview["alternatives"]}
    assert {"noisy_bound", "smooth_sensitivity"} <= kinds

    key = new_key()
    answer = made(ask(client, question, key))
    assert exact(answer["charged"]) == exact(preview["price"]) == 1
    assert 0 < exact(answer["charged"], "delta") <= Decimal("1e-6")
    # LS is 38 and T is 26. Noise of scale 2 exceeds 26 with probability below 1e-5.
    assert 38 <= answer["bound"] <= 38 + 2 * 26
    width = answer["interval"]["high"] - answer["interval"]["low"]
    assert answer["interval"]["low"] <= answer["value"] <= answer["interval"]["high"]
    assert 11 * answer["bound"] < width < 13 * answer["bound"]  # 2 ln(20) / 0.5 times the bound
    assert abs(answer["value"] - 9880) < 2 * 90 * 20
    assert ask(client, question, key).json() == answer

    smooth = triangle_question(dataset, {"epsilon": 50}, mechanism={"kind": "smooth_sensitivity"})
    shown = made(ask(client, smooth, new_key()))
    assert shown["interval"] is None
    assert "bound" not in shown
    assert abs(shown["value"] - 9880) < 2000
    count = {"dataset": dataset, "query": {"kind": "count"}, "privacy": {"epsilon": 100}}
    assert abs(made(ask(client, count, new_key()))["value"] - 780) <= 2  # each edge counts once
    world.must_be_sound()


def test_a_graph_without_an_edge_gets_a_normal_answer(live: World) -> None:
    person = live.person()
    dataset = graph(live, person, [], 50)
    for more in ({}, {"mechanism": {"kind": "smooth_sensitivity"}}):
        answer = made(ask(live.client(person), triangle_question(dataset, **more), new_key()))
        assert answer["value"] >= 0
        assert exact(answer["charged"]) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"person": {"kind": "edge", "ends": ["a", "c"]}}, "integer columns"),
        ({"person": {"kind": "edge", "ends": ["a", "a"]}}, "two columns"),
        ({"person": {"kind": "edge", "ends": ["a"]}}, ""),
        ({"person": {"kind": "edge"}}, ""),
        ({"columns": [*ends(5)[:1], *ends(6)[1:]]}, "equal bounds"),
        ({"neighbours": "replace_one", "rows": 3}, "add_remove"),
        ({"cells": {"column": "a", "edges": [0, 2, 4]}}, "cells"),
    ],
)
def test_an_incomplete_card_of_edges_names_its_missing_fields(
    live: World, changes: Json, words: str
) -> None:
    path = live.write_csv([(0, 1)], ["a", "b"])
    body = {
        "name": new_key()[:20],
        "source": {"engine": "duckdb", "path": path},
        "person": EDGE,
        "neighbours": "add_remove",
        "columns": ends(5),
        **changes,
    }
    reply = live.admin.post("/v1/datasets", json=body)
    assert reply.status_code == 422
    assert words in reply.text


def test_triangle_questions_about_other_tables_are_refused_by_name(live: World) -> None:
    person = live.person()
    client = live.client(person)
    people = live.open_dataset(person)
    small = graph(live, person, [(0, 1)], 2)
    dataset = graph(live, person, [(0, 1)], 9)
    before = live.spent(dataset, person.name)
    for question, at in (
        (triangle_question(people), "/query/kind"),
        (triangle_question(small), "/query/kind"),
        (
            triangle_question(dataset, {"epsilon": 1}, mechanism={"kind": "noisy_bound"}),
            "/privacy/delta",
        ),
        (
            triangle_question(dataset, mechanism={"kind": "noisy_bound", "bound_share": 1}),
            "/mechanism",
        ),
        (triangle_question(dataset, mechanism={"kind": "gaussian"}), "/mechanism/kind"),
        (triangle_question(dataset, {"half_width": 3}), "/privacy"),
        (triangle_question(dataset, query={**QUERY, "column": "a"}), "/query"),
        (
            {
                **triangle_question(people),
                "query": {"kind": "count"},
                "mechanism": {"kind": "noisy_bound"},
            },
            "",
        ),
    ):
        reply = ask(client, question, new_key())
        assert reply.status_code == 422, reply.text
        assert any(each["pointer"].startswith(at) for each in reply.json()["errors"]), reply.text
    assert live.spent(dataset, person.name) == before


# Audits: two nodes share two hundred neighbours and are joined in only one of the graphs.

SHARED = [(end, node) for node in range(2, 202) for end in (0, 1)]
JOINED = [*SHARED, (0, 1)]
RUNS = runs(400)
BLIND = """
import app.mechanisms.{module} as mechanism
read = mechanism.{release}.read
mechanism.{release}.read = lambda self, data: read(self, data)._replace(common=0)
"""
AUDITED: dict[str, tuple[Json, Json, str]] = {
    "noisy_bound": (
        {"epsilon": "2", "delta": "1e-6"},
        {"kind": "noisy_bound", "bound_share": "0.5"},
        BLIND.format(module="propose_test_release.noisy_bound", release="BoundedRelease"),
    ),
    "smooth_sensitivity": (
        {"epsilon": "2"},
        {"kind": "smooth_sensitivity", "noise": "student_t"},
        BLIND.format(module="smooth_sensitivity.triangles", release="SmoothTriangles"),
    ),
}


def loss_seen(world: World, name: str) -> float:
    person = world.person()
    privacy, mechanism, _ = AUDITED[name]
    values = []
    for pairs in (SHARED, JOINED):
        budget = {"currency": "approximate", "epsilon": 1_000_000, "delta": "0.5"}
        dataset = graph(world, person, pairs, 400, **budget)
        question = triangle_question(dataset, privacy, mechanism=mechanism)
        released = answers(world.server, person.key, question, RUNS)
        values.append([float(answer["value"]) for answer in released])
    return loss_at_least(values[0], values[1], log_ratio)


@pytest.mark.statistical
@pytest.mark.invariant("I24")
@pytest.mark.parametrize("name", AUDITED)
def test_answers_about_neighbours_prove_no_more_loss_than_was_charged(
    live: World, name: str, counts: Counts
) -> None:
    """The false-alarm rate is that of `audit_bounds.py`."""
    bound = loss_seen(live, name)
    print(f"triangles-{name}: at least {bound:.2f}, charged 2")
    assert bound <= 2.0
    counts("answers audited over HTTP", 2 * RUNS)


@pytest.mark.statistical
@pytest.mark.invariant("I24")
@pytest.mark.saboteur
@pytest.mark.parametrize("name", AUDITED)
def test_a_server_that_ignores_common_neighbours_is_caught(
    peopled: Template, tmp_path: Path, name: str
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    world.serve(sabotage=AUDITED[name][2])
    try:
        assert loss_seen(world, name) > 2.0
    finally:
        world.ledger.stop()
