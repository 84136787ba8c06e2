"""Check that a card fits a file, by names and types alone, never by values."""

from typing import Protocol

from app.data.card import Card, ColumnPerson
from app.data.columns import Column
from app.errors import FieldError, Invalid
from app.nearest import did_you_mean

_WHOLE = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
}  # fmt: skip
_TEXT = {"VARCHAR"}
_DAYS = {
    "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip

# Stored types, without their sizes, that fit each declared type. A column of doubles does not fit
# `integer`: whether it does would depend on its values.
_FITS: dict[str, set[str]] = {
    "integer": _WHOLE | _TEXT | {"DECIMAL"},
    "number": _WHOLE | _TEXT | {"DECIMAL", "FLOAT", "DOUBLE"},
    "category": _WHOLE | _TEXT | {"BOOLEAN", "ENUM", "UUID"},
    "boolean": _WHOLE | _TEXT | {"BOOLEAN"},
    "date": _DAYS | _TEXT,
    "text": _WHOLE | _TEXT | {"BOOLEAN", "ENUM", "UUID"},
}
# No floats: -0.0 and 0.0 would be two persons.
_IDENTIFIES = _WHOLE | _TEXT | {"DECIMAL", "ENUM", "UUID", "BOOLEAN"} | _DAYS


class Described(Protocol):
    """Columns of a source and their types."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def types(self) -> tuple[str, ...]: ...

    def position(self, name: str) -> int | None: ...


def check_fit(card: Card, table: Described, *, parsed: bool = True) -> None:
    """Raise Invalid, naming every column that is absent or has an unfit type.

    `parsed`: numbers and days are read from texts, as in files. A table has its own types.
    """
    broken = []
    for i, column in enumerate(card.columns):
        position = table.position(column.name)
        if not column.sourced:
            if position is not None:
                rule = "a name that no column of the source has: this column is not read from it"
                broken.append(FieldError(f"/columns/{i}/name", rule))
        elif position is None:
            broken.append(FieldError(f"/columns/{i}/name", _absent(column.name, table.names)))
        elif not _fits(column, table.types[position], parsed=parsed):
            rule = f"the source's column cannot be read as {column.type}"
            broken.append(FieldError(f"/columns/{i}/type", rule))
    if isinstance(card.person, ColumnPerson):
        position = table.position(card.person.column)
        if position is None or _plain(table.types[position]) not in _IDENTIFIES:
            rule = "a column of the source that holds text, whole numbers or dates"
            broken.append(FieldError("/person/column", rule))
    if broken:
        first = broken[0]
        detail = f"The card does not fit the source: {first.pointer}: {first.rule}"
        raise Invalid(detail, *broken)


def _absent(name: str, names: tuple[str, ...]) -> str:
    """Only a near name is shown: a file without names has values in their place."""
    if name in names:
        return f"several columns of the source are called '{name}'"
    return f"the source has no column '{name}'{did_you_mean(name, names)}"


def _fits(column: Column, stored: str, *, parsed: bool) -> bool:
    if not parsed and stored in _TEXT and column.type in ("integer", "number", "date"):
        return False
    if column.type == "integer" and stored.startswith("DECIMAL") and not stored.endswith(",0)"):
        return False
    return _plain(stored) in _FITS[column.type]


def _plain(stored: str) -> str:
    """DECIMAL(9,2) -> DECIMAL; a list such as INTEGER[] stays, and fits nothing."""
    return stored if stored.endswith("]") else stored.partition("(")[0]
