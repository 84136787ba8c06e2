"""Read what was typed: filters such as `age>=65`, groups such as `age:0,18,65`, and settings."""

import json
import re
from typing import Any

from bursar.ask.cards import Card
from bursar.ask.filters import Column, Condition
from bursar.errors import BadQuestion

COMPARISON = re.compile(
    r"^\s*(?P<column>[\w .-]+?)\s*(?P<op>==|!=|<=|>=|=|<|>)\s*(?P<value>.+?)\s*$"
)
BETWEEN = re.compile(
    r"^\s*(?P<column>[\w .-]+?)\s+between\s+(?P<low>\S+)\s+(?:and\s+)?(?P<high>\S+)\s*$"
)
IN = re.compile(r"^\s*(?P<column>[\w .-]+?)\s+in\s+(?P<values>.+?)\s*$")
MISSING = re.compile(r"^\s*(?P<column>[\w .-]+?)\s+is\s+(?P<no>not\s+)?(?:null|missing)\s*$")
HELP = (
    "Write for example 'age>=65', 'region in north,west', 'age between 18 64', 'income is missing'."
)


def condition(card: Card, text: str) -> Condition:
    """The filter in a text; values have the type of their column."""
    if match := MISSING.match(text):
        missing = _column(card, match).is_null()
        return ~missing if match["no"] else missing
    if match := BETWEEN.match(text):
        name = match["column"]
        low, high = (_value(card, name, match[end]) for end in ("low", "high"))
        return _column(card, match).between(low, high)
    if match := IN.match(text):
        values = [_value(card, match["column"], v.strip()) for v in match["values"].split(",")]
        return _column(card, match).isin(values)
    if match := COMPARISON.match(text):
        value = _value(card, match["column"], match["value"])
        operator = "==" if match["op"] == "=" else match["op"]
        return _column(card, match)._compare(operator, value)
    raise BadQuestion(f"'{text}' is not a filter.", hint=HELP)


def _column(card: Card, match: re.Match[str]) -> Column:
    card.check([match["column"]])
    return Column(match["column"])


def _value(card: Card, name: str, text: str) -> Any:
    column = card.column(name)
    plain = text.strip().strip("'\"")
    try:
        match column.type:
            case "integer" | "epoch":
                return int(plain) if re.fullmatch(r"[-+]?\d+", plain) else float(plain)
            case "number":
                return float(plain)
            case "boolean":
                return {"true": True, "false": False}[plain.lower()]
    except (ValueError, KeyError):
        raise BadQuestion(f"{name} is of type {column.type}; '{plain}' does not fit.") from None
    return plain


def group(card: Card, text: str) -> Any:
    """A group: `region`, or `age:0,18,65,120` with edges."""
    plain = ":" not in text or text in [column.name for column in card.columns]
    name, _, edges = (text, "", "") if plain else text.rpartition(":")
    card.check([name])
    if not edges:
        return name
    return Column(name).edges([_value(card, name, edge) for edge in edges.split(",")])


def settings(texts: list[str]) -> dict[str, Any]:
    """Further fields of a question: `q=0.9`, `edges=[0,18,120]`, `k=3`."""
    fields: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadQuestion(f"'{text}' is not a setting.", hint="Write for example --set q=0.9")
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fields[name] = value
    return fields
