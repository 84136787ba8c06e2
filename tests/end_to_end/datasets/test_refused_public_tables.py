"""Public tables that are refused by their field, and private rows that pose as one."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from app.actions.datasets.public_tables import TABLES_MAX
from app.data.expressions import LOOKUP_MAX
from tests.end_to_end.datasets.public_table_cards import (
    GOOD,
    level,
    looked_up,
    price,
    register,
    written,
)
from tests.server import COLUMNS, Json, World, card, made, some_rows

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
