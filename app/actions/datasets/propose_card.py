"""Propose a card from the names and stored types of columns, never from values.

A value would tell something of a person, and bounds that fit the data would tell its extremes: so
bounds, categories and who a person is are left open (None), for people who know them publicly.
"""

import re
from collections.abc import Sequence
from typing import Any

TYPES = ("integer", "number", "category", "boolean", "date", "text")
Json = dict[str, Any]

# What must be declared beside the type.
NEEDS: dict[str, tuple[str, ...]] = {
    "integer": ("low", "high"),
    "number": ("low", "high"),
    "date": ("low", "high"),
    "category": ("values",),
}
_STORED = {
    r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DECIMAL\(\d+,0\)": "integer",
    r"FLOAT|DOUBLE|DECIMAL\(.*\)": "number",
    r"BOOLEAN": "boolean",
    r"DATE|TIMESTAMP.*": "date",
    r"VARCHAR|ENUM\(.*\)|UUID": "category",
}
# By custom; whoever fills the card in may say otherwise.
_NAMED = {r"(.*_)?date|.*_at": "date", r"(is|has)_.*": "boolean"}


def proposed_type(name: str, stored: str, *, typed: bool) -> str | None:
    """`typed`: does the file have types? In CSV all is text, and only the name may say more."""
    known, text = (_STORED, stored) if typed else (_NAMED, name.lower())
    found = (kind for pattern, kind in known.items() if re.fullmatch(pattern, text))
    return next(found, None)


def propose_card(names: Sequence[str], types: Sequence[str], *, typed: bool) -> Json:
    """A card with None where somebody must decide. Columns of types that no card can declare, such
    as lists, are left out."""
    columns = []
    for name, stored in zip(names, types, strict=True):
        kind = proposed_type(name, stored, typed=typed)
        if kind is not None or not typed:
            columns.append({"name": name, "type": kind} | dict.fromkeys(NEEDS.get(kind or "", ())))
    return {"person": None, "neighbours": None, "columns": columns}


def missing(card: Json) -> list[str]:
    """Where something must be filled in, in words."""
    found = []
    if card["person"] is None:
        found.append(
            '/person: {"kind": "row"} or {"kind": "column", "column": ..., "rows_max": ...}'
        )
    if card["neighbours"] is None:
        found.append('/neighbours: "add_remove", or "replace_one" with the public /rows')
    for i, column in enumerate(card["columns"]):
        at, name = f"/columns/{i}", column["name"]
        if column["type"] is None:
            found.append(f"{at}/type of {name}: {', '.join(TYPES)}; and what it needs")
        for field in ("low", "high"):
            if field in column and column[field] is None:
                found.append(f"{at}/{field} of {name}")
        if "values" in column and column["values"] is None:
            found.append(f'{at}/values of {name}: all that there may be (or let type be "text")')
    return found
