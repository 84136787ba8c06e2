"""Cards whose columns look up a public table."""

import secrets

from tests.server import COLUMNS, Json, World, card, made, some_rows

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
