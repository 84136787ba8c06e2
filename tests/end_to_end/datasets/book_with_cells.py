"""A book with cells under several names: each person's true loss, and the ledger's figure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

from tests.server import Json, Person, World, ask, exact, made, new_key

Row = dict[str, Any]
HEADER = ("id", "sex", "side", "age")
COLUMNS: list[Json] = [
    {"name": "sex", "type": "category", "values": ["f", "m"]},
    {"name": "side", "type": "category", "values": ["f", "m"]},
    {"name": "age", "type": "integer", "low": 0, "high": 99},
    {
        "name": "old",
        "type": "integer",
        "low": 0,
        "high": 9,
        "derived": {"divide": [{"column": "age"}, {"value": 10}]},
    },
]
BY_SEX: Json = {"column": "sex"}
BY_OLD: Json = {"column": "old", "edges": [0, 5, 9]}
WITHOUT = "Register this name without cells"


def some_persons(count: int = 24) -> list[Row]:
    """Rows that no other test uses."""
    start = int(new_key().encode().hex()[:8], 16)
    return [
        {
            "id": start + i,
            "sex": "fm"[i % 2],
            "side": "fm"[i // 2 % 2],
            "age": 20 + i * 3 % 60,
        }
        for i in range(count)
    ]


def moved(rows: list[Row], name: str, by: int = 7) -> list[Row]:
    """Some persons swap values in one column, which still holds the same values."""
    values = [row[name] for row in rows]
    values[:by] = values[1:by] + values[:1]
    return [{**row, name: value} for row, value in zip(rows, values, strict=True)]


Cell = Callable[[Row], Any]
SEX: dict[str, tuple[Json, Cell]] = {
    "f": ({"column": "sex", "op": "==", "value": "f"}, lambda row: row["sex"] == "f"),
    "m": ({"column": "sex", "op": "==", "value": "m"}, lambda row: row["sex"] == "m"),
}
OLD: dict[str, tuple[Json, Cell]] = {
    "young": ({"column": "old", "op": "<", "value": 5}, lambda row: row["age"] // 10 < 5),
    "old": ({"column": "old", "op": ">=", "value": 5}, lambda row: row["age"] // 10 >= 5),
}


@dataclass
class Book:
    """Names of one book, the rows of each name, and the loss of each person."""

    world: World
    cells: Json
    # per cell: a filter that selects it, and a test for its rows
    parts: dict[str, tuple[Json, Cell]]
    person: Json = field(default_factory=lambda: {"kind": "row"})
    rows: dict[str, list[Row]] = field(default_factory=dict)
    losses: dict[int, Decimal] = field(default_factory=dict)
    analyst: Person | None = None

    def write(self, rows: list[Row], name: str | None = None, header: Any = HEADER) -> str:
        return self.world.write_csv([[row[each] for each in HEADER] for row in rows], header, name)

    def register(
        self, path: str, rows: list[Row], cells: Json | None, **changes: Any
    ) -> tuple[str, httpx.Response]:
        body: Json = {
            "name": f"names-{new_key()[:12]}",
            "source": {"engine": "duckdb", "path": path},
            "person": self.person,
            "neighbours": "add_remove",
            "columns": COLUMNS,
            **({} if cells is None else {"cells": cells}),
            **changes,
        }
        reply = self.world.admin.post("/v1/datasets", json=body)
        name = str(body["name"])
        if reply.status_code == 201:
            self.rows[name] = rows
            if self.analyst is None:
                self.analyst = self.world.person()
                for holder in ("*", self.analyst.name):
                    self.world.grant(name, holder, 100)
        return name, reply

    def ask_every_cell(self, name: str) -> None:
        """Ask each cell at a different price, so that a person counted in two cells shows."""
        for (where, counts), epsilon in zip(self.parts.values(), ("1", "0.25"), strict=True):
            self.ask(name, where, counts, epsilon)

    def ask(self, name: str, where: Json | None, counts: Cell, epsilon: str) -> None:
        query: Json = {"kind": "count"} | ({} if where is None else {"where": where})
        question = {
            "dataset": name,
            "query": query,
            "privacy": {"epsilon": epsilon},
            "fresh": True,
        }
        assert self.analyst is not None
        made(ask(self.world.client(self.analyst), question, new_key()))
        for row in self.rows[name]:
            if counts(row):
                self.losses[row["id"]] = self.losses.get(row["id"], Decimal(0)) + Decimal(epsilon)

    def must_hold(self, *celled: str) -> None:
        """Compare the ledger's figure of each cell with the loss of everyone in it, under any
        name.
        """
        assert self.analyst is not None
        for holder in ("*", self.analyst.name):
            lines = self.world.budget(celled[0], holder)["cells"]
            claims = dict(zip(self.parts, [exact(line["spent"]) for line in lines], strict=False))
            for name in celled:
                for row in self.rows[name]:
                    for cell, (_, counts) in self.parts.items():
                        if counts(row):
                            assert self.losses.get(row["id"], Decimal(0)) <= claims[cell]
        self.world.must_be_sound()

    def must_refuse_cells(self, first: str, path: str, rows: list[Row], **changes: Any) -> None:
        """Check that a second name with cells is refused with a reason.

        Without cells it joins the book, and the ledger's figures hold.
        """
        cells = changes.pop("cells", self.cells)
        _, refused = self.register(path, rows, cells, **changes)
        assert refused.status_code == 409, refused.text
        assert WITHOUT in refused.json()["detail"]
        changes.pop("columns", None)
        second, joined = self.register(path, rows, None, **changes)
        made(joined)
        assert self.world.spent(second, "*") == self.world.spent(first, "*"), (
            "both names share one book"
        )
        self.ask_every_cell(second)
        self.must_hold(first)


def book_with(world: World, cells: Json = BY_SEX, **more: Any) -> tuple[Book, str, str, list[Row]]:
    """A book whose first name has cells, with that name's path and rows; each cell was asked."""
    book = Book(world, cells, SEX if cells == BY_SEX else OLD, **more)
    rows = some_persons()
    path = book.write(rows)
    first, reply = book.register(path, rows, cells)
    made(reply)
    book.ask_every_cell(first)
    return book, first, path, rows
