import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from bursar import BadQuestion, Dataset, col

ADULT = {"column": "age", "op": ">=", "value": 18}
NORTH = {"column": "region", "op": "==", "value": "north"}
OLD = {"column": "age", "op": ">", "value": 64}


def test_a_comparison_is_a_condition() -> None:
    assert (col.age >= 18).body == ADULT
    assert (col["region"] == "north").body == NORTH
    assert (col.age != 3).body == {"column": "age", "op": "!=", "value": 3}
    assert (col.age < 3).body == {"column": "age", "op": "<", "value": 3}
    assert (col.age <= 3).body == {"column": "age", "op": "<=", "value": 3}


def test_conditions_combine_flat_and_by_precedence() -> None:
    joined = (col.age >= 18) & (col.region == "north") & (col.age > 64)
    assert joined.body == {"all": [ADULT, NORTH, OLD]}
    mixed = (col.age >= 18) & (col.region == "north") | (col.age > 64)
    assert mixed.body == {"any": [{"all": [ADULT, NORTH]}, OLD]}
    assert (~(col.age >= 18)).body == {"not": ADULT}
    assert mixed.columns == {"age", "region"}


def test_a_negated_group_stays_a_group() -> None:
    body = (~((col.age >= 18) | (col.region == "north")) & (col.age > 64)).body
    assert body == {"all": [{"not": {"any": [ADULT, NORTH]}}, OLD]}


def test_lists_ranges_and_missing_values() -> None:
    between = {"column": "age", "op": "between", "value": [18, 64]}
    assert col.age.between(18, 64).body == between
    isin = {"column": "region", "op": "in", "value": ["north", "west"]}
    assert col.region.isin(["north", "west"]).body == isin
    assert col.income.is_null().body == {"column": "income", "op": "is_null"}


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (datetime.date(2025, 3, 1), "2025-03-01"),
        (Decimal("3"), 3),
        (Decimal("3.5"), 3.5),
        (np.int64(7), 7),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
    ],
)
def test_values_are_sent_as_json_has_them(value: Any, sent: object) -> None:
    body: Any = (col.x == value).body
    assert body["value"] == sent
    assert type(body["value"]) is type(sent)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: (col.age >= 18) and (col.age < 65), "& | ~"),
        (lambda: (col.age >= 18) or (col.age < 65), "& | ~"),
        (lambda: not (col.age >= 18), "& | ~"),
        (lambda: 18 <= col.age < 65, "& | ~"),
        (lambda: col.age > 18 & col.age, "parentheses"),
        (lambda: (col.age > 18) & True, "parentheses"),  # type: ignore[operator]
        (lambda: ~col.smoker, "parentheses"),
        (lambda: bool(col.smoker), "== True"),
        (lambda: col.age == None, "is_null"),  # noqa: E711
        (lambda: col.age == col.income, "derived column"),
        (lambda: col.region.isin("north"), "isin(['north'])"),
        (lambda: col.age == [1, 2], "a number, a text"),
        (lambda: col.seen == datetime.datetime(2025, 1, 1), "date()"),  # noqa: DTZ001
    ],
)
def test_a_mixed_up_filter_says_what_to_write(wrong: Any, hint: str) -> None:
    with pytest.raises(BadQuestion) as caught:
        wrong()
    assert hint in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


def test_a_filter_reads_like_a_sentence() -> None:
    text = repr((col.age >= 18) & ((col.region == "north") | col.income.is_null()))
    assert text == "age >= 18 & (region == 'north' | income is missing)"


def test_where_checks_columns_and_types(census: Dataset) -> None:
    with pytest.raises(BadQuestion, match="no column 'incme'; did you mean 'income'"):
        census.where(col.incme > 3)
    with pytest.raises(BadQuestion, match="takes conditions, not a bool"):
        census.where(True)  # type: ignore[arg-type]


def test_several_filters_are_joined(census: Dataset) -> None:
    twice = census.where(col.age >= 18).where(col.region == "north").count()
    assert twice.query == {"kind": "count", "where": {"all": [ADULT, NORTH]}}
