"""Filters: checked column by column; every error names its field and no value."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.errors import Invalid
from app.queries.filters import DEPTH_MAX, LIST_MAX, NODES_MAX
from app.queries.tally import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    IsMissing,
    Negation,
    OneOf,
)
from tests.queries.cards import card, question
from tests.queries.reference import holds

CARD = card()


def resolved(where: Any) -> Condition | None:
    return question({"kind": "count", "where": where}).query.shape(CARD).tally.where


def compare(column: str, op: str, *value: Any) -> dict[str, Any]:
    return {"column": column, "op": op, **({"value": value[0]} if value else {})}


@pytest.mark.parametrize(
    ("where", "condition"),
    [
        (None, None),
        (compare("age", ">=", 18), Compare("age", ">=", 18)),
        (compare("income", "<", 10), Compare("income", "<", 10)),
        (compare("city", "==", "Bern"), Compare("city", "==", "Bern")),
        (compare("city", "in", ["Bern", "Chur"]), OneOf("city", ("Bern", "Chur"))),
        (compare("city", "in", []), OneOf("city", ())),
        (compare("member", "==", True), Compare("member", "==", True)),
        (compare("born", "<", "2000-02-29"), Compare("born", "<", datetime.date(2000, 2, 29))),
        (
            compare("age", "between", [1, 5]),
            AllOf((Compare("age", ">=", 1), Compare("age", "<=", 5))),
        ),
        (compare("age", "is_null"), IsMissing("age")),
        (compare("age", "is_null", True), IsMissing("age")),
        (compare("age", "is_null", False), Negation(IsMissing("age"))),
        ({"all": []}, AllOf(())),
        ({"any": [compare("age", "is_null")]}, AnyOf((IsMissing("age"),))),
        ({"not": compare("age", "is_null")}, Negation(IsMissing("age"))),
    ],
)
def test_a_filter_selects_the_rows_it_describes(where: Any, condition: Condition | None) -> None:
    assert resolved(where) == condition


def test_a_comparison_with_a_missing_value_is_false_and_its_negation_true() -> None:
    row = {"age": None, "income": None, "city": None, "member": None, "born": None}
    for op in ("==", "!=", "<", "<=", ">", ">="):
        assert not holds(resolved(compare("age", op, 5)), row)
        assert holds(resolved({"not": compare("age", op, 5)}), row)
    assert holds(resolved({"all": []}), row)
    assert not holds(resolved({"any": []}), row)


WRONG = {
    "an unknown column": (compare("salary", "==", 1), "/query/where/column"),
    "a column in another case": (compare("AGE", "==", 1), "/query/where/column"),
    "text for a number": (compare("age", "==", "5"), "/query/where/value"),
    "true for a number": (compare("age", "==", True), "/query/where/value"),
    "no value": (compare("age", "=="), "/query/where/value"),
    "a list for one value": (compare("age", "==", [1]), "/query/where/value"),
    "a number beyond reason": (compare("age", "<", 2e18), "/query/where/value"),
    "a whole number beyond reason": (compare("age", "<", 10**30), "/query/where/value"),
    "NaN": (compare("income", "<", float("nan")), "/query/where/value"),
    "infinity": (compare("income", "<", float("inf")), "/query/where/value"),
    "an undeclared category": (compare("city", "==", "Genf"), "/query/where/value"),
    "a number for a category": (compare("city", "==", 1), "/query/where/value"),
    "order on categories": (compare("city", "<", "Bern"), "/query/where/op"),
    "between on categories": (compare("city", "between", ["Bern", "Chur"]), "/query/where/op"),
    "order on truth": (compare("member", ">=", True), "/query/where/op"),
    "one for true": (compare("member", "==", 1), "/query/where/value"),
    "zero for false": (compare("member", "==", 0), "/query/where/value"),
    "text for true": (compare("member", "==", "true"), "/query/where/value"),
    "a number for a date": (compare("born", "<", 2000), "/query/where/value"),
    "a date that is none": (compare("born", "<", "2001-02-29"), "/query/where/value"),
    "a date without dashes": (compare("born", "<", "20000101"), "/query/where/value"),
    "a date by week": (compare("born", "<", "2000-W01-1"), "/query/where/value"),
    "a date and time": (compare("born", "<", "2000-01-01T00:00"), "/query/where/value"),
    "in without a list": (compare("age", "in", 5), "/query/where/value"),
    "in with a wrong one": (compare("age", "in", [1, "2"]), "/query/where/value/1"),
    "between with one": (compare("age", "between", [1]), "/query/where/value"),
    "between with three": (compare("age", "between", [1, 2, 3]), "/query/where/value"),
    "between without a list": (compare("age", "between", 1), "/query/where/value"),
    "is_null with text": (compare("age", "is_null", "yes"), "/query/where/value"),
    "is_null with one": (compare("age", "is_null", 1), "/query/where/value"),
    "is_null with zero": (compare("age", "is_null", 0), "/query/where/value"),
    "is_null with a list": (compare("age", "is_null", [True]), "/query/where/value"),
    "deep inside": (
        {"all": [{"any": [{"not": compare("x", "==", 1)}]}]},
        "/query/where/all/0/any/0/not/column",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_filter_that_the_card_does_not_allow_is_refused_by_field_and_rule(what: str) -> None:
    where, pointer = WRONG[what]
    with pytest.raises(Invalid) as caught:
        resolved(where)
    (field,) = caught.value.fields
    assert field.pointer == pointer
    assert "Genf" not in caught.value.detail


@pytest.mark.parametrize(
    "where",
    [
        {},
        [],
        "age > 5",
        5,
        {"column": "age"},
        {"op": "=="},
        {"column": "age", "op": "like", "value": "%"},
        {"column": "age", "op": "==", "value": 1, "extra": 1},
        {"column": 5, "op": "==", "value": 1},
        {"column": "age", "op": "==", "value": {"sql": "1"}},
        {"column": "age", "op": "==", "value": [[1]]},
        {"all": [], "any": []},
        {"all": {}},
        {"all": None},
        {"not": []},
        {"not": None},
        {"not_": compare("age", "is_null")},
        {"any": [None]},
        {"all": [compare("age", "is_null")] * (NODES_MAX + 1)},
        {"column": "age", "op": "in", "value": [1] * (LIST_MAX + 1)},
    ],
)
def test_a_filter_of_another_shape_is_refused(where: Any) -> None:
    with pytest.raises(ValidationError):
        resolved(where)


def nested(depth: int) -> dict[str, Any]:
    where = compare("age", "is_null")
    for _ in range(depth - 1):
        where = {"not": where}
    return where


def test_a_filter_is_as_deep_as_allowed_and_no_deeper() -> None:
    resolved(nested(DEPTH_MAX))
    with pytest.raises(Invalid, match="/query/where"):
        resolved(nested(DEPTH_MAX + 1))


@pytest.mark.parametrize("depth", [100, 300, 5000])
def test_a_filter_of_excessive_depth_is_refused_and_breaks_nothing(depth: int) -> None:
    with pytest.raises((Invalid, ValidationError)):
        resolved(nested(depth))


def test_a_filter_has_as_many_parts_as_allowed_and_no_more() -> None:
    part = compare("age", "is_null")
    resolved({"all": [part] * (NODES_MAX - 1)})
    with pytest.raises(Invalid, match=f"at most {NODES_MAX}"):
        resolved({"all": [part] * NODES_MAX})
    with pytest.raises(Invalid, match=f"at most {NODES_MAX}"):
        resolved({"any": [{"all": [part] * 100}, {"all": [part] * 100}]})


def test_the_error_for_a_filter_that_is_too_deep_says_so() -> None:
    with pytest.raises(Invalid, match="in at most 20 levels"):
        resolved(nested(21))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["all", "any", "not", "column", "op", "value", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(json_values)
def test_any_json_is_either_a_filter_or_refused(where: Any) -> None:
    try:
        resolved(where)
    except ValidationError:
        return
    except Invalid as error:
        refusal = error
    else:
        return
    assert refusal.fields[0].pointer.startswith("/query/where")
