"""Datasets over HTTP: registration, cards, synthetic rows, and data that return under new names."""

from collections.abc import Callable
from decimal import Decimal

import duckdb
import httpx
import pytest

from tests.server import (
    COLUMNS,
    HEADER,
    REGIONS,
    Json,
    World,
    ask,
    card,
    count,
    made,
    new_key,
    some_rows,
)


def test_the_card_is_shown_as_declared_and_the_source_only_to_administrators(
    live_on_each: World,
) -> None:
    world = live_on_each
    person, viewer = world.person(), world.person(role="viewer")
    path = world.write_csv(some_rows())
    dataset = world.dataset(path, description="Persons", cells={"column": "region"})
    world.grant(dataset, person.name, 1)
    shown = made(world.client(person).get(f"/v1/datasets/{dataset}"))
    names = [column["name"] for column in shown["columns"]]
    assert names == HEADER
    assert (shown["description"], shown["status"], shown["version"]) == ("Persons", "open", 1)
    assert "source" not in shown
    assert "fingerprint" not in shown
    assert "source" not in made(world.client(viewer).get(f"/v1/datasets/{dataset}"))
    full = made(world.admin.get(f"/v1/datasets/{dataset}"))
    assert full["source"] == {"engine": "duckdb", "path": path}
    assert len(full["fingerprint"]) == 64
    assert made(world.admin.get(f"/v1/datasets/{dataset.upper()}"))["name"] == dataset
    items = made(world.admin.get("/v1/datasets", params={"limit": 200}))["items"]
    assert dataset in [item["name"] for item in items]


def test_the_reply_to_a_registration_is_the_dataset_as_shown_later(live: World) -> None:
    body = card(live.write_csv(some_rows()))
    registered = live.admin.post("/v1/datasets", json=body)
    assert registered.status_code == 201
    assert registered.headers["Location"] == f"/v1/datasets/{body['name']}"
    assert made(live.admin.get(registered.headers["Location"])) == registered.json()


def as_parquet(world: World, path: str) -> str:
    return world.write_parquet(path)


def reordered(world: World, path: str) -> str:
    header, *lines = (world.ledger.data / path).read_text().splitlines()
    rows = [line.split(",") for line in reversed(lines)]
    return world.write_csv(rows, header.split(","))


def as_a_folder(world: World, path: str) -> str:
    name = path.removesuffix(".csv")
    (world.ledger.data / name).mkdir()
    for part, condition in (("a", "age < 30"), ("b", "age >= 30")):
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT * FROM read_csv('{world.ledger.data / path}') WHERE {condition}) "
                f"TO '{world.ledger.data / name / part}.parquet' (FORMAT parquet)"
            )
    return name


def under_another_path(world: World, path: str) -> str:
    copy = f"copy-of-{path}"
    (world.ledger.data / copy).write_bytes((world.ledger.data / path).read_bytes())
    return copy


def in_the_same_place(world: World, path: str) -> str:
    return path


def with_other_rows_in_the_same_place(world: World, path: str) -> str:
    return world.write_csv(some_rows(), name=path)


@pytest.mark.parametrize(
    "again",
    [
        as_parquet,
        as_a_folder,
        reordered,
        under_another_path,
        in_the_same_place,
        with_other_rows_in_the_same_place,
    ],
)
def test_the_same_data_under_another_name_have_their_old_loss(
    live_on_each: World, again: Callable[[World, str], str]
) -> None:
    world = live_on_each
    person = world.person()
    path = world.write_csv(some_rows())
    first = world.dataset(path)
    world.grant(first, "*", 1)
    world.grant(first, person.name, 1)
    client = world.client(person)
    made(ask(client, count(first, 0.7), new_key()))

    second = world.dataset(again(world, path))
    assert world.spent(second, person.name) == world.spent(second, "*") == Decimal("0.7")
    assert ask(client, count(second, 0.4), new_key()).status_code == 402
    made(ask(client, count(second, 0.3), new_key()))
    assert world.spent(first, "*") == 1
    refused = ask(client, count(first, 0.1), new_key()).status_code
    assert refused == (503 if again is with_other_rows_in_the_same_place else 402)
    world.must_be_sound()


def test_renamed_columns_are_the_same_data(live: World) -> None:
    person = live.person()
    path = live.write_csv(some_rows())
    first = live.dataset(path)
    live.grant(first, "*", 1)
    live.grant(first, person.name, 1)
    made(ask(live.client(person), count(first, 0.7), new_key()))
    lines = (live.ledger.data / path).read_text().splitlines()
    other = [f"{name}_2" for name in HEADER]
    renamed = live.write_csv([line.split(",") for line in lines[1:]], other)
    columns = [{**column, "name": f"{column['name']}_2"} for column in COLUMNS]
    second = live.dataset(renamed, columns=columns)
    assert live.spent(second, "*") == Decimal("0.7")


def test_the_same_data_with_another_privacy_unit_are_refused(live: World) -> None:
    path = live.write_csv(some_rows())
    live.dataset(path)
    body = card(path, neighbours="replace_one", rows=60)
    assert live.admin.post("/v1/datasets", json=body).status_code == 409


def test_a_closed_dataset_keeps_its_name_and_its_loss(live: World) -> None:
    path = live.write_csv(some_rows())
    dataset = live.dataset(path)
    live.grant(dataset, "*", 1)
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"status": "closed", "reason": "old"}))
    assert made(live.admin.get(f"/v1/datasets/{dataset}"))["status"] == "closed"
    taken = live.admin.post("/v1/datasets", json=card(live.write_csv(some_rows()), name=dataset))
    assert taken.status_code == 409
    changed = live.entries(dataset, "dataset_changed")[-1]["body"]
    assert (changed["before"]["closed"], changed["after"]["closed"]) == (False, True)
    assert changed["reason"] == "old"


def test_names_of_datasets_are_folded_and_invisible_characters_are_refused(live: World) -> None:
    name = live.dataset(name="Caf\u00e9 Survey")
    taken = card(live.write_csv(some_rows()), name="CAFE\u0301 SURVEY")
    assert live.admin.post("/v1/datasets", json=taken).status_code == 409
    assert made(live.admin.get("/v1/datasets/cafe\u0301 survey"))["name"] == name
    for bad in ("a\u200bb", "a/b", "a\u202eb", "x" * 101):
        reply = live.admin.post("/v1/datasets", json=card("none.csv", name=bad))
        assert reply.status_code == 422
        assert reply.json()["errors"][0]["pointer"] == "/name"


@pytest.mark.parametrize(
    "path",
    ["../secret.csv", "/etc/passwd", "none.csv", "people", "*.csv", "people.txt", "data/../x.csv"],
)
def test_a_missing_path_and_a_path_outside_the_root_are_refused_alike(
    live: World, path: str
) -> None:
    (live.ledger.data / "people.txt").write_text("a\n1\n")
    (live.ledger.folder / "secret.csv").write_text("a\n1\n")
    reply = live.admin.post("/v1/datasets", json=card(path))
    nowhere = live.admin.post("/v1/datasets", json=card("nowhere.csv"))
    assert reply.status_code == 422
    assert reply.content == nowhere.content
    assert reply.json()["errors"][0]["pointer"] == "/source/path"


def test_a_link_out_of_the_data_root_is_refused(live: World) -> None:
    outside = live.ledger.folder / "outside.csv"
    outside.write_text("age\n1\n")
    (live.ledger.data / "link.csv").symlink_to(outside)
    assert live.admin.post("/v1/datasets", json=card("link.csv")).status_code == 422


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"columns": []}, "/columns"),
        ({"columns": [*COLUMNS, COLUMNS[0]]}, ""),
        ({"columns": [{"name": "age", "type": "integer", "low": 5, "high": 5}]}, "/columns/0"),
        ({"columns": [{"name": "age", "type": "integer", "low": 0.5, "high": 5}]}, "/columns/0/low"),  # noqa: E501
        ({"columns": [{"name": "age", "type": "matrix"}]}, "/columns/0/type"),
        ({"columns": [{"name": "nowhere", "type": "boolean"}]}, "/columns/0/name"),
        ({"neighbours": "replace_one"}, ""),
        ({"rows": 60}, ""),
        ({"cells": {"column": "nowhere"}}, ""),
        ({"cells": {"column": "age"}}, ""),
        ({"person": {"kind": "column", "column": "nobody", "rows_max": 2}}, "/person/column"),
        ({"person": {"kind": "column", "column": "person", "rows_max": 0}}, "/person/rows_max"),
        ({"person": {"kind": "column", "column": "person"}}, "/person/rows_max"),
        ({"person": {"kind": "column", "column": 7, "rows_max": 2}}, "/person/column"),
        ({"person": {"kind": "column", "rows_max": 2}}, "/person/column"),
        ({"person": {"kind": "column", "column": "age", "rows_max": 2}}, ""),
        ({"person": {"kind": "household"}}, "/person/kind"),
        ({"surprise": 1}, "/surprise"),
    ],
)  # fmt: skip
def test_an_inconsistent_card_is_refused_by_field(live: World, changes: Json, pointer: str) -> None:
    reply = live.admin.post("/v1/datasets", json=card(live.write_csv(some_rows()), **changes))
    assert reply.status_code == 422, reply.text
    assert pointer in [error["pointer"] for error in reply.json()["errors"]]


def test_a_file_of_another_format_is_refused_without_quoting_it(
    live: World,
) -> None:
    dataset = live.dataset()
    for name, content in (
        ("broken.parquet", b"PAR1 secret-cell PAR1"),
        ("broken.csv", b'age,income,region,smoker,seen\n1,"secret-cell\n'),
        ("empty.csv", b""),
        ("binary.csv", b"\xff\xfe secret-cell \x00\n"),
        ("short.csv", b"age,income,region,smoker,seen\n1,2,secret-cell\n"),
        ("long.csv", b"age,income,region,smoker,seen\n1,2,3,4,5,secret-cell\n"),
        ("latin.csv", b"age,income,region,smoker,seen\n1,2,secret-cell\xe9,4,5\n"),
    ):
        (live.ledger.data / name).write_bytes(content)
        body = card(name)
        refusals = [must_be_refused(live.admin.post("/v1/datasets", json=body), "/source/path")]
        assert live.admin.get(f"/v1/datasets/{body['name']}").status_code == 404
        append = {"append": {"path": name}}
        refusals.append(
            must_be_refused(
                live.admin.patch(f"/v1/datasets/{dataset}", json=append), "/append/path"
            )
        )
        assert "secret-cell" not in "".join(refusals)
    assert "secret-cell" not in live.server.output()
    assert made(live.admin.get(f"/v1/datasets/{dataset}"))["version"] == 1


def must_be_refused(reply: httpx.Response, pointer: str) -> str:
    assert reply.status_code == 422, reply.text
    assert [error["pointer"] for error in reply.json()["errors"]] == [pointer]
    return reply.text


def test_values_outside_the_card_are_clamped_and_never_reported(live: World) -> None:
    person = live.person()
    rows: list[list[object]] = [[999, -5, "atlantis", "perhaps", "1999-99-99"] for _ in range(20)]
    dataset = live.dataset(live.write_csv(rows + some_rows(1)))
    live.grant(dataset, "*", 100)
    live.grant(dataset, person.name, 100)
    query = {"kind": "histogram", "column": "region"}
    reply = ask(
        live.client(person),
        {"dataset": dataset, "query": query, "privacy": {"epsilon": 5}},
        new_key(),
    )
    assert [group["group"] for group in reply.json()["value"]] == [
        {"region": region} for region in REGIONS
    ]
    assert "atlantis" not in reply.text + live.server.output()


def test_synthetic_rows_fit_the_card_and_are_not_the_data(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    rows = [[77, 123456.75, "north", "true", "2024-07-07"] for _ in range(60)]
    rows[0][1] = 123456.5
    dataset = world.dataset(world.write_csv([*rows, *some_rows(1)]))
    world.grant(dataset, person.name, 1)
    sample = made(world.client(person).get(f"/v1/datasets/{dataset}/sample", params={"rows": 1000}))
    assert sample["made_up"] is True
    assert len(sample["rows"]) == 1000
    for row in sample["rows"]:
        assert set(row) == set(HEADER)
        assert 0 <= row["age"] <= 120
        assert 0 <= row["income"] <= 200000
        assert row["region"] in REGIONS
        assert row["smoker"] in (True, False)
        assert "2020-01-01" <= row["seen"] <= "2025-12-31"
    assert sum(row["income"] in (123456.5, 123456.75) for row in sample["rows"]) == 0
    assert len({row["age"] for row in sample["rows"]}) > 20
    assert world.entries(dataset, "charge") == []
    for bad in (0, -1, 1001, "many"):
        reply = world.client(person).get(f"/v1/datasets/{dataset}/sample", params={"rows": bad})
        assert reply.status_code == 422


def test_price_and_noise_depend_on_the_card_alone(live: World) -> None:
    """Two datasets with one card and different rows have the same price and noise."""
    person = live.person()
    previews = []
    for _ in range(2):
        dataset = live.open_dataset(person)
        question = {
            "dataset": dataset,
            "query": {"kind": "sum", "column": "income"},
            "privacy": {"epsilon": 0.1},
        }
        preview = made(live.client(person).post("/v1/queries/preview", json=question))
        previews.append({key: value for key, value in preview.items() if key != "dataset"})
    assert previews[0] == previews[1]


def test_a_file_of_a_registered_folder_has_the_loss_of_the_folder(live: World) -> None:
    person = live.person()
    whole = as_a_folder(live, live.write_csv(some_rows()))
    dataset = live.dataset(whole)
    live.grant(dataset, "*", 100)
    live.grant(dataset, person.name, 10)
    made(ask(live.client(person), count(dataset, 1)))
    part = live.dataset(f"{whole}/a.parquet")
    assert live.spent(part, person.name) == 1
