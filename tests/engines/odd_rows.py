"""Rows with odd values and the cards that declare them, for every engine.

They cover missing values, NaN, infinities, two zeros, numbers out of bounds, ties, odd texts,
and few and many rows per person.
"""

import datetime
import itertools
import math
from decimal import Decimal
from typing import Any

from tests.engines.remote.tables import Row, card_of

DAY = datetime.date
TYPES = {
    "age": "INTEGER",
    "big": "BIGINT",
    "income": "DOUBLE",
    "price": "DECIMAL(20,4)",
    "city": "VARCHAR",
    "member": "BOOLEAN",
    "born": "DATE",
    "note": "VARCHAR",
    "who": "VARCHAR",
}
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 100},
    {"name": "big", "type": "integer", "low": -(1 << 53), "high": 1 << 53},
    {"name": "income", "type": "number", "low": -10.5, "high": 1000.25},
    {"name": "price", "type": "number", "low": 0, "high": 1e9},
    {"name": "city", "type": "category", "values": ["Bern", "Zürich", "c0", "a'b\"c"]},
    {"name": "member", "type": "boolean"},
    {"name": "born", "type": "date", "low": "1950-01-01", "high": "2010-12-31"},
    {"name": "note", "type": "text", "length_max": 12},
    {"name": "epoch", "type": "epoch", "high": 4},
    {
        "name": "share",
        "type": "number",
        "low": -5,
        "high": 5,
        "derived": {
            "divide": [
                {"subtract": [{"column": "income"}, {"value": 0.1}]},
                {"add": [{"column": "age"}, {"multiply": [{"column": "age"}, {"value": 0.3}]}]},
            ]
        },
    },
    {
        "name": "decade",
        "type": "integer",
        "low": 0,
        "high": 8,
        "derived": {"divide": [{"column": "age"}, {"value": 10}]},
    },
    {
        "name": "side",
        "type": "category",
        "values": ["west", "east"],
        "derived": {"lookup": {"column": "city", "map": {"Bern": "west", "Zürich": "east"}}},
    },
    {
        "name": "elder",
        "type": "boolean",
        "derived": {
            "case": [
                {
                    "when": [
                        {"column": "age", "op": ">", "value": 17.5},
                        {"column": "member", "op": "==", "value": True},
                    ],
                    "then": {"value": True},
                },
                {"when": {"column": "city", "op": "!=", "value": "Bern"}, "then": {"value": False}},
            ]
        },
    },
    {
        "name": "toll",
        "type": "number",
        "low": 0,
        "high": 10,
        "derived": {
            "multiply": [
                {"lookup": {"column": "member", "map": {"true": 0.5, "false": 2}}},
                {"lookup": {"column": "age", "map": {"7": 1.1, "17": 3, "100": 0}}},
            ]
        },
    },
]
BY_ROW = card_of(*COLUMNS)
BY_PERSON = card_of(*COLUMNS, person={"kind": "column", "column": "who", "rows_max": 3})
BY_CELL = card_of(
    *COLUMNS,
    person={"kind": "column", "column": "who", "rows_max": 3},
    cells={"column": "income", "edges": [-10.5, 0.0, 1.5, 1000.25], "one_per_person": True},
)
VALUES: dict[str, list[Any]] = {
    "age": [None, -5, 0, 7, 17, 99, 100, 2000],
    "big": [None, 1 << 62, -(1 << 62), 5, 0],
    "income": [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 999.999, 1e300, 5e-324, 0.1],
    "price": [None, Decimal("12.3456"), Decimal("9999999999999999.9999"), Decimal(0)],
    "city": [None, "", "Bern", "Zürich", "other", "a'b\"c", "bern"],
    "member": [None, True, False],
    "born": [None, DAY(1900, 1, 1), DAY(1999, 12, 31), DAY(2010, 12, 31), DAY(2050, 1, 1)],
    "note": [
        None, "", " ", "flu", " flu ", "flu\t\n flu", "é", "e\u0301", "日本語", "😀", "y" * 50,
        "\x85a\x7f", "a\u2028b", "\u3000", "B", "a",
    ],
    "who": [None, "", *(f"p{number}" for number in range(40))],
}  # fmt: skip


def made_rows(count: int, start: int) -> list[Row]:
    """Every value of every column, beside other values of the others; some rows appear twice."""
    turns = {name: itertools.cycle(values) for name, values in VALUES.items()}
    for name, turn in turns.items():
        for _ in range(start * len(name)):
            next(turn)
    rows = [{name: next(turn) for name, turn in turns.items()} for _ in range(count)]
    return [*rows, *rows[: count // 5]]


FIRST, LATER = made_rows(150, 1), made_rows(60, 3)
AS_DECLARED = [
    {**row, "price": row["price"] and float(row["price"]), "epoch": epoch}
    for epoch, rows in enumerate((FIRST, LATER), 1)
    for row in rows
]
