"""Whether a card allows an expression: what is declared of the columns that it is computed from.

Arithmetic is of numbers, comparisons are of like with like, and a look-up is by a column whose keys
are public and few. Everything here is known from the card alone.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from app.data.expressions import (
    LOOKUP_MAX,
    Arithmetic,
    Bounds,
    Cases,
    Expression,
    Fixed,
    Lookup,
    Of,
    Test,
    bounds,
    leaves,
)
from app.nearest import did_you_mean


def _no_keys() -> Collection[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Operand:
    """A column of the source as expressions see it."""

    bounds: Bounds | None = None  # of a number
    values: Collection[str] | None = None  # of a category
    truth: bool = False
    keys: Callable[[], Collection[str]] = _no_keys  # that a look-up by it may have


Known = Mapping[str, Operand]


def check_uses(expression: Expression, known: Known) -> None:
    """Raises ValueError where a column is used for what it is not."""
    match expression:
        case Of():
            if expression.column not in _numbers(known):
                near = "" if expression.column in known else did_you_mean(expression.column, known)
                raise ValueError(f"arithmetic is of declared integer and number columns{near}")
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
                    "a lookup is by a declared category, boolean or integer column of at most "
                    f"{LOOKUP_MAX} values, and its keys are among them"
                )
        case Fixed():
            pass


def check_number(expression: Expression, known: Known) -> None:
    """Raises ValueError if it is no number, or could leave the range in which engines agree."""
    bounds(expression, _numbers(known))


def check_truths(expression: Expression) -> None:
    if not all(type(leaf) is bool for leaf in leaves(expression)):
        raise ValueError("a derived boolean is made of truths, a derived category of texts")


def check_texts(expression: Expression, values: Collection[str]) -> None:
    found = leaves(expression)
    if not all(type(leaf) is str for leaf in found):
        raise ValueError("a derived boolean is made of truths, a derived category of texts")
    if not set(found) <= set(values):
        raise ValueError("a derived category is made of its declared values")


def _check_test(test: Test, column: Operand) -> None:
    value, alike = test.value, test.sign in ("==", "!=")
    fits = (
        (column.bounds is not None and type(value) is float)
        or (column.truth and alike and type(value) is bool)
        or (column.values is not None and alike and type(value) is str and value in column.values)
    )
    if not fits:
        raise ValueError(
            "a comparison is of a declared number with a number, or, by == or !=, of a category "
            "with one of its values or of a boolean with true or false"
        )


def _numbers(known: Known) -> dict[str, Bounds]:
    return {name: each.bounds for name, each in known.items() if each.bounds is not None}
