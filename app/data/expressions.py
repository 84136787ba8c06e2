"""Derived columns: expressions that compute a column row by row.

    {"column": "weight"}                        a declared number, as stored
    {"value": 2.5}                              a number; in labels a text, true or false
    {"add": [...]}  {"multiply": [...]}         two or more
    {"subtract": [a, b]}  {"divide": [a, b]}
    {"case": [{"when": [{"column", "op", "value"}, ...], "then": ...}, ...], "else": ...}
    {"lookup": {"column": "region", "map": {"north": 1.5, ...}}}      a public table, by its key,
                                 which a registration may also name as a file (`public_tables.py`)

A row's value depends on that row alone, so a derived column changes no sensitivity. A look-up
duplicates no person: a key has one line. A missing input makes the result missing, and so do a
division by zero and a key that is not in the table; without `else` the default is missing too.

Numbers are doubles and every step rounds by IEEE 754, in every engine. Some engines raise an error
where others give infinity or a subnormal number, and an error that depends on a value would leak
it. So `bounds` computes, from the card alone, how large each step can become and how near to zero.
A card is refused if any step could leave the range in which all engines agree.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

DEPTH_MAX = 8
PARTS_MAX = 64
LOOKUP_MAX = 100_000

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
class ColumnValue:
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
    when: tuple[Test, ...]  # all of them must hold
    then: "Expression"


@dataclass(frozen=True, slots=True)
class Cases:
    branches: tuple[Branch, ...]
    otherwise: "Expression | None"


@dataclass(frozen=True, slots=True)
class Lookup:
    column: str
    table: tuple[tuple[str, Value], ...]  # by the key's text


Expression = ColumnValue | Fixed | Arithmetic | Cases | Lookup


# Reading and writing


def parse_expression(sent: object, depth: int = 0) -> Expression:
    """Parse an expression from JSON. Raises ValueError with the expected form."""
    if isinstance(sent, ColumnValue | Fixed | Arithmetic | Cases | Lookup):
        return sent
    if depth > DEPTH_MAX:
        raise ValueError(f"an expression may be at most {DEPTH_MAX} levels deep")
    if not isinstance(sent, dict):
        raise ValueError("an expression must be an object such as {'column': ...} or {'add': ...}")
    match set(sent):
        case s if s == {"column"} and isinstance(sent["column"], str):
            return ColumnValue(sent["column"])
        case s if s == {"value"}:
            return Fixed(_value(sent["value"]))
        case s if len(s) == 1 and s <= {"add", "subtract", "multiply", "divide"}:
            (sign,) = s
            return _arithmetic(sign, sent[sign], depth)
        case s if "case" in s and s <= {"case", "else"}:
            return _cases(sent, depth)
        case s if s == {"lookup"}:
            return _lookup(sent["lookup"])
    raise ValueError(
        "an expression must be one of {column}, {value}, {add}, {subtract}, {multiply}, {divide}, "
        "{case, else} and {lookup}"
    )


def _value(sent: object) -> Value:
    if isinstance(sent, bool | str):
        return sent
    if isinstance(sent, int | float) and abs(sent) <= 1e15:
        if sent != 0 and abs(sent) < 1e-15:
            raise ValueError("a number must be zero or at least 1e-15 away from it")
        return float(sent)
    raise ValueError("a value must be a number up to 1e15, a text, true or false")


def _arithmetic(sign: Any, sent: object, depth: int) -> Arithmetic:
    two = sign in ("subtract", "divide")
    if not isinstance(sent, list) or len(sent) < 2 or len(sent) > (2 if two else PARTS_MAX):
        raise ValueError(f"{sign} takes a list of two expressions" + ("" if two else " or more"))
    return Arithmetic(sign, tuple(parse_expression(part, depth + 1) for part in sent))


def _cases(sent: dict[str, Any], depth: int) -> Cases:
    listed = sent["case"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= PARTS_MAX:
        raise ValueError("case must be a list of {when, then}")
    branches = []
    for case in listed:
        if not isinstance(case, dict) or set(case) != {"when", "then"}:
            raise ValueError("case must be a list of {when, then}")
        tests = case["when"] if isinstance(case["when"], list) else [case["when"]]
        if not 1 <= len(tests) <= PARTS_MAX:
            raise ValueError("when must be one comparison or a list of them")
        branches.append(Branch(tuple(map(_test, tests)), parse_expression(case["then"], depth + 1)))
    otherwise = sent.get("else")
    return Cases(
        tuple(branches), None if otherwise is None else parse_expression(otherwise, depth + 1)
    )


def _test(sent: object) -> Test:
    if not isinstance(sent, dict) or set(sent) != {"column", "op", "value"}:
        raise ValueError("a comparison must be {column, op, value}")
    named = isinstance(sent["column"], str) and isinstance(sent["op"], str)
    if not named or sent["op"] not in SIGNS:
        raise ValueError(f"a comparison's op must be one of {', '.join(SIGNS)}")
    return Test(sent["column"], sent["op"], _value(sent["value"]))


def _lookup(sent: object) -> Lookup:
    if not isinstance(sent, dict) or set(sent) != {"column", "map"}:
        raise ValueError("a lookup must be {column, map}")
    table = sent["map"]
    if not isinstance(sent["column"], str) or not isinstance(table, dict):
        raise ValueError("a lookup must be {column, map}, and its map an object")
    if not 1 <= len(table) <= LOOKUP_MAX:
        raise ValueError(f"a lookup must have 1 to {LOOKUP_MAX} keys")
    return Lookup(sent["column"], tuple((str(key), _value(value)) for key, value in table.items()))


def written_expression(expression: Expression) -> dict[str, Any]:
    """The JSON form of the declaration."""
    match expression:
        case ColumnValue():
            return {"column": expression.column}
        case Fixed():
            return {"value": expression.value}
        case Arithmetic():
            return {expression.sign: [written_expression(part) for part in expression.parts]}
        case Cases():
            branches = [
                {
                    "when": [
                        {"column": t.column, "op": t.sign, "value": t.value} for t in branch.when
                    ],
                    "then": written_expression(branch.then),
                }
                for branch in expression.branches
            ]
            rest = expression.otherwise
            return {"case": branches} | ({} if rest is None else {"else": written_expression(rest)})
        case Lookup():
            return {"lookup": {"column": expression.column, "map": dict(expression.table)}}


# Evaluation


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """Evaluate for one row of stored values; None is missing."""
    match expression:
        case ColumnValue():
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
    """Text of a key in a look-up's table."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def columns_of(expression: Expression) -> set[str]:
    """The columns that the expression uses."""
    match expression:
        case ColumnValue() | Lookup():
            return {expression.column}
        case Fixed():
            return set()
        case Arithmetic():
            return set().union(*map(columns_of, expression.parts))
        case Cases():
            parts = [branch.then for branch in expression.branches]
            parts += [] if expression.otherwise is None else [expression.otherwise]
            tested = {test.column for branch in expression.branches for test in branch.when}
            return tested.union(*map(columns_of, parts))


# Checks against the card
