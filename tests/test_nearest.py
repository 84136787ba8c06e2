"""The nearest known name: a close one is suggested, any other input is never quoted."""

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
def test_the_nearest_name_is_the_intended_one(name: object, meant: str | None) -> None:
    assert nearest(name, COLUMNS) == meant


def test_a_message_quotes_a_name_only_beside_a_close_one() -> None:
    message = no_such("column", "incme", COLUMNS, "a declared column")
    assert message == "no column 'incme'; did you mean 'income'?"
    message = no_such("column", "planted-value", COLUMNS, "a declared column")
    assert message == "a declared column: age, income, region, smoker"
    many = [f"c{i}" for i in range(100)]
    assert no_such("column", "planted-value", many, "a declared column") == "a declared column"


def test_long_lists_are_not_searched() -> None:
    assert did_you_mean("c77777x", [f"c{i}" for i in range(100_000)]) == ""
    long = [f"{i:058}" for i in range(1000)]
    assert did_you_mean(f"{7:057}", long) == ""
    assert did_you_mean("c77x", [f"c{i}" for i in range(1000)]) == "; did you mean 'c77'?"
