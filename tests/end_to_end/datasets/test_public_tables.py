"""Public tables over HTTP: read once at registration, part of the card, refused by their field."""

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from app.actions.datasets.public_tables import TABLES_MAX
from app.data.expressions import LOOKUP_MAX
from tests.house.documentation import DOCS, examples, section
from tests.server import COLUMNS, REGIONS, Json, World, ask, card, made, new_key, some_rows

LEVELS = ["high", "low"]


def written(world: World, lines: str, name: str | None = None) -> str:
    name = name or f"table-{secrets.token_hex(6)}.csv"
    (world.ledger.data / name).write_text(lines)
    return name


def level(path: str, key: str = "region", value: str = "level", by: str = "region") -> Json:
    """A categorical column derived from the table."""
    table = {"path": path, "key": key, "value": value}
    return {
        "name": "level",
        "type": "category",
        "values": LEVELS,
        "derived": {"lookup": {"column": by, "table": table}},
    }


def price(expression: Json, kind: str = "number") -> Json:
    return {"name": "price", "type": kind, "low": 0, "high": 1000, "derived": expression}


def looked_up(path: str, value: str, by: str = "region", key: str = "region") -> Json:
    return {"lookup": {"column": by, "table": {"path": path, "key": key, "value": value}}}


def register(world: World, *derived: Json, rows: str | None = None) -> Json:
    path = rows or world.write_csv(some_rows())
    body = card(path, columns=[*COLUMNS, *derived])
    return made(world.admin.post("/v1/datasets", json=body))


GOOD = "region,level,price\nnorth,high,10\nsouth,low,2.5\neast,low,0\n"


def test_a_table_is_part_of_the_card_and_answers_questions(live: World) -> None:
    path = written(live, GOOD)
    doubled = {"multiply": [{"value": 2}, looked_up(path, "price")]}
    registered = register(live, level(path), price(doubled))
    derived = {column["name"]: column["derived"] for column in registered["columns"]}
    assert derived["level"] == {
        "lookup": {"column": "region", "map": {"north": "high", "south": "low", "east": "low"}}
    }
    assert derived["price"]["multiply"][1]["lookup"]["map"] == {
        "north": 10.0,
        "south": 2.5,
        "east": 0.0,
    }
    person = live.person()
    for holder in ("*", person.name):
        live.grant(registered["name"], holder, 10_000)
    client = live.client(person)

    def answer_to(query: Json) -> Json:
        question = {"dataset": registered["name"], "query": query, "privacy": {"epsilon": 500}}
        return made(ask(client, question, new_key()))

    # There are 60 rows, 15 per region. The table has no line for the west, so those rows have no
    # value.
    groups = answer_to({"kind": "histogram", "column": "level"})["value"]
    counts = {group["group"]["level"]: group["value"] for group in groups}
    assert counts == {"high": 15, "low": 30}
    assert answer_to({"kind": "sum", "column": "price"})["value"] == pytest.approx(375, abs=20)
    missing = {"column": "level", "op": "is_null"}
    assert answer_to({"kind": "count", "where": missing})["value"] == 15

    # Later changes of the file affect neither the card nor the counts.
    (live.ledger.data / path).write_text(GOOD.replace("north,high", "north,low"))
    shown = made(client.get(f"/v1/datasets/{registered['name']}"))
    assert shown["columns"] == registered["columns"]
    (live.ledger.data / path).unlink()
    again = {**missing, "op": "==", "value": "high"}
    assert answer_to({"kind": "count", "where": again})["value"] == 15
    live.must_be_sound()


def test_keys_of_a_parquet_table_may_be_integers_or_booleans(live: World) -> None:
    name = f"{secrets.token_hex(6)}.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i AS age, i % 2 = 0 AS even, i / 4.0 AS price FROM range(200) AS t(i)) "
            f"TO '{live.ledger.data / name}' (FORMAT parquet)"
        )
    even = {
        "name": "even",
        "type": "boolean",
        "derived": looked_up(name, "even", by="age", key="age"),
    }
    smokers = written(live, "smokes,price\nYES,12\n0,3.5\n")
    registered = register(
        live,
        even,
        price(looked_up(name, "price", by="age", key="age")),
        {**price(looked_up(smokers, "price", by="smoker", key="smokes")), "name": "insured"},
    )
    derived = {each["name"]: each["derived"] for each in registered["columns"]}
    # Keys outside the column's values are dropped.
    assert derived["even"]["lookup"]["map"] == {str(i): i % 2 == 0 for i in range(121)}
    assert derived["price"]["lookup"]["map"]["7"] == 1.75
    assert derived["insured"]["lookup"]["map"] == {"true": 12.0, "false": 3.5}


def test_a_case_may_look_up_and_a_line_without_a_value_gives_null(live: World) -> None:
    path = written(live, "region,price\nnorth,10\nsouth,\nelsewhere,\n007,1\n")
    adult = [{"column": "age", "op": ">=", "value": 18}]
    cases = {"case": [{"when": adult, "then": looked_up(path, "price")}], "else": {"value": 1}}
    registered = register(live, price(cases, "integer"))
    (found,) = [each["derived"] for each in registered["columns"] if each["name"] == "price"]
    assert found["case"][0]["then"]["lookup"]["map"] == {"north": 10.0}


AT = "/columns/5/derived/lookup/table"
Broken = Callable[[World], Json]


def outside(world: World) -> str:
    """A file beside the data root."""
    place = world.ledger.data.parent / f"outside-{secrets.token_hex(4)}.csv"
    place.write_text(GOOD)
    return str(place)


def linked(world: World) -> str:
    name = f"link-{secrets.token_hex(4)}.csv"
    os.symlink(outside(world), world.ledger.data / name)
    return name


def table(lines: str, **names: str) -> Broken:
    return lambda world: level(written(world, lines), **names)


WRONG: dict[str, tuple[Broken, str]] = {
    "no file": (lambda _: level("not-there.csv"), f"{AT}/path"),
    "outside the roots": (lambda world: level(outside(world)), f"{AT}/path"),
    "a link out of the roots": (lambda world: level(linked(world)), f"{AT}/path"),
    "a way up": (lambda world: level(f"../{Path(outside(world)).name}"), f"{AT}/path"),
    "another suffix": (lambda world: level(written(world, GOOD, "t.txt")), f"{AT}/path"),
    "no Parquet": (
        lambda world: level(written(world, GOOD, f"{secrets.token_hex(4)}.parquet")),
        f"{AT}/path",
    ),
    "an empty file": (table(""), f"{AT}/path"),
    "too few fields": (table("region,level\nnorth\n"), f"{AT}/path"),
    "no such key": (table(GOOD, key="planted"), f"{AT}/key"),
    "no such value": (table(GOOD, value="planted"), f"{AT}/value"),
    "a key twice": (table(GOOD + "north,high,1\n"), f"{AT}/key"),
    "a key twice that the column cannot have": (
        table(GOOD + "x,high,1\nx,high,1\n"),
        f"{AT}/key",
    ),
    "a whole number twice": (
        table("age,level\n7,low\n07,low\n", key="age", by="age"),
        f"{AT}/key",
    ),
    "no key in a line": (table(GOOD + ",high,1\n"), f"{AT}/key"),
    "no key of the column": (table("region,level\nplanted,high\n"), f"{AT}/key"),
    "no lines": (table("region,level\n"), f"{AT}/key"),
    "a value that is not listed": (table("region,level\nnorth,planted\n"), f"{AT}/value"),
    "a column that has no keys": (table(GOOD, by="income"), f"{AT}/key"),
    "an undeclared column": (table(GOOD, by="planted"), f"{AT}/key"),
    "more lines than there may be": (
        table("region,level\n" + "".join(f"k{i},low\n" for i in range(LOOKUP_MAX + 1))),
        f"{AT}/path",
    ),
    "a number that is none": (
        lambda world: price(looked_up(written(world, GOOD), "level")),
        f"{AT}/value",
    ),
    "a truth that is none": (
        lambda world: {
            "name": "flag",
            "type": "boolean",
            "derived": looked_up(written(world, GOOD), "level"),
        },
        f"{AT}/value",
    ),
    "a path that is no text": (lambda _: level(7), f"{AT}/path"),  # type: ignore[arg-type]
    "an empty path": (lambda _: level(""), f"{AT}/path"),
    "a table that is none": (
        lambda _: {**level("x"), "derived": {"lookup": {"column": "region", "table": "x.csv"}}},
        AT,
    ),
    "a field too many": (
        lambda _: {
            **level("x"),
            "derived": {
                "lookup": {
                    "column": "region",
                    "table": {"path": "x.csv", "key": "a", "value": "b", "more": 1},
                }
            },
        },
        AT,
    ),
    "a map and a table": (
        lambda world: {
            **level("x"),
            "derived": {"lookup": looked_up(written(world, GOOD), "level")["lookup"] | {"map": {}}},
        },
        "/columns/5/derived/lookup",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_table_is_refused_by_its_field_and_registers_nothing(
    live: World, wrong: str
) -> None:
    broken, pointer = WRONG[wrong]
    before = live.admin.get("/v1/ledger/export").text
    body = card(live.write_csv(some_rows()), columns=[*COLUMNS, broken(live)])
    reply = live.admin.post("/v1/datasets", json=body)
    assert reply.status_code == 422, reply.text
    assert [each["pointer"] for each in reply.json()["errors"]] == [pointer]
    assert "planted" not in reply.text
    assert live.admin.get("/v1/ledger/export").text == before


def test_the_private_rows_cannot_serve_as_a_public_table(live: World) -> None:
    rows = live.write_csv(some_rows(), name=f"{secrets.token_hex(4)}.csv")
    other = f"{secrets.token_hex(4)}.csv"
    os.symlink(live.ledger.data / rows, live.ledger.data / other)
    for path in (rows, other, f"./{rows}"):
        body = card(rows, columns=[*COLUMNS, level(path, value="region")])
        reply = live.admin.post("/v1/datasets", json=body)
        assert [each["pointer"] for each in reply.json()["errors"]] == [f"{AT}/path"]


def test_rows_of_another_dataset_cannot_serve_as_a_public_table_under_any_name(live: World) -> None:
    data = live.ledger.data
    first, later, part = (live.write_csv(some_rows()) for _ in range(3))
    dataset = live.dataset(first)
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": later}}))
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"status": "closed"}))
    folder = data / secrets.token_hex(4)
    folder.mkdir()
    inside = folder / "part.parquet"
    (data / live.write_parquet(part)).rename(inside)
    live.dataset(folder.name)
    hard, soft = data / f"hard-{first}", data / f"soft-{later}"
    os.link(data / first, hard)
    os.symlink(data / later, soft)
    before = live.admin.get("/v1/ledger/export").text
    for path in (first, later, hard.name, soft.name, f"{folder.name}/part.parquet"):
        wanted = level(path, value="region")
        body = card(live.write_csv(some_rows()), columns=[*COLUMNS, wanted])
        reply = live.admin.post("/v1/datasets", json=body)
        assert reply.status_code == 422, path
        (error,) = reply.json()["errors"]
        assert error["pointer"] == f"{AT}/path"
        assert error["rule"].startswith("a file that is not a dataset's"), path
    assert live.admin.get("/v1/ledger/export").text == before
    (data / first).unlink()  # a missing source is no obstacle
    register(live, level(written(live, GOOD)))


def refused(world: World, path: str) -> bool:
    body = card(world.write_csv(some_rows()), columns=[*COLUMNS, level(path, value="region")])
    reply = world.admin.post("/v1/datasets", json=body)
    # either because it is private, or because a key appears twice
    assert reply.status_code == 422, reply.text
    return bool(reply.json()["errors"][0]["rule"].startswith("a file that is not a dataset's"))


def test_rows_stay_private_after_their_source_moves_or_vanishes(live: World) -> None:
    data = live.ledger.data
    # A folder that is no longer a source
    folder = data / secrets.token_hex(4)
    folder.mkdir()
    (data / live.write_parquet(live.write_csv(some_rows()))).rename(folder / "part.parquet")
    live.dataset(folder.name)
    (folder / "sub").mkdir()
    assert refused(live, f"{folder.name}/part.parquet")
    # A link that points elsewhere
    one, other, link = live.write_csv(some_rows()), live.write_csv(some_rows()), data / "link.csv"
    link.symlink_to(data / one)
    live.dataset(link.name)
    link.unlink()
    link.symlink_to(data / other)
    assert refused(live, one)
    assert refused(live, other)
    # Moved, copied, and of an older version
    moved, old = live.write_csv(some_rows()), live.write_csv(some_rows())
    live.dataset(moved)
    (data / f"was-{moved}").write_bytes((data / moved).read_bytes())
    (data / moved).rename(data / f"now-{moved}")
    assert refused(live, f"was-{moved}")
    assert refused(live, f"now-{moved}")
    dataset = live.dataset(old)
    os.link(data / old, data / f"kept-{old}")
    (data / old).unlink()
    live.write_csv(some_rows(), name=old)
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True}))
    assert refused(live, f"kept-{old}")
    assert not refused(live, live.write_csv(some_rows())), (
        "the rows are not private; but a key appears twice"
    )


def test_a_registration_is_repeated_although_its_table_is_now_missing_or_private(
    live: World,
) -> None:
    for then in ("gone", "private"):
        path = written(live, GOOD.replace(",10", ",11"))  # no other test uses these bytes
        body = card(live.write_csv(some_rows()), columns=[*COLUMNS, level(path)])
        headers = {"Idempotency-Key": new_key()}
        first = live.admin.post("/v1/datasets", json=body, headers=headers)
        assert first.status_code == 201, first.text
        if then == "gone":
            (live.ledger.data / path).unlink()
        else:
            columns = [each for each in COLUMNS if each["name"] == "region"]
            live.dataset(path, columns=columns)
        again = live.admin.post("/v1/datasets", json=body, headers=headers)
        assert (again.status_code, again.content) == (201, first.content), then


def test_a_card_with_too_many_tables_is_refused(live: World) -> None:
    path = written(live, GOOD)
    parts = [looked_up(path, "price") for _ in range(TABLES_MAX + 1)]
    body = card(live.write_csv(some_rows()), columns=[*COLUMNS, price({"add": parts})])
    reply = live.admin.post("/v1/datasets", json=body)
    (error,) = reply.json()["errors"]
    assert error["pointer"] == f"/columns/5/derived/add/{TABLES_MAX}/lookup/table"


def test_only_an_administrator_can_make_the_server_read_a_table(live: World) -> None:
    path = written(live, GOOD + "north,high,1\n")
    body = card(live.write_csv(some_rows()), columns=[*COLUMNS, level(path)])
    reply = live.client(live.person()).post("/v1/datasets", json=body)
    assert reply.status_code == 403
    assert "errors" not in reply.json()


def test_a_repeated_registration_with_a_table_returns_the_first_reply(live: World) -> None:
    path = written(live, GOOD)
    body = card(live.write_csv(some_rows()), columns=[*COLUMNS, level(path)])
    headers = {"Idempotency-Key": new_key()}
    first = live.admin.post("/v1/datasets", json=body, headers=headers)
    (live.ledger.data / path).write_text(GOOD.replace("north,high", "north,low"))
    again = live.admin.post("/v1/datasets", json=body, headers=headers)
    assert made(again) == made(first)
    other = json.loads(json.dumps(body).replace('"value": "level"', '"value": "region"'))
    other["columns"][-1]["values"] = REGIONS
    refused = live.admin.post("/v1/datasets", json=other, headers=headers)
    assert refused.json()["type"] == "/problems/idempotency-conflict"


def test_the_documented_table_registers(live: World) -> None:
    ((column, _),) = examples(section(DOCS / "datasets.md", "Public tables"))
    written(live, "region,area\nnorth,rural\nwest,urban\n", "areas.csv")
    shown = register(live, column)["columns"][-1]
    assert shown["derived"]["lookup"]["map"] == {"north": "rural", "west": "urban"}
