"""Choices that are refused by their field."""

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from app.data.card import Card
from app.errors import Invalid
from app.queries.candidates import CANDIDATES_MAX
from tests.queries.cards import card, choice_shape, question

CARD = card()


def refused(query: dict[str, Any], made: Card = CARD) -> list[str]:
    with pytest.raises(Invalid) as caught:
        question(query).query.shape(made)
    return [each.pointer for each in caught.value.fields]


def median(candidates: Any, column: str = "age") -> dict[str, Any]:
    return {"kind": "median", "column": column, "candidates": candidates}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"kind": "mode", "column": "age"}, "/query/column"),
    ({"kind": "mode", "column": "nothing"}, "/query/column"),
    ({"kind": "top_k", "column": "member", "k": 1}, "/query/column"),
    ({"kind": "top_k", "column": "city", "k": 4}, "/query/k"),
    ({"kind": "quantile", "column": "city", "q": 0.5}, "/query/column"),
    ({"kind": "median", "column": "member"}, "/query/column"),
    ({"kind": "min", "column": "city"}, "/query/column"),
    ({"kind": "max", "column": "nothing"}, "/query/column"),
    ({"kind": "price", "column": "born"}, "/query/column"),
    (median([1, 1]), "/query/candidates"),
    (median([2, 1]), "/query/candidates"),
    (median([1, 2, 3, 2.0]), "/query/candidates"),
    (median([-1, 5]), "/query/candidates/0"),
    (median([5, 101]), "/query/candidates/1"),
    (median([500]), "/query/candidates"),
    (median([1, 2.5]), "/query/candidates/1"),
    (median([1, "2"]), "/query/candidates/1"),
    (median([1, 1e300]), "/query/candidates/1"),
    (median([1, "x"], "income"), "/query/candidates/1"),
    (median([1, 2], "born"), "/query/candidates/0"),
    (median(["1960-01-01", "1960-1-2"], "born"), "/query/candidates/1"),
    (median(["1940-01-01", "1960-01-02"], "born"), "/query/candidates/0"),
    (median({"low": 5, "high": 5, "count": 2}), "/query/candidates/high"),
    (median({"low": 9, "high": 5, "count": 2}), "/query/candidates/high"),
    (median({"low": -1, "high": 5, "count": 2}), "/query/candidates/low"),
    (median({"low": 1, "high": 500, "count": 2}), "/query/candidates/high"),
    (median({"low": 0, "high": 5, "count": 7}), "/query/candidates/count"),
    (median({"low": "a", "high": 5, "count": 2}), "/query/candidates/low"),
    (median({"edges": [1, 1]}), "/query/candidates/edges"),
    (median({"edges": [5, 1]}), "/query/candidates/edges"),
    (median({"edges": [1, 2.5]}), "/query/candidates/edges/1"),
    (median({"edges": [-1, 2]}), "/query/candidates/edges/0"),
    (median({"edges": [1, 101]}), "/query/candidates/edges/1"),
    (median({"edges": [1, "x"]}, "income"), "/query/candidates/edges/1"),
    ({**median([-5, 5], "income"), "kind": "price"}, "/query/candidates/0"),
    ({**median({"low": -5, "high": 5, "count": 3}, "income"), "kind": "price"},
     "/query/candidates/low"),
    ({**median([1, 2]), "where": {"column": "nothing", "op": "==", "value": 1}},
     "/query/where/column"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "pointer"), REFUSED, ids=str)
def test_a_choice_is_refused_by_its_field(query: dict[str, Any], pointer: str) -> None:
    assert refused(query) == [pointer]


def test_only_negative_prices_and_days_without_a_next_are_refused() -> None:
    made = card([{"name": "x", "type": "number", "low": -9, "high": -1}])
    assert refused({"kind": "price", "column": "x"}, made) == ["/query/candidates"]
    last = card([{"name": "x", "type": "date", "low": "9999-01-01", "high": "9999-12-31"}])
    assert refused({"kind": "median", "column": "x"}, last) == ["/query/column"]
    narrow = card([{"name": "x", "type": "number", "low": 1.0, "high": 1.0 + 1e-15}])
    assert refused({"kind": "median", "column": "x"}, narrow) == ["/query/candidates"]
    grid = {"low": 1.0, "high": 1.0 + 1e-15, "count": 100}
    found = refused({"kind": "median", "column": "x", "candidates": grid}, narrow)
    assert found == ["/query/candidates/count"]


def test_more_rounds_than_can_be_drawn_are_refused() -> None:
    names = [f"c{i}" for i in range(5000)]
    made = card([{"name": "x", "type": "category", "values": names}])
    assert refused({"kind": "top_k", "column": "x", "k": 5000}, made) == ["/query/k"]
    assert choice_shape({"kind": "top_k", "column": "x", "k": 2000}, made).picks == 2000


WRONG: list[dict[str, Any]] = [
    median([]),
    median("1,2"),
    median([True, 5]),
    median([None]),
    median([[1]]),
    median({"low": 0, "high": 5}),
    median({"low": 0, "high": 5, "count": 1}),
    median({"low": 0, "high": 5, "count": CANDIDATES_MAX + 1}),
    median({"low": 0, "high": 5, "count": 2.5}),
    median({"low": 0, "high": 5, "count": 2, "step": 1}),
    {"kind": "mode"},
    {"kind": "mode", "column": "city", "group_by": ["member"]},
    {"kind": "top_k", "column": "city"},
    {"kind": "top_k", "column": "city", "k": 0},
    {"kind": "top_k", "column": "city", "k": 1.5},
    {"kind": "top_k", "column": "city", "k": True},
    {"kind": "quantile", "column": "age"},
    {"kind": "min", "column": "age", "rank": 0},
    {"kind": "min", "column": "age", "q": 0.1},
    *(
        {"kind": "quantile", "column": "age", "q": q}
        for q in (0, 1, -0.5, 1.5, "0", "1", "x", "", "0.5 ", True, None, [0.5], "1/2", "NaN",
                  "1e-10", 0.1234567891, "0." + "1" * 40, "Infinity", float("nan"))
    ),
]  # fmt: skip


@pytest.mark.parametrize("query", WRONG, ids=str)
def test_a_query_that_is_not_a_choice_is_refused(query: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        question(query)


@pytest.mark.parametrize(("sent", "exact"), [(0.1, "0.1"), ("0.10", "0.1"), ("5e-1", "0.5")])
def test_a_share_is_read_exactly(sent: object, exact: str) -> None:
    query = {"kind": "quantile", "column": "age", "q": sent}
    shape = choice_shape(query, CARD)
    assert shape.steps == Fraction(exact).denominator
    again = choice_shape(question(query).query.model_dump(mode="json"), CARD)
    assert again.steps == shape.steps
