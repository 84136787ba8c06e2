"""Translation of WHERE to a filter.

SQL keeps the rows for which a condition is true. With a missing value a condition is neither true
nor false, and its NOT is not true either. A filter is true or false (`queries/filters.py`). So NOT
is pushed inwards, to the comparisons. Then AND and OR of the rest are true exactly where those of
SQL are. An inverted comparison (`<` for NOT `>=`) is false for a missing value, where SQL's is not
true. A comparison that cannot be inverted is combined with "is not missing".
"""

import math
import re
from typing import Any

from sqlglot import exp

from app.planning.sql.text import SqlText

COLUMN = "a column of the dataset"
LITERAL = "a literal: a number, a 'text', DATE '...', TRUE or FALSE"
CONDITION = (
    "a comparison of a column with a literal (=, <>, <, <=, >, >=, IN, BETWEEN, IS NULL), "
    "or several of them with AND, OR and NOT"
)
DIGITS_MAX = 300  # as in JSON
_WHOLE = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

FilterJson = dict[str, Any]


class Conditions:
    """Builds a filter, and records the position of each of its members in the text."""

    def __init__(self, text: SqlText, places: dict[str, int]) -> None:
        self._text = text
        self._places = places

    def filter(self, node: exp.Expr, at: str, *, negated: bool = False) -> FilterJson:
        """The filter that holds where the condition is true, or where its NOT is."""
        while isinstance(node, exp.Paren | exp.Not):
            self._text.must_have_only(node, "this")
            negated ^= isinstance(node, exp.Not)
            node = node.this
        self._places[at] = self._text.start(node)
        match node:
            case exp.And() | exp.Or():
                every = isinstance(node, exp.And) is not negated
                return self._parts(node, at, "all" if every else "any", negated)
            case exp.Between():
                return self._between(node, at, negated)
            case exp.In():
                return self._in(node, at, negated)
            case exp.Is():
                return self._is_null(node, at, negated)
            case _ if type(node) in _SIGNS:
                return self._compared(node, at, negated)
            case _:
                raise self._text.refused(node, CONDITION)

    def _parts(self, node: exp.Expr, at: str, member: str, negated: bool) -> FilterJson:
        """One list for a chain of the same operator."""
        kind, parts = type(node), []
        while isinstance(node, kind):
            self._text.must_have_only(node, "this", "expression")
            parts.append(node.expression)
            node = node.this
        parts.append(node)
        parts.reverse()
        return {
            member: [
                self.filter(part, f"{at}/{member}/{i}", negated=negated)
                for i, part in enumerate(parts)
            ]
        }

    def _compared(self, node: exp.Expr, at: str, negated: bool) -> FilterJson:
        self._text.must_have_only(node, "this", "expression")
        column, literal, sign = node.this, node.expression, _SIGNS[type(node)]
        if not isinstance(column, exp.Column) and isinstance(literal, exp.Column):
            column, literal, sign = literal, column, _MIRRORED[sign]
        return {
            "column": self._column(column, node, at),
            "op": _NEGATED[sign] if negated else sign,
            "value": self._literal(literal, f"{at}/value"),
        }

    def _between(self, node: exp.Between, at: str, negated: bool) -> FilterJson:
        self._text.must_have_only(node, "this", "low", "high")
        name = self._column(node.this, node, at)
        ends = node.args["low"], node.args["high"]
        if not negated:
            values = [self._literal(end, f"{at}/value/{i}") for i, end in enumerate(ends)]
            return {"column": name, "op": "between", "value": values}
        parts = []
        for i, (sign, end) in enumerate(zip(("<", ">"), ends, strict=True)):
            value = self._literal(end, f"{at}/any/{i}/value")
            parts.append({"column": name, "op": sign, "value": value})
        return {"any": parts}

    def _in(self, node: exp.In, at: str, negated: bool) -> FilterJson:
        self._text.must_have_only(node, "this", "expressions", rule="a list of literals")
        name = self._column(node.this, node, at)
        inside = f"{at}/all/0/not" if negated else at
        values = [
            self._literal(item, f"{inside}/value/{i}") for i, item in enumerate(node.expressions)
        ]
        if not values:
            raise self._text.refused(node, "a list of literals")
        among = {"column": name, "op": "in", "value": values}
        there = {"column": name, "op": "is_null", "value": False}
        return {"all": [{"not": among}, there]} if negated else among

    def _is_null(self, node: exp.Is, at: str, negated: bool) -> FilterJson:
        self._text.must_have_only(node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise self._text.refused(node, "IS NULL or IS NOT NULL")
        missing = {"column": self._column(node.this, node, at), "op": "is_null"}
        return {**missing, "value": False} if negated else missing

    def _column(self, node: object, within: exp.Expr, at: str) -> str:
        name = self._text.column(node, COLUMN, within)
        assert isinstance(node, exp.Expr)
        self._places[f"{at}/column"] = self._text.start(node)
        return name

    def _literal(self, node: exp.Expr, at: str) -> bool | int | float | str:
        self._places[at] = self._text.start(node)
        match node:
            case exp.Boolean():
                return bool(node.this)
            case exp.Literal() if node.is_string:
                return str(node.this)
            case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
                self._text.must_have_only(node, "this", "to", rule=LITERAL)
                if not node.to.is_type(exp.DataType.Type.DATE):
                    raise self._text.refused(node, LITERAL)
                return str(node.this.this)
            case _:
                return number(self._text, node, LITERAL, node)


def number(text: SqlText, node: object, rule: str, within: exp.Expr) -> int | float:
    """A number in the form of JSON."""
    bare = node.this if isinstance(node, exp.Neg) else node
    where = node if isinstance(node, exp.Expr) else within
    if not isinstance(bare, exp.Literal) or bare.is_string:
        raise text.refused(where, rule)
    written = str(bare.this)
    if len(written) > DIGITS_MAX or not _DECIMAL.fullmatch(written):
        raise text.refused(where, f"a number of at most {DIGITS_MAX} digits")
    value: int | float = int(written) if _WHOLE.fullmatch(written) else float(written)
    if not math.isfinite(value):
        raise text.refused(where, "a number that fits a double")
    return -value if isinstance(node, exp.Neg) else value
