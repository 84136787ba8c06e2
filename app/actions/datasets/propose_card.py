"""Propose a card from the names and stored types of columns, never from values.

A value would reveal something about a person, and bounds fitted to the data would reveal extremes.
So bounds, categories and the person are left open (None), for people who know them publicly.
"""

import re
from collections.abc import Sequence
from typing import Any

TYPES = ("integer", "number", "category", "boolean", "date", "text")
Json = dict[str, Any]

# Members that must be declared beside the type.
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
# By convention; people who complete the card may choose otherwise.
_NAMED = {r"(.*_)?date|.*_at": "date", r"(is|has)_.*": "boolean"}


def proposed_type(name: str, stored: str, *, typed: bool) -> str | None:
    """Type of a column. `typed`: the file has types; in CSV only the name can suggest one."""
    known, text = (_STORED, stored) if typed else (_NAMED, name.lower())
    found = (kind for pattern, kind in known.items() if re.fullmatch(pattern, text))
    return next(found, None)


def propose_card(names: Sequence[str], types: Sequence[str], *, typed: bool) -> Json:
    """A card with None where somebody must decide.

    Columns of types that no card can declare, such as lists, are left out.
    """
    columns = []
    for name, stored in zip(names, types, strict=True):
        kind = proposed_type(name, stored, typed=typed)
        if kind is not None or not typed:
            columns.append({"name": name, "type": kind} | dict.fromkeys(NEEDS.get(kind or "", ())))
    return {"person": None, "neighbours": None, "columns": columns}


def missing(card: Json) -> list[str]:
    """Descriptions of the places that must be filled in."""
    descriptions = []
    if card["person"] is None:
        descriptions.append(
            '/person: {"kind": "row"} or {"kind": "column", "column": ..., "rows_max": ...}'
        )
    if card["neighbours"] is None:
        descriptions.append('/neighbours: "add_remove", or "replace_one" with the public /rows')
    for i, column in enumerate(card["columns"]):
        at, name = f"/columns/{i}", column["name"]
        if column["type"] is None:
            descriptions.append(
                f"{at}/type of {name}: {', '.join(TYPES)}; and the members it needs"
            )
        for field in ("low", "high"):
            if field in column and column[field] is None:
                descriptions.append(f"{at}/{field} of {name}")
        if "values" in column and column["values"] is None:
            descriptions.append(
                f'{at}/values of {name}: all possible values (or set type to "text")'
            )
    return descriptions
