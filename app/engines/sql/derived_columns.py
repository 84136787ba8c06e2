"""Derived columns as SQL over clean rows: the meaning of `data/expressions.py`, step by step.

A number enters as its integer steps, converted back to a double. Each step is one IEEE operation;
no engine fuses two of them. A division by zero gives NULL, which is a missing value.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Double, and_, case, cast, column, func, null
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    IntegerColumn,
    NumberColumn,
    lookup_keys,
)
from app.data.expressions import (
    Arithmetic,
    Cases,
    ColumnValue,
    Expression,
    Fixed,
    Lookup,
    Test,
    Value,
)
from app.engines.sql.conditions import condition_sql, stored_column
from app.engines.sql.dialects import constant, exact_double
from app.engines.sql.layout import Layout
from app.engines.sql.lists import Kind, among
from app.queries.tally import Compare

Element = ColumnElement[Any]
NO_CODE = -1  # stands for a key that a table lacks; no code has this value
NO_NUMBER = 1e300  # the same for numbers; no number of a table is as large


class ElementAt(FunctionElement[Any]):
    """Item of a list at an index from 1; NULL for a NULL index."""

    name = "element_at"
    inherit_cache = True


@compiles(ElementAt)
def _element_at(element: ElementAt, compiler: SQLCompiler, **options: Any) -> str:
    values, place = (compiler.process(part, **options) for part in element.clauses)
    return f"list_extract({values}, {place})"


@compiles(ElementAt, "postgresql")
def _element_at_postgresql(element: ElementAt, compiler: SQLCompiler, **options: Any) -> str:
    values, place = (compiler.process(part, **options) for part in element.clauses)
    return f"({values})[{place}]"


@compiles(ElementAt, "spark")
def _element_at_spark(element: ElementAt, compiler: SQLCompiler, **options: Any) -> str:
    values, place = (compiler.process(part, **options) for part in element.clauses)
    return f"element_at({values}, CAST({place} AS INTEGER))"


class Divided(FunctionElement[float]):
    """Quotient of two doubles. SQLAlchemy's own would return DECIMAL for some types."""

    name = "divided"
    type = Double()
    inherit_cache = True


@compiles(Divided)
def _divided(element: Divided, compiler: SQLCompiler, **options: Any) -> str:
    one, other = (compiler.process(part, **options) for part in element.clauses)
    return f"(({one}) / ({other}))"


def derived_value(derived: Column, layout: Layout) -> Element:
    """Value in the declared type, not clamped yet; for a category its code."""
    assert derived.derived is not None
    value = _Rendering(derived, layout).of(derived.derived)
    # An integer is the floor; it is clamped as a double first.
    return func.floor(value) if isinstance(derived, IntegerColumn) else value


class _Rendering:
    def __init__(self, derived: Column, layout: Layout) -> None:
        self._derived = derived
        self._layout = layout
        self._lists = 0

    def of(self, expression: Expression) -> Element:
        match expression:
            case ColumnValue():
                return self._number(expression.column)
            case Fixed():
                return self._fixed(expression.value)
            case Arithmetic():
                result, *others = (self.of(part) for part in expression.parts)
                for other in others:
                    result = _combined(expression.sign, result, other)
                return result
            case Cases():
                branches = [
                    (and_(*(self._test(test) for test in each.when)), self.of(each.then))
                    for each in expression.branches
                ]
                rest = expression.otherwise
                return case(*branches, else_=null() if rest is None else self.of(rest))
            case Lookup():
                return self._looked_up(expression)

    def _number(self, name: str) -> Element:
        declared = self._layout.column(name)
        assert isinstance(declared, IntegerColumn | NumberColumn), "the card was checked"
        steps: Element = cast(column(self._layout.steps(name), BigInteger()), Double())
        return steps * exact_double(2.0**-declared.grid_exponent)

    def _fixed(self, value: Value) -> Element:
        stored = self._stored(value)
        if isinstance(stored, bool):
            return constant(int(stored)) == constant(1)
        return exact_double(stored) if isinstance(stored, float) else constant(stored)

    def _test(self, test: Test) -> Element:
        return condition_sql(Compare(test.column, test.sign, test.value), self._layout)

    def _stored(self, value: Value) -> float | int | bool:
        """The value as the derived column stores it."""
        if isinstance(value, str):
            return self._layout.codes(self._derived.name)[value]
        return value

    def _looked_up(self, lookup: Lookup) -> Element:
        declared = self._layout.column(lookup.column)
        table = dict(lookup.table)
        keys = lookup_keys(declared)
        labels = isinstance(self._derived, CategoryColumn | BooleanColumn)
        kind: Kind = "whole" if labels else "double"
        # Not every driver binds a list with NULL in it.
        absent: float = NO_CODE if labels else NO_NUMBER
        values = [self._stored(table[key]) if key in table else absent for key in keys]
        self._lists += 1
        place = self._layout.value(self._derived.name)
        numbers = list(map(int, values)) if labels else values
        listed = among(self._layout.dialect, f"table_{place}_{self._lists}", kind, numbers)
        found = ElementAt(listed, self._place(declared, lookup.column))
        nothing = constant(NO_CODE) if labels else exact_double(NO_NUMBER)
        known = func.nullif(found, nothing)
        return known == constant(1) if isinstance(self._derived, BooleanColumn) else known

    def _place(self, declared: Column, name: str) -> Element:
        stored: Element = stored_column(self._layout, name)
        if isinstance(declared, BooleanColumn):
            return case((stored.is_(None), null()), (stored, constant(2)), else_=constant(1))
        low = declared.low if isinstance(declared, IntegerColumn) else 0
        return stored - constant(low - 1)


def _combined(sign: str, one: Element, other: Element) -> Element:
    match sign:
        case "add":
            return one + other
        case "subtract":
            return one - other
        case "multiply":
            return one * other
        case _:
            return Divided(one, func.nullif(other, exact_double(0.0)))
