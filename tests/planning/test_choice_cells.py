"""Choices are charged to the cells that can change their tally, and to no others."""

from typing import Any

import pytest

from app.data.card import Card
from app.planning.cells import cells_to_charge
from tests.queries.cards import COLUMNS, choice_shape
from tests.queries.reference import Row, tallied

CITIES = ["Bern", "Chur", "Zürich"]


def celled(neighbours: str = "add_remove", **cells: Any) -> Card:
    return Card.model_validate(
        {
            "person": {"kind": "row"},
            "neighbours": neighbours,
            "rows": 100 if neighbours == "replace_one" else None,
            "columns": COLUMNS,
            "cells": cells or {"column": "city"},
        }
    )


def in_chur(query: dict[str, Any]) -> dict[str, Any]:
    return {**query, "where": {"column": "city", "op": "==", "value": "Chur"}}


KINDS: list[dict[str, Any]] = [
    {"kind": "mode", "column": "member"},
    {"kind": "median", "column": "age"},
    {"kind": "quantile", "column": "income", "q": 0.9},
    {"kind": "min", "column": "born"},
    {"kind": "max", "column": "age"},
    {"kind": "price", "column": "income"},
]


@pytest.mark.parametrize("query", KINDS, ids=lambda query: query["kind"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_choice_about_one_cell_is_charged_to_that_cell(
    query: dict[str, Any], neighbours: str
) -> None:
    made = celled(neighbours)
    assert cells_to_charge(choice_shape(in_chur(query), made).tally, made).cells == (1,)
    assert cells_to_charge(choice_shape(query, made).tally, made).cells is None


def test_the_most_frequent_cell_is_a_question_about_all_declared_cells() -> None:
    query = {"kind": "mode", "column": "city"}
    made = celled()
    assert cells_to_charge(choice_shape(query, made).tally, made).cells == (0, 1, 2)
    made = celled("replace_one")
    assert cells_to_charge(choice_shape(query, made).tally, made).cells is None


def test_candidate_prices_above_some_cells_exclude_them() -> None:
    made = celled(column="age", edges=[0, 20, 40, 100])
    query = {"kind": "price", "column": "age", "candidates": [20, 30, 50]}
    assert cells_to_charge(choice_shape(query, made).tally, made).cells == (1, 2)
    query = {"kind": "median", "column": "age", "candidates": [20, 30, 50]}
    assert cells_to_charge(choice_shape(query, made).tally, made).cells == (0, 1, 2)


@pytest.mark.parametrize("query", KINDS, ids=lambda query: query["kind"])
def test_rows_of_other_cells_change_no_tally(query: dict[str, Any]) -> None:
    made = celled()
    tally = choice_shape(in_chur(query), made).tally
    nothing = tallied(made, tally, [])
    for city in (*CITIES, None):
        row: Row = {"age": 7, "income": 8.0, "city": city, "member": True}
        row["born"] = made.columns[4].low  # type: ignore[union-attr]
        changed = tallied(made, tally, [row]) != nothing
        assert changed == (city == "Chur")
