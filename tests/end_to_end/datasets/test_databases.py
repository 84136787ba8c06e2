"""Data behind named connections, over HTTP: queried in place and charged like other data."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Template
from tests.engines.remote.tables import Row
from tests.engines.remote.warehouses import PostgresWarehouse, SailServer, SparkWarehouse, wait_for
from tests.postgres import PostgresServer
from tests.server import Json, World, ask, made

TYPES = {"age": "INTEGER", "income": "DOUBLE", "region": "VARCHAR", "note": "VARCHAR"}
SECRET = "planted-in-a-cell"
ROWS: list[Row] = [
    {
        "age": age,
        "income": 1000.0 * age,
        "region": ["north", "south"][age % 2],
        "note": SECRET if age == 30 else "flu",
    }
    for age in range(20, 60)
]
COLUMNS: list[Json] = [
    {"name": "age", "type": "integer", "low": 0, "high": 120},
    {"name": "income", "type": "number", "low": 0, "high": 200000},
    {"name": "region", "type": "category", "values": ["north", "south"]},
    {
        "name": "decade",
        "type": "integer",
        "low": 0,
        "high": 12,
        "derived": {"divide": [{"column": "age"}, {"value": 10}]},
    },
]


class Databases:
    def __init__(self, world: World, clinic: PostgresWarehouse, lake: SparkWarehouse) -> None:
        self.world, self.clinic, self.lake = world, clinic, lake

    def register(self, name: str, source: Any, **changes: Any) -> Any:
        body = {
            "name": name,
            "source": source,
            "person": {"kind": "row"},
            "neighbours": "add_remove",
            "columns": COLUMNS,
        } | changes
        return self.world.admin.post("/v1/datasets", json=body)

    def granted(self, name: str, source: Any, **changes: Any) -> str:
        made(self.register(name, source, **changes))
        self.world.grant(name, "*", 100_000)
        self.world.grant(name, "ada", 100_000)
        return name

    def ask(self, dataset: str, query: Json, epsilon: float = 1000) -> Any:
        body = {"dataset": dataset, "query": query, "privacy": {"epsilon": epsilon}}
        return ask(self.world.client("ada"), body | {"fresh": True})

    def spent(self, dataset: str) -> float:
        found = self.world.admin.get(f"/v1/datasets/{dataset}/budgets/*").json()
        return float(found["spent"]["epsilon"])

    def table(self, rows: list[Row] = ROWS) -> Json:
        source = self.clinic.put(rows, TYPES)
        return {"engine": "postgresql", "connection": "clinic", "table": source.path}

    def folder(self, rows: list[Row] = ROWS) -> Json:
        source = self.lake.put(rows, TYPES)
        return {"engine": "spark", "connection": "lake", "path": source.path}


@pytest.fixture(scope="module")
def databases(
    peopled: Template, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Databases]:
    folder = tmp_path_factory.mktemp("databases")
    clinic, sail = PostgresWarehouse(postgres), SailServer()
    lake = SparkWarehouse(sail.url, folder / "lake")
    world = peopled("sqlite", folder / "ledger")
    connections = folder / "connections.json"
    connections.write_text(
        json.dumps(
            {
                "clinic": {"engine": "postgresql", "url": clinic.reader_url},
                "owner": {"engine": "postgresql", "url": clinic.owner_url},
                "nowhere": {"engine": "postgresql", "url": "postgresql://x:hush@127.0.0.1:1/y"},
                "lake": {"engine": "spark", "url": sail.url, "roots": [str(folder / "lake")]},
            }
        )
    )
    world.serve(BURSAR_CONNECTIONS=str(connections), BURSAR_ENGINE_TIMEOUT_SECONDS="60")
    yield Databases(world, clinic, lake)
    world.ledger.stop()
    sail.stop()


@pytest.mark.parametrize("engine", ["postgresql", "spark"])
def test_a_table_is_queried_in_place(databases: Databases, engine: str) -> None:
    # identical rows would share their loss
    rows: list[Row] = [row | {"note": engine} for row in ROWS]
    source = databases.table(rows) if engine == "postgresql" else databases.folder(rows)
    dataset = databases.granted(f"asked-{engine}", source)
    counted = made(databases.ask(dataset, {"kind": "count"}))
    assert counted["value"] == 40
    assert counted["charged"]["epsilon"] == 1000
    assert databases.spent(dataset) == 1000
    by_region = made(databases.ask(dataset, {"kind": "histogram", "column": "region"}))
    assert [each["value"] for each in by_region["value"]] == [20, 20]
    adults: Json = {"column": "decade", "op": ">=", "value": 3}
    mean = made(databases.ask(dataset, {"kind": "mean", "column": "income", "where": adults}))
    assert mean["value"] == pytest.approx(44500, rel=0.01)
    middle: Json = {"kind": "median", "column": "age"}
    smooth = {"mechanism": {"kind": "smooth_sensitivity"}}
    body = {"dataset": dataset, "query": middle, "privacy": {"epsilon": 100}}
    for more in ({}, smooth):
        assert 38 <= made(ask(databases.world.client("ada"), body | more))["value"] <= 41
    shown = databases.world.admin.get(f"/v1/datasets/{dataset}").json()
    assert shown["source"] == source


def test_the_same_rows_in_another_database_have_their_old_loss(databases: Databases) -> None:
    world = databases.world
    rows: list[Row] = [row | {"income": row["income"] + 0.25} for row in ROWS]
    first = databases.granted("rows-in-a-table", databases.table(rows))
    made(databases.ask(first, {"kind": "count"}))
    made(databases.register("rows-in-a-lake", databases.folder(rows)))
    assert databases.spent("rows-in-a-lake") == 1000
    path = world.ledger.data / "rows.csv"
    lines = ["age,income,region,note", *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    made(databases.register("rows-in-a-file", {"path": "rows.csv"}))
    assert databases.spent("rows-in-a-file") == 1000


@pytest.mark.parametrize(
    ("source", "pointer"),
    [
        ({"engine": "postgresql", "table": "public.t"}, "/source/connection"),
        ({"engine": "postgresql", "connection": "clinic", "path": "t"}, "/source/path"),
        ({"engine": "postgresql", "connection": "clinic"}, "/source/table"),
        ({"engine": "postgresql", "connection": "other", "table": "t"}, "/source/connection"),
        ({"engine": "postgresql", "connection": "lake", "table": "t"}, "/source/connection"),
        ({"engine": "postgresql", "connection": "clinic", "table": "nothing"}, "/source/table"),
        ({"engine": "postgresql", "connection": "clinic", "table": "a.b.c"}, "/source/table"),
        (
            {"engine": "postgresql", "connection": "clinic", "table": "pg_catalog.pg_class"},
            "/columns/0/name",
        ),
        ({"engine": "spark", "connection": "lake", "path": "/etc"}, "/source/path"),
        ({"engine": "spark", "connection": "lake", "table": "nothing"}, "/source/table"),
        ({"engine": "spark", "connection": "lake", "path": "a`b"}, "/source/table"),
        ({"path": "people.csv", "connection": "clinic"}, "/source/connection"),
        ({"path": "people.csv", "table": "t"}, "/source/table"),
        ({"engine": "trino", "table": "t"}, "/source/engine"),
    ],
)
def test_an_invalid_source_is_refused_by_its_field(
    databases: Databases, source: Json, pointer: str
) -> None:
    refused = databases.register("never", source)
    assert refused.status_code == 422, refused.text
    assert pointer in [each["pointer"] for each in refused.json()["errors"]]


def test_a_role_that_could_change_the_table_is_refused(databases: Databases) -> None:
    source = databases.table() | {"connection": "owner"}
    refused = databases.register("never", source)
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["pointer"] == "/source/table"
    assert "can also change it or owns it" in error["rule"]


def test_a_view_a_missing_table_and_an_unreadable_table_get_different_errors(
    databases: Databases,
) -> None:
    name = databases.table()["table"]
    with databases.clinic.owner() as owner:
        owner.execute(f"CREATE VIEW {name}_seen AS SELECT * FROM {name}")
        owner.execute(f"GRANT SELECT ON {name}_seen TO PUBLIC")
        owner.execute(f"CREATE MATERIALIZED VIEW {name}_kept AS SELECT * FROM {name}")
        owner.execute(f"CREATE TABLE {name}_hidden (LIKE {name})")
    rules = {}
    for end in ("seen", "kept", "hidden", "absent"):
        source = {"engine": "postgresql", "connection": "clinic", "table": f"{name}_{end}"}
        (error,) = databases.register("never", source).json()["errors"]
        assert error["pointer"] == "/source/table"
        rules[end] = error["rule"]
    assert "this is a view" in rules["seen"]
    assert rules["kept"] == rules["seen"]
    assert "grant it USAGE on the schema and SELECT" in rules["hidden"]
    assert "a table that the database has" in rules["absent"]


def test_an_unreachable_database_costs_nothing_and_leaks_no_secret(databases: Databases) -> None:
    away = {"engine": "postgresql", "connection": "nowhere", "table": "public.t"}
    refused = databases.register("never", away)
    assert refused.status_code == 503
    assert "hush" not in refused.text + databases.world.server.output()


def test_a_changed_table_is_refused_until_it_is_declared_anew(databases: Databases) -> None:
    world, clinic = databases.world, databases.clinic
    source = databases.table([row | {"note": "changing"} for row in ROWS])
    dataset = databases.granted("changing", source)
    made(databases.ask(dataset, {"kind": "count"}))
    unchanged = world.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})
    assert unchanged.status_code == 409
    with clinic.owner() as owner:
        owner.execute(f"INSERT INTO {source['table']} VALUES (70, 1, 'north', 'x')")
        clinic.settled(owner)
    assert wait_for(lambda: databases.ask(dataset, {"kind": "count"}).status_code == 503), (
        "a changed table is still answered"
    )
    before = databases.spent(dataset)
    refused = databases.ask(dataset, {"kind": "count"})
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/source-changed")
    assert "Nothing was charged" in refused.json()["detail"]
    assert databases.spent(dataset) == before
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True, "reason": "more"}))
    assert made(databases.ask(dataset, {"kind": "count"}))["value"] == 41
    assert databases.spent(dataset) == before + 1000  # the spend stays
    (entry,) = world.entries(dataset, "version_declared")
    assert entry["body"]["reason"] == "more"
    world.must_be_sound()


def test_epochs_may_be_tables_and_later_rows_start_without_loss(
    databases: Databases,
) -> None:
    world = databases.world
    columns = [*COLUMNS, {"name": "arrival", "type": "epoch", "high": 4}]
    first = databases.table([row | {"income": row["income"] + 7} for row in ROWS])
    dataset = databases.granted("arriving", first, columns=columns, cells={"column": "arrival"})
    one = made(databases.ask(dataset, {"kind": "count"}))
    assert one["charged"]["cells"] == [1]
    later = databases.table([row | {"age": row["age"] + 1} for row in ROWS[:10]])
    append = {"append": {"table": later["table"]}}
    made(world.admin.patch(f"/v1/datasets/{dataset}", json=append))
    both = made(databases.ask(dataset, {"kind": "count"}))
    assert (both["value"], both["charged"]["cells"]) == (50, [1, 2])
    newest: Json = {"column": "arrival", "op": "==", "value": 2}
    new = made(databases.ask(dataset, {"kind": "count", "where": newest}))
    assert (new["value"], new["charged"]["cells"]) == (10, [2])
    cells = world.admin.get(f"/v1/datasets/{dataset}/budgets/*").json()["cells"]
    spent = {each["cell"]: each["spent"]["epsilon"] for each in cells if each["cell"] in (1, 2, 3)}
    assert spent == {1: 2000, 2: 2000, 3: 0}


def test_only_one_name_has_cells_by_epoch(databases: Databases) -> None:
    """Rows of its second epoch would be in a first epoch under another name."""
    columns = [*COLUMNS, {"name": "arrival", "type": "epoch", "high": 4}]
    celled: Json = {"columns": columns, "cells": {"column": "arrival"}}
    first = databases.table([row | {"income": row["income"] + 11} for row in ROWS])
    later = [row | {"income": row["income"] + 12} for row in ROWS[:10]]
    made(databases.register("twice", first, **celled))
    append = {"append": {"table": databases.table(later)["table"]}}
    made(databases.world.admin.patch("/v1/datasets/twice", json=append))
    assert databases.register("again", databases.table(later), **celled).status_code == 409
    assert databases.register("again", first, **celled).status_code == 409
    made(databases.register("again", databases.table(later), columns=columns))


def test_cells_of_a_derived_column_follow_its_source_column(databases: Databases) -> None:
    age, *_, decade = COLUMNS
    cells = {"column": "decade", "edges": [0, 6, 12]}
    rows: list[Row] = [row | {"income": row["income"] + 13} for row in ROWS]
    made(databases.register("aged", databases.table(rows), columns=[age, decade], cells=cells))
    other = [age | {"low": 60}, decade]  # nobody is in its first cell
    source = databases.table(rows)
    assert databases.register("old", source, columns=other, cells=cells).status_code == 409
    described = [age | {"description": "in years"}, decade, COLUMNS[2]]
    made(databases.register("old", source, columns=described, cells=cells))


def test_every_name_keeps_the_same_rows_of_a_person(databases: Databases) -> None:
    """A table, its copy, a folder of files and a local file keep two of six rows per person."""
    world = databases.world
    types = {"who": "VARCHAR", "ward": "VARCHAR", "cost": "INTEGER"}
    rows: list[Row] = [
        {"who": f"kept-{who}", "ward": "abcdef"[visit], "cost": (who + visit) % 10}
        for who in range(40)
        for visit in range(6)
    ]
    columns = [
        {"name": "ward", "type": "category", "values": list("abcdef")},
        {"name": "cost", "type": "integer", "low": 0, "high": 9},
    ]
    person = {"kind": "column", "column": "who", "rows_max": 2}
    path = world.write_csv([list(row.values()) for row in rows], list(types))
    sources = [
        *(
            {"engine": "postgresql", "connection": "clinic", "table": source.path}
            for source in (databases.clinic.put(rows, types), databases.clinic.put(rows, types))
        ),
        {"engine": "duckdb", "path": path},
        {
            "engine": "spark",
            "connection": "lake",
            "path": databases.lake.put(rows, types).path,
        },
    ]
    totals = []
    for place, source in enumerate(sources):
        name = f"keeping-{place}"
        made(databases.register(name, source, columns=columns, person=person))
        if place == 0:
            world.grant(name, "*", 100_000)
            world.grant(name, "ada", 100_000)
        counted = made(databases.ask(name, {"kind": "count", "group_by": ["ward"]}))["value"]
        summed = made(databases.ask(name, {"kind": "sum", "column": "cost"}))["value"]
        totals.append((counted, summed))
    assert sum(group["value"] for group in totals[0][0]) == 80
    assert totals[1:] == totals[:1] * 3


def test_tables_share_cells_only_if_their_rows_are_the_same(databases: Databases) -> None:
    """If persons swap cells, each column of the table still holds the same values."""
    cells = {"column": "region"}
    rows: list[Row] = [row | {"income": row["income"] + 14} for row in ROWS]
    moved: list[Row] = [
        row | {"region": other["region"]}
        for row, other in zip(rows, rows[1:] + rows[:1], strict=True)
    ]
    made(databases.register("halves", databases.table(rows), cells=cells))
    refused = databases.register("halves-moved", databases.table(moved), cells=cells)
    assert refused.status_code == 409
    assert "without cells" in refused.json()["detail"]
    made(databases.register("halves-again", databases.table(rows), cells=cells))
    path = databases.world.write_csv([list(row.values()) for row in moved], list(TYPES))
    file = {"engine": "duckdb", "path": path}
    assert databases.register("halves-file", file, cells=cells).status_code == 409
    made(databases.register("halves-file", file))


def test_no_database_message_about_a_cell_leaks(databases: Databases) -> None:
    """Checked after a folder vanished during a question, and after every other question here."""
    source = databases.folder()
    dataset = databases.granted("vanishing", source)
    for file in Path(source["path"]).iterdir():
        file.unlink()
    refused = databases.ask(dataset, {"kind": "count"})
    assert refused.status_code == 503
    assert SECRET not in refused.text + databases.world.server.output()
