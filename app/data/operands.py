"""Checks of an expression against the card: the declared types of its input columns.

Arithmetic needs numbers, comparisons need equal types, and a look-up needs a column with few public
keys. Everything here is known from the card alone.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from app.data.expression_bounds import Bounds, bounds, leaves
from app.data.expressions import (
    LOOKUP_MAX,
    Arithmetic,
    Cases,
    ColumnValue,
    Expression,
    Fixed,
    Lookup,
    Test,
)
from app.nearest import did_you_mean


def _no_keys() -> Collection[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Operand:
    """A source column in the form that expressions use."""

    bounds: Bounds | None = None  # range of a number
    values: Collection[str] | None = None  # values of a category
    truth: bool = False
    keys: Callable[[], Collection[str]] = _no_keys  # keys that a look-up by it may have


Known = Mapping[str, Operand]


def check_uses(expression: Expression, known: Known) -> None:
    """Check that every column is used according to its type. Raises ValueError."""
    match expression:
        case ColumnValue():
            if expression.column not in _numbers(known):
                near = "" if expression.column in known else did_you_mean(expression.column, known)
                raise ValueError(f"arithmetic needs declared integer and number columns{near}")
        case Arithmetic():
            for part in expression.parts:
                check_uses(part, known)
        case Cases():
            for branch in expression.branches:
                for test in branch.when:
                    _check_test(test, known.get(test.column, Operand()))
                check_uses(branch.then, known)
            if expression.otherwise is not None:
                check_uses(expression.otherwise, known)
        case Lookup():
            keys = set(known.get(expression.column, Operand()).keys())
            if not {key for key, _ in expression.table} <= keys:
                raise ValueError(
                    "a lookup needs a declared category, boolean or integer column of at most "
                    f"{LOOKUP_MAX} values, and its keys must be among them"
                )
        case Fixed():
            pass


def check_number(expression: Expression, known: Known) -> None:
    """Check for a number within the range in which engines agree. Raises ValueError."""
    bounds(expression, _numbers(known))


def check_truths(expression: Expression) -> None:
    if not all(type(leaf) is bool for leaf in leaves(expression)):
        raise ValueError(
            "a derived boolean may use only true and false, a derived category only texts"
        )


def check_texts(expression: Expression, values: Collection[str]) -> None:
    labels = leaves(expression)
    if not all(type(leaf) is str for leaf in labels):
        raise ValueError(
            "a derived boolean may use only true and false, a derived category only texts"
        )
    if not set(labels) <= set(values):
        raise ValueError("a derived category may use only its declared values")


def _check_test(test: Test, column: Operand) -> None:
    value, alike = test.value, test.sign in ("==", "!=")
    fits = (
        (column.bounds is not None and type(value) is float)
        or (column.truth and alike and type(value) is bool)
        or (column.values is not None and alike and type(value) is str and value in column.values)
    )
    if not fits:
        raise ValueError(
            "a comparison needs a declared number and a number, or, with == or !=, a category "
            "and one of its values or a boolean and true or false"
        )


def _numbers(known: Known) -> dict[str, Bounds]:
    return {name: operand.bounds for name, operand in known.items() if operand.bounds is not None}
