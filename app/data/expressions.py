"""Declared derived columns: what a column is computed from, row by row.

    {"column": "weight"}                        a declared number, as it is held
    {"value": 2.5}                              a number; in labels a text, true or false
    {"add": [...]}  {"multiply": [...]}         two or more
    {"subtract": [a, b]}  {"divide": [a, b]}
    {"case": [{"when": [{"column", "op", "value"}, ...], "then": ...}, ...], "else": ...}
    {"lookup": {"column": "region", "map": {"north": 1.5, ...}}}      a public table, by its key,
                                 which a registration may also name as a file (`public_tables.py`)

A row's value depends on that row alone, so a derived column changes no sensitivity, and a look-up
multiplies no person: a key has one line. What is missing makes what is computed of it missing, and
so do a division by zero and a key that is not in the table; `else` left out is missing too.

Numbers are doubles and every step rounds as IEEE 754 says, in every engine. Some engines raise an
error where others give infinity or a number too small to be one, and an error that depends on a
value would tell of it: so `bounds` works out, from the card alone, how large each step can become
and how near to zero, and a card is refused if any could leave the range in which all agree.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

DEPTH_MAX = 8
PARTS_MAX = 64
LOOKUP_MAX = 100_000
FAR, NEAR = 1e100, 1e-100
ROUNDING = 2.0**-54  # nothing that two doubles differ by is smaller, as a share of the smaller one

Label = str | bool
Value = float | Label
Sign = Literal["==", "!=", "<", "<=", ">", ">="]
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Of:
    column: str


@dataclass(frozen=True, slots=True)
class Fixed:
    value: Value


@dataclass(frozen=True, slots=True)
class Arithmetic:
    sign: Literal["add", "subtract", "multiply", "divide"]
    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Test:
    column: str
    sign: Sign
    value: Value


@dataclass(frozen=True, slots=True)
class Branch:
    when: tuple[Test, ...]  # all of them
    then: "Expression"


@dataclass(frozen=True, slots=True)
class Cases:
    branches: tuple[Branch, ...]
    otherwise: "Expression | None"


@dataclass(frozen=True, slots=True)
class Lookup:
    column: str
    table: tuple[tuple[str, Value], ...]  # by the key's text


Expression = Of | Fixed | Arithmetic | Cases | Lookup


# Reading and writing


def parse_expression(said: object, depth: int = 0) -> Expression:
    """From JSON. Raises ValueError, saying what is expected."""
    if isinstance(said, Of | Fixed | Arithmetic | Cases | Lookup):
        return said
    if depth > DEPTH_MAX:
        raise ValueError(f"an expression is at most {DEPTH_MAX} deep")
    if not isinstance(said, dict):
        raise ValueError("an expression is an object such as {'column': ...} or {'add': [...]}")
    match set(said):
        case s if s == {"column"} and isinstance(said["column"], str):
            return Of(said["column"])
        case s if s == {"value"}:
            return Fixed(_value(said["value"]))
        case s if len(s) == 1 and s <= {"add", "subtract", "multiply", "divide"}:
            (sign,) = s
            return _arithmetic(sign, said[sign], depth)
        case s if "case" in s and s <= {"case", "else"}:
            return _cases(said, depth)
        case s if s == {"lookup"}:
            return _lookup(said["lookup"])
    raise ValueError(
        "an expression is one of {column}, {value}, {add}, {subtract}, {multiply}, {divide}, "
        "{case, else} and {lookup}"
    )


def _value(said: object) -> Value:
    if isinstance(said, bool | str):
        return said
    if isinstance(said, int | float) and abs(said) <= 1e15:
        if said != 0 and abs(said) < 1e-15:
            raise ValueError("a number is zero or at least 1e-15 away from it")
        return float(said)
    raise ValueError("a value is a number up to 1e15, a text, true or false")


def _arithmetic(sign: Any, said: object, depth: int) -> Arithmetic:
    two = sign in ("subtract", "divide")
    if not isinstance(said, list) or len(said) < 2 or len(said) > (2 if two else PARTS_MAX):
        raise ValueError(f"{sign} takes a list of two expressions" + ("" if two else " or more"))
    return Arithmetic(sign, tuple(parse_expression(part, depth + 1) for part in said))


def _cases(said: dict[str, Any], depth: int) -> Cases:
    listed = said["case"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= PARTS_MAX:
        raise ValueError("case is a list of {when, then}")
    branches = []
    for each in listed:
        if not isinstance(each, dict) or set(each) != {"when", "then"}:
            raise ValueError("case is a list of {when, then}")
        tests = each["when"] if isinstance(each["when"], list) else [each["when"]]
        if not 1 <= len(tests) <= PARTS_MAX:
            raise ValueError("when is one comparison or a list of them")
        branches.append(Branch(tuple(map(_test, tests)), parse_expression(each["then"], depth + 1)))
    otherwise = said.get("else")
    return Cases(
        tuple(branches), None if otherwise is None else parse_expression(otherwise, depth + 1)
    )


def _test(said: object) -> Test:
    if not isinstance(said, dict) or set(said) != {"column", "op", "value"}:
        raise ValueError("a comparison is {column, op, value}")
    named = isinstance(said["column"], str) and isinstance(said["op"], str)
    if not named or said["op"] not in SIGNS:
        raise ValueError(f"a comparison's op is one of {', '.join(SIGNS)}")
    return Test(said["column"], said["op"], _value(said["value"]))


def _lookup(said: object) -> Lookup:
    if not isinstance(said, dict) or set(said) != {"column", "map"}:
        raise ValueError("a lookup is {column, map}")
    table = said["map"]
    if not isinstance(said["column"], str) or not isinstance(table, dict):
        raise ValueError("a lookup is {column, map}, and its map an object")
    if not 1 <= len(table) <= LOOKUP_MAX:
        raise ValueError(f"a lookup has 1 to {LOOKUP_MAX} keys")
    return Lookup(said["column"], tuple((str(key), _value(each)) for key, each in table.items()))


def written_expression(expression: Expression) -> dict[str, Any]:
    """As it was declared."""
    match expression:
        case Of():
            return {"column": expression.column}
        case Fixed():
            return {"value": expression.value}
        case Arithmetic():
            return {expression.sign: [written_expression(part) for part in expression.parts]}
        case Cases():
            branches = [
                {
                    "when": [
                        {"column": t.column, "op": t.sign, "value": t.value} for t in each.when
                    ],
                    "then": written_expression(each.then),
                }
                for each in expression.branches
            ]
            rest = expression.otherwise
            return {"case": branches} | ({} if rest is None else {"else": written_expression(rest)})
        case Lookup():
            return {"lookup": {"column": expression.column, "map": dict(expression.table)}}


# Meaning


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """Of one row, whose values are as they are held; None for what is missing."""
    match expression:
        case Of():
            value = row[expression.column]
            return None if value is None else float(value)
        case Fixed():
            return expression.value
        case Arithmetic():
            return _computed(expression, row)
        case Cases():
            for branch in expression.branches:
                if all(_meets(test, row) for test in branch.when):
                    return evaluate(branch.then, row)
            rest = expression.otherwise
            return None if rest is None else evaluate(rest, row)
        case Lookup():
            key = row[expression.column]
            return None if key is None else dict(expression.table).get(key_text(key))


def _computed(expression: Arithmetic, row: Mapping[str, Any]) -> float | None:
    values = [evaluate(part, row) for part in expression.parts]
    if None in values:
        return None
    result: float = values[0]
    for value in values[1:]:
        match expression.sign:
            case "add":
                result += value
            case "subtract":
                result -= value
            case "multiply":
                result *= value
            case "divide":
                if value == 0:
                    return None
                result /= value
    return result


def _meets(test: Test, row: Mapping[str, Any]) -> bool:
    value = row[test.column]
    return value is not None and SIGNS[test.sign](value, test.value)


def key_text(key: object) -> str:
    """What a key is called in a look-up's table."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def columns_of(expression: Expression) -> set[str]:
    """The columns that it is computed from."""
    match expression:
        case Of() | Lookup():
            return {expression.column}
        case Fixed():
            return set()
        case Arithmetic():
            return set().union(*map(columns_of, expression.parts))
        case Cases():
            parts = [each.then for each in expression.branches]
            parts += [] if expression.otherwise is None else [expression.otherwise]
            tested = {test.column for each in expression.branches for test in each.when}
            return tested.union(*map(columns_of, parts))


# What a card can say of it


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which numbers a result lies; and of those that are not zero, how near to it."""

    low: float
    high: float
    near: float

    @property
    def size(self) -> float:
        return max(abs(self.low), abs(self.high))


def leaves(expression: Expression) -> list[Label]:
    """The texts and truths that it can give. Raises ValueError if it gives a number too."""
    match expression:
        case Fixed() if isinstance(expression.value, str | bool):
            return [expression.value]
        case Cases():
            parts = [each.then for each in expression.branches]
            parts += [] if expression.otherwise is None else [expression.otherwise]
            return [leaf for part in parts for leaf in leaves(part)]
        case Lookup():
            found = [value for _, value in expression.table if isinstance(value, str | bool)]
            if len(found) == len(expression.table):
                return found
    raise ValueError("a derived category or boolean is made of case, lookup and value")


def bounds(expression: Expression, columns: Mapping[str, Bounds]) -> Bounds:
    """Of the number it gives. Raises ValueError where that could leave the range all agree on."""
    match expression:
        case Of():
            if expression.column not in columns:
                raise ValueError("arithmetic is of declared integer and number columns")
            return columns[expression.column]
        case Fixed():
            return _of_values([expression.value])
        case Lookup():
            return _of_values([value for _, value in expression.table])
        case Cases():
            parts = [bounds(each.then, columns) for each in expression.branches]
            if expression.otherwise is not None:
                parts.append(bounds(expression.otherwise, columns))
            return _hull(parts)
        case Arithmetic():
            result, *others = (bounds(part, columns) for part in expression.parts)
            for other in others:
                result = _held(_combined(expression.sign, result, other))
            return result


def _of_values(values: list[Value]) -> Bounds:
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) < len(values):
        raise ValueError("a derived number is made of numbers")
    near = [abs(number) for number in numbers if number != 0]
    return Bounds(min(numbers), max(numbers), min(near, default=1.0))


def _hull(parts: list[Bounds]) -> Bounds:
    return Bounds(
        min(part.low for part in parts),
        max(part.high for part in parts),
        min(part.near for part in parts),
    )


def _combined(sign: str, one: Bounds, other: Bounds) -> Bounds:
    match sign:
        case "add":
            near = min(one.near, other.near) * ROUNDING
            return Bounds(one.low + other.low, one.high + other.high, near)
        case "subtract":
            near = min(one.near, other.near) * ROUNDING
            return Bounds(one.low - other.high, one.high - other.low, near)
        case "multiply":
            corners = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
            return Bounds(min(corners), max(corners), one.near * other.near / 2)
        case _:
            size = one.size / other.near * 2
            return Bounds(-size, size, one.near / max(other.size, other.near) / 2)


def _held(found: Bounds) -> Bounds:
    if not (math.isfinite(found.size) and found.size <= FAR and found.near >= NEAR):
        raise ValueError("a step of the expression could be too large, or too near to zero")
    return found
