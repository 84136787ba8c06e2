"""The format of golden files: one line per fact, so that a diff reads line by line."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

LONG = 40
WIDTH = 100


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pretty(value: Any, indent: str = "") -> str:
    """JSON in which a value that fits in a line takes one line."""
    text = compact(value)
    if len(text) + len(indent) <= WIDTH or not isinstance(value, dict | list):
        return text
    deeper = indent + " "
    if isinstance(value, list):
        parts = [pretty(each, deeper) for each in value]
    else:
        parts = [f"{compact(name)}: {pretty(each, deeper)}" for name, each in value.items()]
    start, end = "[]" if isinstance(value, list) else "{}"
    return f"{start}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{end}"


def lines(items: Mapping[str, Mapping[str, object]]) -> str:
    """An object of objects, each member of the inner ones on its own line; sorted by name."""
    return "{\n" + ",\n".join(f"{compact(n)}: {_block(items[n])}" for n in sorted(items)) + "\n}\n"


def _block(item: Mapping[str, object]) -> str:
    members = [f"{compact(name)}: {compact(value)}" for name, value in item.items()]
    if len(members) == 1:  # one line is enough
        return f"{{{members[0]}}}" if "" not in item else compact(item[""])
    return "{\n " + ",\n ".join(members) + "\n}"


def digest(value: object) -> str:
    """A digest of a value too long to show."""
    return hashlib.sha256(compact(value).encode()).hexdigest()[:16]


def shortened(values: Iterable[Any]) -> list[Any]:
    """A long list as its first values, its length and a digest of all."""
    listed = list(values)
    if len(listed) <= LONG:
        return listed
    return [*listed[:4], f"... {len(listed)} in all, digest {digest(listed)}"]
