"""The nearest known name: near ones are named, anything else is never repeated."""

import pytest

from app.nearest import did_you_mean, nearest, no_such

COLUMNS = ["age", "income", "region", "smoker"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("incme", "income"),
        ("Income", "income"),
        ("INCOME ", "income"),
        ("ages", "age"),
        ("regoin", "region"),
        ("planted-value", None),
        ("", None),
        ("x" * 61, None),
        ("inco\nme", None),
        (7, None),
        (None, None),
    ],
)
def test_the_nearest_is_the_one_that_was_meant(name: object, meant: str | None) -> None:
    assert nearest(name, COLUMNS) == meant


def test_a_message_repeats_a_name_only_beside_a_near_one() -> None:
    told = no_such("column", "incme", COLUMNS, "a declared column")
    assert told == "no column 'incme'; did you mean 'income'?"
    told = no_such("column", "planted-value", COLUMNS, "a declared column")
    assert told == "a declared column: age, income, region, smoker"
    many = [f"c{i}" for i in range(100)]
    assert no_such("column", "planted-value", many, "a declared column") == "a declared column"


def test_long_lists_are_not_searched() -> None:
    assert did_you_mean("c77777x", [f"c{i}" for i in range(100_000)]) == ""
    long = [f"{i:058}" for i in range(1000)]
    assert did_you_mean(f"{7:057}", long) == ""
    assert did_you_mean("c77x", [f"c{i}" for i in range(1000)]) == "; did you mean 'c77'?"
