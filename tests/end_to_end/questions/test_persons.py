"""Persons with several rows over HTTP: counted once, with bounded totals, in one cell each."""

import secrets
from typing import Any

import pytest

from tests.server import Json, Person, World, ask, card, exact, made, new_key

COLUMNS: list[Json] = [
    {"name": "cost", "type": "integer", "low": 0, "high": 1000},
    {"name": "ward", "type": "category", "values": ["a", "b", "c"]},
    {"name": "age", "type": "integer", "low": 0, "high": 120},
]
WHO: Json = {"kind": "column", "column": "person_id", "rows_max": 4}
HEADER = ["person_id", "cost", "ward", "age"]
SURE = {"epsilon": 60}  # noise of scale 1/60 is nonzero once in 10^25 draws


def visits(world: World) -> str:
    """Ten persons: person i has i % 4 + 1 visits that cost 1 each, in wards from a on."""
    mark = secrets.token_hex(4)
    rows = [
        (f"p{who}-{mark}", 1, "abc"[n % 3], 20 + who)
        for who in range(10)
        for n in range(who % 4 + 1)
    ]
    return world.write_csv([*rows, ("", 1, "a", 30)], HEADER)


def clinic(world: World, **more: Any) -> tuple[str, Person]:
    person = world.person()
    dataset = world.dataset(visits(world), person=WHO, columns=COLUMNS, **more)
    for holder in ("*", person.name):
        world.grant(dataset, holder, 1000)
    return dataset, person


def answer_to(world: World, dataset: str, person: Person, query: Json, **more: Any) -> Json:
    question = {"dataset": dataset, "query": query, "privacy": SURE, **more}
    return made(ask(world.client(person), question, new_key()))


def test_persons_are_counted_once_and_their_totals_bounded(live_on_each: World) -> None:
    world = live_on_each
    dataset, person = clinic(world)
    assert answer_to(world, dataset, person, {"kind": "count"})["value"] == 23
    answer = answer_to(world, dataset, person, {"kind": "count_distinct"})
    assert answer["value"] == 10
    assert answer["interval"] == {"low": 10, "high": 10, "confidence": 0.95, "covers": "noise"}
    assert answer["mechanism"]["noise"][0]["sensitivity"] == 1
    old = {"column": "age", "op": ">=", "value": 25}
    assert answer_to(world, dataset, person, {"kind": "count_distinct", "where": old})["value"] == 5
    grouped = answer_to(world, dataset, person, {"kind": "count_distinct", "group_by": ["ward"]})
    assert [group["value"] for group in grouped["value"]] == [10, 7, 4]
    assert grouped["mechanism"]["noise"][0]["sensitivity"] == 3
    one = {"kind": "count_distinct", "group_by": ["ward"], "groups_max": 1}
    kept = answer_to(world, dataset, person, one)
    assert sum(group["value"] for group in kept["value"]) == 10
    assert kept["mechanism"]["noise"][0]["sensitivity"] == 1
    bounds = {"low": 0, "high": 2}
    total = {"kind": "sum", "column": "cost", "per_person": bounds}
    summed = answer_to(world, dataset, person, total)
    assert summed["value"] == 3 * 1 + 3 * 2 + 4 * 2
    assert summed["mechanism"]["noise"][0]["sensitivity"] == 2
    mean = answer_to(world, dataset, person, {**total, "kind": "mean"})
    assert mean["value"] == 1.7
    apart = answer_to(world, dataset, person, {**total, "group_by": ["ward"], "groups_max": 1})
    assert sum(group["value"] for group in apart["value"]) <= 20
    assert apart["mechanism"]["noise"][0]["sensitivity"] == 2
    world.must_be_sound()


def test_sql_counts_persons_by_the_name_of_their_column(live: World) -> None:
    dataset, person = clinic(live)
    client = live.client(person)
    for sql, expected in (
        (f'SELECT COUNT(DISTINCT person_id) FROM "{dataset}" WHERE age < 25', 5),
        (f'SELECT COUNT(DISTINCT "person_id") AS n FROM "{dataset}"', 10),
    ):
        answer = made(ask(client, {"sql": sql, "privacy": SURE}, new_key()))
        assert answer["value"] == expected
    refused = ask(
        client, {"sql": f'SELECT COUNT(DISTINCT age) FROM "{dataset}"', "privacy": SURE}, new_key()
    )
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["pointer"] == "/sql"
    assert "line 1, column 8" in error["rule"]
    assert "person column" in error["rule"]


def test_a_preview_shows_both_noises_and_a_half_width_is_kept(live: World) -> None:
    dataset, person = clinic(live)
    client = live.client(person)
    query = {"kind": "count_distinct", "group_by": ["ward"], "groups_max": 2}
    body = {"dataset": dataset, "query": query, "privacy": {"epsilon": 1}}
    preview = made(client.post("/v1/queries/preview", json=body))
    kinds = {each["mechanism"]["kind"] for each in preview["alternatives"]}
    assert "laplace" in kinds | {preview["mechanism"]["kind"]}
    assert preview["mechanism"]["noise"][0]["scale"] == 2
    promised = {"half_width": 3, "confidence": 0.9}
    total = {"kind": "sum", "column": "cost", "per_person": {"low": 0, "high": 5}}
    answer = made(ask(client, {"dataset": dataset, "query": total, "privacy": promised}, new_key()))
    assert answer["interval"]["high"] - answer["interval"]["low"] <= 6


BAD: dict[str, tuple[Json, str]] = {
    "no groups": ({"kind": "count_distinct", "groups_max": 1}, "/query/groups_max"),
    "zero groups": (
        {"kind": "count_distinct", "group_by": ["ward"], "groups_max": 0},
        "/query/groups_max",
    ),
    "half a group": (
        {"kind": "count_distinct", "group_by": ["ward"], "groups_max": 1.5},
        "/query/groups_max",
    ),
    "true groups": (
        {"kind": "count_distinct", "group_by": ["ward"], "groups_max": True},
        "/query/groups_max",
    ),
    "many groups": (
        {"kind": "count_distinct", "group_by": ["ward"], "groups_max": 2**63},
        "/query/groups_max",
    ),
    "groups of rows": (
        {"kind": "sum", "column": "cost", "group_by": ["ward"], "groups_max": 1},
        "/query/groups_max",
    ),
    "another column": ({"kind": "count_distinct", "column": "secret-7391"}, "/query/column"),
    "a bound": (
        {"kind": "sum", "column": "cost", "per_person": {"low": 0}},
        "/query/per_person/high",
    ),
    "a text": (
        {"kind": "sum", "column": "cost", "per_person": {"low": 0, "high": "secret-7391"}},
        "/query/per_person/high",
    ),
    "true": (
        {"kind": "mean", "column": "cost", "per_person": {"low": True, "high": 3}},
        "/query/per_person/low",
    ),
    "huge": (
        {"kind": "mean", "column": "cost", "per_person": {"low": 0, "high": 2**63}},
        "/query/per_person/high",
    ),
    "large as a float": (
        {"kind": "mean", "column": "cost", "per_person": {"low": 0, "high": 1e308}},
        "/query/per_person/high",
    ),
    "null": (
        {"kind": "mean", "column": "cost", "per_person": {"low": 0, "high": None}},
        "/query/per_person/high",
    ),
    "half a step": (
        {"kind": "mean", "column": "cost", "per_person": {"low": 0.5, "high": 3}},
        "/query/per_person/low",
    ),
    "turned": (
        {"kind": "mean", "column": "cost", "per_person": {"low": 3, "high": 2}},
        "/query/per_person/high",
    ),
    "more": (
        {"kind": "sum", "column": "cost", "per_person": {"low": 0, "high": 2, "secret": 1}},
        "/query/per_person/secret",
    ),
    "a count": ({"kind": "count", "per_person": {"low": 0, "high": 2}}, "/query/per_person"),
    "private keys": (
        {"kind": "count_distinct", "group_by": [{"column": "ward", "keys": "private"}]},
        "/query/group_by/0/keys",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_input_is_refused_by_its_field_and_nothing_is_charged(
    live: World, case: str
) -> None:
    query, pointer = BAD[case]
    dataset, person = clinic(live)
    reply = ask(
        live.client(person), {"dataset": dataset, "query": query, "privacy": SURE}, new_key()
    )
    assert reply.status_code == 422
    assert [error["pointer"] for error in reply.json()["errors"]] == [pointer]
    assert "7391" not in reply.text
    assert exact(live.budget(dataset, person.name)["spent"]) == 0


# Cells


def test_a_declaration_of_one_cell_per_person_is_recorded_and_enforced(live_on_each: World) -> None:
    world = live_on_each
    dataset, person = clinic(world, cells={"column": "ward", "one_per_person": True})
    shown = made(world.client(person).get(f"/v1/datasets/{dataset}"))
    assert shown["cells"] == {"column": "ward", "edges": None, "one_per_person": True}
    (entry,) = [each for each in world.entries(dataset) if "one_per_person" in str(each)]
    assert "'one_per_person': True" in str(entry)
    for ward, persons in (("a", 10), ("b", 0), ("c", 0)):
        where = {"column": "ward", "op": "==", "value": ward}
        answer = answer_to(world, dataset, person, {"kind": "count_distinct", "where": where})
        assert answer["charged"]["cells"] == [ward]
        assert answer["value"] == persons, (
            "everyone has a row in ward a, so rows elsewhere are dropped"
        )
    assert exact(world.budget(dataset, person.name)["spent"]) == 60


def test_persons_have_no_cells_without_the_declaration(live: World) -> None:
    path = visits(live)
    for cells, who, pointer in (
        ({"column": "ward"}, WHO, "/cells"),
        ({"column": "ward", "one_per_person": False}, WHO, "/cells"),
        ({"column": "ward", "one_per_person": True}, {"kind": "row"}, ""),
        ({"column": "ward", "one_per_person": "yes"}, WHO, "/cells/one_per_person"),
    ):
        body = card(path, person=who, columns=COLUMNS, cells=cells)
        reply = live.admin.post("/v1/datasets", json=body)
        assert reply.status_code == 422
        assert reply.json()["errors"][0]["pointer"] == pointer


def test_epochs_are_cells_of_persons_only_with_the_declaration(live: World) -> None:
    path = visits(live)
    columns = [*COLUMNS, {"name": "month", "type": "epoch", "high": 12}]
    body = card(path, person=WHO, columns=columns, cells={"column": "month"})
    reply = live.admin.post("/v1/datasets", json=body)
    assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, "/cells")
    body["cells"] = {"column": "month", "one_per_person": True}
    made(live.admin.post("/v1/datasets", json=body))
