"""Cards and rows of the golden files: the same columns for every definition of a person."""

import hashlib
from typing import Any

Json = dict[str, Any]
CITIES = ["Bern", "Chur", "Zug", "Zürich"]
COLUMNS: list[Json] = [
    {"name": "age", "type": "integer", "low": 0, "high": 100},
    {"name": "income", "type": "number", "low": 0, "high": 2000.5},
    {"name": "spent", "type": "number", "low": 1, "high": 900},
    {"name": "city", "type": "category", "values": CITIES},
    {"name": "member", "type": "boolean"},
    {"name": "born", "type": "date", "low": "1950-01-01", "high": "2010-12-31"},
    {"name": "note", "type": "text", "length_max": 20},
]
AGE, CITY = {"column": "age"}, {"column": "city"}
DERIVED: list[Json] = [
    {
        "name": "decade",
        "type": "integer",
        "low": 0,
        "high": 10,
        "derived": {"divide": [AGE, {"value": 10}]},
    },
    {
        "name": "balance",
        "type": "number",
        "low": -1000,
        "high": 3000,
        "derived": {
            "subtract": [
                {"add": [{"column": "income"}, {"multiply": [AGE, {"value": 0.5}]}]},
                {"column": "spent"},
            ]
        },
    },
    {
        "name": "area",
        "type": "category",
        "values": ["urban", "rural"],
        "derived": {"lookup": {**CITY, "map": {"Bern": "urban", "Zug": "rural", "Chur": "rural"}}},
    },
    {
        "name": "elder",
        "type": "boolean",
        "derived": {
            "case": [{"when": [{**AGE, "op": ">=", "value": 65}], "then": {"value": True}}],
            "else": {"value": False},
        },
    },
]
ENDS: list[Json] = [{"name": n, "type": "integer", "low": 0, "high": 39} for n in ("a", "b")]
WEIGHT: Json = {"name": "weight", "type": "integer", "low": 0, "high": 9}
ARRIVAL: Json = {"name": "arrival", "type": "epoch", "high": 6}
ROWS = 240
ROW, PERSON = {"kind": "row"}, {"kind": "column", "column": "person", "rows_max": 3}
ADD: Json = {"neighbours": "add_remove"}
REPLACE: Json = {"neighbours": "replace_one", "rows": ROWS}

CARDS: dict[str, Json] = {
    "people": {"person": ROW, **ADD, "columns": COLUMNS + DERIVED},
    "fixed": {"person": ROW, **REPLACE, "columns": COLUMNS},
    "visits": {"person": PERSON, **ADD, "columns": COLUMNS + DERIVED},
    "fixed_visits": {"person": PERSON, **REPLACE, "columns": COLUMNS},
    "graph": {"person": {"kind": "edge", "ends": ["a", "b"]}, **ADD, "columns": [*ENDS, WEIGHT]},
    "by_city": {"person": ROW, **ADD, "columns": COLUMNS, "cells": CITY},
    "by_age": {
        "person": ROW,
        **REPLACE,
        "columns": COLUMNS,
        "cells": {**AGE, "edges": [0, 18, 40, 65, 100]},
    },
    "by_ward": {
        "person": PERSON,
        **ADD,
        "columns": COLUMNS,
        "size": 1000,
        "cells": {**CITY, "one_per_person": True},
    },
    "by_arrival": {
        "person": ROW,
        **ADD,
        "columns": [*COLUMNS, ARRIVAL],
        "cells": {"column": "arrival"},
    },
}


def csv_of(name: str, *, epoch: int = 1) -> str:
    """The file of a card, with different rows for each name and epoch."""
    if name == "graph":
        edges = [_edge(number) for number in range(300)]
        return "\n".join(["a,b,weight", *edges]) + "\n"
    header = ",".join(["person", *(column["name"] for column in COLUMNS)])
    rows = [_row(f"{name} {epoch}", number) for number in range(ROWS if epoch == 1 else 40)]
    return "\n".join([header, *rows]) + "\n"


def _drawn(label: str, *bounds: int) -> list[int]:
    number = int.from_bytes(hashlib.sha256(label.encode()).digest())
    drawn = []
    for bound in bounds:
        number, rest = divmod(number, bound)
        drawn.append(rest)
    return drawn


def _row(label: str, number: int) -> str:
    person, age, income, spent, city, member, year, day, note, gap = _drawn(
        f"{label} {number}", ROWS // 2, 96, 240_000, 91_000, 10, 3, 62, 28, 40, 30
    )
    fields = [
        f"p{person}",
        age + 3,
        income / 100,
        spent / 100,
        CITIES[min(city, 9 - city) % 4],
        ("true", "false", "1")[member],
        f"{1950 + year}-{1 + day % 12:02}-{1 + day:02}",
        "common" if note < 25 else "rare" if note < 35 else f"n{note}",
    ]
    if gap < 7:
        fields[1 + gap] = ""
    return ",".join(map(str, fields))


def _edge(number: int) -> str:
    one, other, weight = _drawn(f"edge {number}", 40, 25, 10)
    return f"{one},{other},{weight}"
