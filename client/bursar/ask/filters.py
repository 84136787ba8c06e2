"""Filters: `col.age >= 18` is a condition on the column `age`.

Combine conditions with `&`, `|` and `~`, each in parentheses: Python's `and`, `or` and `not` cannot
be used, and neither can `18 <= col.age < 65`; write `col.age.between(18, 64)`.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from bursar.errors import BadQuestion

if TYPE_CHECKING:
    from bursar.bodies import GroupByEdges, GroupByKeys, Where

Scalar: TypeAlias = bool | int | float | str | Decimal | datetime.date
WireScalar: TypeAlias = bool | int | float | str


def wire_value(value: object) -> WireScalar:
    """A value as JSON has it. Dates become texts, and numpy's numbers become Python's."""
    if isinstance(value, (float, Decimal)) and not isfinite(value):
        raise BadQuestion(
            f"A filter cannot compare with {value}.",
            hint="Use a finite number; missing values are col.NAME.is_null().",
        )
    for plain_type in (bool, int, float, str):
        if isinstance(value, plain_type):
            return plain_type(value)  # a subclass, such as numpy's float, becomes a plain number
    if isinstance(value, datetime.datetime):
        raise BadQuestion("A filter compares days, not moments.", hint="Use value.date().")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Fraction):
        return float(value)
    item = getattr(value, "item", None)
    plain = item() if callable(item) and not getattr(value, "shape", ()) else None
    if isinstance(plain, (bool, int, float, str)):
        return wire_value(plain)
    raise BadQuestion(
        f"A filter cannot compare with a {type(value).__name__}.",
        hint="Use a number, a text, True or False, or a date.",
    )


@dataclass(frozen=True, eq=False)
class Condition:
    """A filter. `.body` is its JSON form, and `.columns` the columns that it reads."""

    body: "Where"
    columns: frozenset[str]

    def __and__(self, other: "Condition") -> "Condition":
        return _joined("all", self, other)

    def __or__(self, other: "Condition") -> "Condition":
        return _joined("any", self, other)

    def __invert__(self) -> "Condition":
        return Condition({"not": self.body}, self.columns)

    def __bool__(self) -> NoReturn:
        raise BadQuestion(
            "A condition is neither true nor false: it is a filter for the server.",
            hint="Combine conditions with & | ~ in parentheses, not with and, or, not.",
        )

    def __repr__(self) -> str:
        return text_of(self.body)


def _joined(word: str, left: Condition, right: object) -> Condition:
    if not isinstance(right, Condition):
        raise BadQuestion(
            f"A condition cannot be combined with a {type(right).__name__}.",
            hint="Put each comparison in parentheses: (col.age >= 18) & (col.region == 'north')",
        )
    parts = [part for side in (left.body, right.body) for part in _parts(word, side)]
    body: Where = {"all": parts} if word == "all" else {"any": parts}
    return Condition(body, left.columns | right.columns)


def _parts(word: str, body: "Where") -> list["Where"]:
    inner = body.get(word)
    return list(inner) if isinstance(inner, list) else [body]


class Column:
    """A column of a dataset, to compare with values and to group by."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def _compare(self, operator: str, value: object) -> Condition:
        if isinstance(value, Column):
            raise BadQuestion(
                f"{self.name} {operator} {value.name}: a filter compares a column with a value.",
                hint="Ask the owner for a derived column that compares the two.",
            )
        if value is None:
            raise BadQuestion(
                f"{self.name} {operator} None: missing values are never equal to anything.",
                hint=f"Use col.{self.name}.is_null() or ~col.{self.name}.is_null().",
            )
        body: Where = {"column": self.name, "op": operator, "value": wire_value(value)}  # type: ignore[typeddict-item]
        return Condition(body, frozenset({self.name}))

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return self._compare("==", value)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: Scalar) -> Condition:
        return self._compare("<", value)

    def __le__(self, value: Scalar) -> Condition:
        return self._compare("<=", value)

    def __gt__(self, value: Scalar) -> Condition:
        return self._compare(">", value)

    def __ge__(self, value: Scalar) -> Condition:
        return self._compare(">=", value)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise BadQuestion(
            f"The column {self.name} is neither true nor false.",
            hint=f"For a boolean column write col.{self.name} == True.",
        )

    def _needs_parentheses(self, _: object = None) -> NoReturn:
        raise BadQuestion(
            f"The column {self.name} was combined before it was compared.",
            hint="Put each comparison in parentheses: (col.age >= 18) & (col.region == 'north')",
        )

    __and__ = __rand__ = __or__ = __ror__ = _needs_parentheses

    def __invert__(self) -> NoReturn:
        self._needs_parentheses()

    def between(self, low: Scalar, high: Scalar) -> Condition:
        """Values from `low` to `high`, both included."""
        value = [wire_value(low), wire_value(high)]
        body: Where = {"column": self.name, "op": "between", "value": value}
        return Condition(body, frozenset({self.name}))

    def __contains__(self, value: object) -> NoReturn:
        raise BadQuestion(
            f"'in' does not work with the column {self.name}.",
            hint=f"For one value write col.{self.name} == {value!r}, for several .isin([...]).",
        )

    def isin(self, values: Iterable[Scalar]) -> Condition:
        """Values in a list."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise BadQuestion("isin takes a list.", hint=f"Write isin([{values!r:.60}]).")
        value = [wire_value(one) for one in values]
        body: Where = {"column": self.name, "op": "in", "value": value}
        return Condition(body, frozenset({self.name}))

    def is_null(self) -> Condition:
        """Missing values."""
        return Condition({"column": self.name, "op": "is_null"}, frozenset({self.name}))

    def edges(self, edges: Sequence[Scalar]) -> "GroupByEdges":
        """Groups of this column between edges, for `.by(...)`."""
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise BadQuestion("edges takes a list of values.", hint="edges([0, 18, 65])")
        return {"column": self.name, "edges": [wire_value(edge) for edge in edges]}

    def private_keys(self) -> "GroupByKeys":
        """Groups by the texts of this column, which are private; for `.by(...)` of a count."""
        return {"column": self.name, "keys": "private"}

    def __repr__(self) -> str:
        return f"col.{self.name}" if self.name.isidentifier() else f"col[{self.name!r}]"


class _Columns:
    """`col.age` or `col["age"]` names a column."""

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        return Column(name)

    def __getitem__(self, name: str) -> Column:
        return Column(name)


col = _Columns()


def text_of(body: "Where") -> str:
    """A filter as a person would write it."""
    match dict(body):
        case {"all": list(parts)}:
            return " & ".join(map(_inner, parts)) or "everything"
        case {"any": list(parts)}:
            return " | ".join(map(_inner, parts)) or "nothing"
        case {"not": part}:
            return f"~({text_of(part)})"  # type: ignore[arg-type]
        case {"column": name, "op": "is_null"}:
            return f"{name} is missing"
        case {"column": name, "op": "between", "value": [low, high]}:
            return f"{low!r} <= {name} <= {high!r}"
        case {"column": name, "op": operator, "value": value}:
            return f"{name} {operator} {value!r}"
    return repr(body)


def _inner(body: "Where") -> str:
    text = text_of(body)
    return f"({text})" if "all" in body or "any" in body else text
