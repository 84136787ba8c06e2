"""Public tables of a card: a lookup that names a file gets the map in that file.

    {"lookup": {"column": "zip", "table": {"path": "regions.csv", "key": "zip", "value": "region"}}}

becomes `{"lookup": {"column": "zip", "map": {...}}}` before a card is validated. So the file is
read once, and its content is part of the public card; later changes of the file have no effect. The
column's declaration decides how keys and values are read. Keys that the column cannot have are left
out. A line without a value leaves its key missing. A key that appears twice is refused, because a
lookup must not multiply rows.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.data.columns import BooleanColumn, Column, IntegerColumn, lookup_keys
from app.data.expressions import DEPTH_MAX, LOOKUP_MAX
from app.data.inspection import PrivateFiles
from app.errors import Invalid
from app.ports.engines import PublicTables, TableReader

TABLES_MAX = 16  # in one card
NAMED = ("path", "key", "value")
_ONE_COLUMN: TypeAdapter[Any] = TypeAdapter(Column)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_TRUTHS = {
    **dict.fromkeys(("true", "t", "1", "yes"), True),
    **dict.fromkeys(("false", "f", "0", "no"), False),
}


def with_tables(
    sent: Any, tables: PublicTables, private: Callable[[], PrivateFiles], source: str | None = None
) -> Any:
    """The registration, with a map in place of every table.

    Anything that is no card is left for the validation that follows. `private`: files of other
    datasets. `source`: path of this dataset's rows, if the registration does not state it. None of
    these files may be a public table. Raises Invalid, naming the field, for an unusable table.
    """
    columns = sent.get("columns") if isinstance(sent, dict) else None
    if not isinstance(columns, list):
        return sent
    own = source or _source_path(sent)

    def beside() -> TableReader:
        others = private()
        paths = others.paths if own is None else (*others.paths, own)
        return tables.beside(PrivateFiles(paths, others.digests))

    filled = _Filled(beside, columns)
    changed = [filled.column(each, f"/columns/{i}") for i, each in enumerate(columns)]
    return {**sent, "columns": changed} if filled.read else sent


def _source_path(sent: dict[str, Any]) -> str | None:
    source = sent.get("source")
    path = source.get("path") if isinstance(source, dict) else None
    return path if isinstance(path, str) else None


class _Filled:
    def __init__(self, reader: Callable[[], TableReader], columns: list[Any]) -> None:
        self.read = 0  # number of tables read
        self._lines = 0
        self._reader = cache(reader)  # called only if there is a table
        named = (each for each in columns if isinstance(each, dict))
        self._declared = {str(each.get("name")): each for each in named}

    def column(self, column: Any, at: str) -> Any:
        if not isinstance(column, dict) or "derived" not in column:
            return column
        derived = self._expression(column["derived"], f"{at}/derived", column, 0)
        return {**column, "derived": derived}

    def _expression(self, expression: Any, at: str, column: dict[str, Any], depth: int) -> Any:
        """Fill the tables of an expression; the validation refuses anything malformed."""
        if not isinstance(expression, dict) or depth > DEPTH_MAX:
            return expression

        def part(name: str | int, item: Any) -> Any:
            return self._expression(item, f"{at}/{name}", column, depth + 1)

        filled = dict(expression)
        for sign in ("add", "subtract", "multiply", "divide"):
            if isinstance(expression.get(sign), list):
                filled[sign] = [
                    part(f"{sign}/{i}", item) for i, item in enumerate(expression[sign])
                ]
        if isinstance(expression.get("case"), list):
            filled["case"] = [
                {**item, "then": part(f"case/{i}/then", item["then"])}
                if isinstance(item, dict) and "then" in item
                else item
                for i, item in enumerate(expression["case"])
            ]
        if "else" in expression:
            filled["else"] = part("else", expression["else"])
        lookup = expression.get("lookup")
        if isinstance(lookup, dict) and "table" in lookup:
            filled["lookup"] = self._lookup(lookup, f"{at}/lookup", column)
        return filled

    def _lookup(self, lookup: dict[str, Any], at: str, column: dict[str, Any]) -> dict[str, Any]:
        table = lookup["table"]
        if set(lookup) != {"column", "table"}:
            raise Invalid.field(at, "a lookup is {column, map} or {column, table}")
        if not isinstance(table, dict) or set(table) != set(NAMED):
            raise Invalid.field(f"{at}/table", "a table is {path, key, value}")
        for name in NAMED:
            if not isinstance(table[name], str) or not 0 < len(table[name]) <= 1000:
                raise Invalid.field(f"{at}/table/{name}", "a text of at most 1000 characters")
        self.read += 1
        if self.read > TABLES_MAX:
            raise Invalid.field(f"{at}/table", f"a card has at most {TABLES_MAX} tables")
        lines = self._reader().lines(*(table[name] for name in NAMED), at=f"{at}/table")
        mapping = self._map(lines, f"{at}/table", self._keys(lookup["column"]), column)
        self._lines += len(mapping)
        if self._lines > LOOKUP_MAX:
            rule = f"at most {LOOKUP_MAX} keys of columns in all tables of a card together"
            raise Invalid.field(f"{at}/table/path", rule)
        return {"column": lookup["column"], "map": mapping}

    def _keys(self, name: Any) -> Column | None:
        """Column of the keys; None if it is not valid, which the validation will report."""
        try:
            found: Column = _ONE_COLUMN.validate_python(self._declared.get(str(name)))
        except ValidationError:
            return None
        return found

    def _map(
        self, lines: list[tuple[Any, Any]], at: str, keys: Column | None, column: dict[str, Any]
    ) -> dict[str, Any]:
        known = set(lookup_keys(keys))
        seen: set[str] = set()
        mapping: dict[str, Any] = {}
        value_of = _reader(column)
        for key, value in lines:
            text = None if key is None else _key_text(key, keys)
            if text is None:
                raise Invalid.field(f"{at}/key", "a column with a key in every line")
            if text in seen:
                raise Invalid.field(f"{at}/key", "a column in which no key appears twice")
            seen.add(text)
            if text not in known or value is None:
                continue
            mapping[text] = value_of(value, f"{at}/value")
        if not mapping:
            rule = "a column with a key of the lookup's column that has a value"
            raise Invalid.field(f"{at}/key", rule)
        return mapping


def _key_text(key: Any, column: Column | None) -> str | None:
    """Key in the form of the lookup: integers and booleans may be written in several ways."""
    text = _text(key)
    if isinstance(column, IntegerColumn) and _WHOLE.fullmatch(text):
        return str(int(text.split(".")[0]))
    if isinstance(column, BooleanColumn) and text.lower() in _TRUTHS:
        return str(_TRUTHS[text.lower()]).lower()
    return text or None


def _reader(column: Mapping[str, Any]) -> Callable[[Any, str], Any]:
    """Parser of values for a column of this type."""

    def number(value: Any, at: str) -> float:
        text = _text(value)
        parsed = float(text) if len(text) <= 60 and _NUMBER.fullmatch(text) else math.nan
        if not abs(parsed) <= 1e15 or 0 < abs(parsed) < 1e-15:
            raise Invalid.field(
                at, "a column of numbers that are 0 or between 1e-15 and 1e15 in size"
            )
        return parsed

    def truth(value: Any, at: str) -> bool:
        text = _text(value).lower()
        if text not in _TRUTHS:
            raise Invalid.field(at, "a column of true and false, yes and no, or 1 and 0")
        return _TRUTHS[text]

    listed = column.get("values")
    known = {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else None

    def text(value: Any, at: str) -> str:
        parsed = _text(value)
        if known is not None and parsed not in known:
            raise Invalid.field(at, "a column of texts that are among the category's values")
        return parsed

    kinds: dict[Any, Callable[[Any, str], Any]] = {
        "integer": number,
        "number": number,
        "boolean": truth,
    }
    kind = column.get("type")
    return kinds.get(kind, text) if isinstance(kind, str) else text


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else str(value)
