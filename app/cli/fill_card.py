"""Complete a proposed card in a dialogue on the terminal: bounds, categories, the person.

Each answer is checked by the rules of the card; an invalid one is asked again.
"""

import csv
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from pydantic import Field, TypeAdapter, ValidationError

from app.actions.datasets.propose_card import NEEDS, TYPES, Json
from app.data.card import ROWS_MAX, Card
from app.data.columns import Column, day
from app.errors import Invalid

T = TypeVar("T")
SKIP = "skip"
_COLUMN: TypeAdapter[Any] = TypeAdapter(Annotated[Column, Field(discriminator="type")])


def fill_card(draft: Json, names: tuple[str, ...]) -> Card:
    """The completed card. `names`: all columns of the source."""
    typer.echo("Bounds and categories are public: enter what is known without seeing the rows.")
    person = _person(names)
    card: Json = {"person": person}
    card["neighbours"] = _choice(
        "Neighbours: a person added or removed, or one replaced by another",
        ("add_remove", "replace_one"),
        "add_remove",
    )
    if card["neighbours"] == "replace_one":
        card["rows"] = _ask("Public number of rows", lambda text: _whole(text, 1, ROWS_MAX))
    left = [each for each in draft["columns"] if each["name"] != person.get("column")]
    columns = [column for each in left if (column := _column(each)) is not None]
    try:
        return Card.model_validate(card | {"columns": columns})
    except ValidationError as error:
        raise Invalid(f"This is not a valid card: {_rules(error)}.") from None


def _person(names: tuple[str, ...]) -> Json:
    kind = _choice("One person is a row, or all rows that share a column", ("row", "column"), "row")
    if kind == "row":
        return {"kind": "row"}
    return {
        "kind": "column",
        "column": _ask("Column that identifies persons", lambda text: _one_of(text, names)),
        "rows_max": _ask("Most rows kept of one person", lambda text: _whole(text, 1, 100_000)),
    }


def _column(proposed: Json) -> Json | None:
    name = proposed["name"]
    while True:
        kind = _choice(f"{name}: type", (*TYPES, SKIP), proposed["type"])
        if kind == SKIP:
            return None
        column: Json = {"name": name, "type": kind}
        for field in NEEDS.get(kind, ()):
            column[field] = _ask(*_field(name, kind, field))
        try:
            _COLUMN.validate_python(column)
        except ValidationError as error:
            typer.echo(f"  {_rules(error)}")
            continue
        return column


def _rules(error: ValidationError) -> str:
    found = [each["msg"].removeprefix("Value error, ") for each in error.errors()]
    return "; ".join(dict.fromkeys(found))


def _field(name: str, kind: str, field: str) -> tuple[str, Callable[[str], Any]]:
    reads: dict[str, Callable[[str], Any]] = {
        "integer": lambda text: _whole(text, -(1 << 53), 1 << 53),
        "number": _number,
        "date": lambda text: day(text).isoformat(),
        "category": _listed,
    }
    words = {
        "low": "lowest value",
        "high": "highest value",
        "values": "values, separated by commas",
    }
    return f"{name}: {words[field]}", reads[kind]


def _ask(words: str, read: Callable[[str], T]) -> T:
    while True:
        said = typer.prompt(words)
        try:
            return read(said.strip())
        except ValueError as error:
            typer.echo(f"  {error}")


def _choice(words: str, choices: tuple[str, ...], default: str | None) -> str:
    while True:
        said = typer.prompt(f"{words} ({', '.join(choices)})", default=default).strip().lower()
        if said in choices:
            return str(said)
        typer.echo(f"  one of {', '.join(choices)}")


def _whole(text: str, low: int, high: int) -> int:
    plain = text.removeprefix("-")
    if not (plain.isascii() and plain.isdecimal() and len(plain) < 20):
        raise ValueError("a whole number, such as 120")
    if not low <= int(text) <= high:
        raise ValueError(f"a whole number from {low} to {high}")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("a number, such as 0.5") from None
    if not abs(value) <= 1e15:
        raise ValueError("a number between -1e15 and 1e15")
    return value


def _listed(text: str) -> list[str]:
    """Values as in a CSV file: a value that contains a comma is in double quotes."""
    try:
        read = next(csv.reader([text], skipinitialspace=True, strict=True), [""])
    except csv.Error:
        read = [""]
    values = [each.strip() for each in read]
    if "" in values:
        raise ValueError("values separated by commas, such as north, south")
    if len(set(values)) != len(values):
        raise ValueError("each value once")
    return values


def _one_of(text: str, names: tuple[str, ...]) -> str:
    if names.count(text) != 1:
        raise ValueError(f"a column of the source: {', '.join(names)}")
    return text
