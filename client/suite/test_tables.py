"""Answers of every kind as rows, frames and pictures."""

import csv
import io
import xml.etree.ElementTree as ElementTree
from typing import Any

import polars
import pyarrow
import pytest

from bursar.results.answers import Answer, read_answer
from bursar.results.tables import columns_of, rows_of

Json = dict[str, Any]
CHARGED: Json = {"epsilon": 0.5, "delta": 0.0, "cells": None, "accounts": []}


def answer_of(value: Any, interval: Json | None, question: str = "a question") -> Answer:
    members = {
        "id": "q_1",
        "status": "answered",
        "value": value,
        "interval": interval,
        "mechanism": {"kind": "laplace"},
        "charged": CHARGED,
        "theorem": "",
        "receipt": {"entry": 4, "hash": "00"},
    }
    return read_answer(members, question, {})


def test_a_number_is_one_row_with_its_interval() -> None:
    interval = {"low": 1, "high": 3, "confidence": 0.95, "covers": "noise"}
    assert rows_of(2, interval) == [{"value": 2, "low": 1, "high": 3}]
    assert rows_of("north", None) == [{"value": "north"}]


def test_groups_bins_and_names_become_columns() -> None:
    interval = {"low": 1, "high": 3, "confidence": 0.95}
    by_region = [{"group": {"region": "north"}, "value": 2, "interval": interval}]
    assert rows_of(by_region, None) == [{"region": "north", "value": 2, "low": 1, "high": 3}]
    bins = [{"group": {"age": {"from": 0, "to": 18}}, "value": 2, "interval": None}]
    assert rows_of(bins, None) == [{"age_from": 0, "age_to": 18, "value": 2}]
    assert rows_of(["b", "a"], None) == [{"rank": 1, "value": "b"}, {"rank": 2, "value": "a"}]


def test_several_aggregates_stand_side_by_side() -> None:
    interval = {"low": 1, "high": 3, "confidence": 0.95}
    values = [
        {"kind": "count", "value": 7, "interval": interval},
        {"kind": "mean", "column": "income", "value": 2.5, "interval": interval},
    ]
    assert rows_of([{"group": {"sex": "male"}, "values": values}], None) == [
        {
            "sex": "male",
            "count": 7,
            "count_low": 1,
            "count_high": 3,
            "mean_income": 2.5,
            "mean_income_low": 1,
            "mean_income_high": 3,
        }
    ]


def test_every_golden_answer_has_the_same_frames(replies: dict[str, Json]) -> None:
    assert len(replies) > 60
    for name, reply in replies.items():
        answer = answer_of(reply["value"], reply["interval"])
        rows = answer.rows()
        assert rows, name
        assert list(answer.to_pandas().columns) == columns_of(rows), name
        assert answer.to_polars().height == len(rows), name
        assert pyarrow.table(answer).num_rows == len(rows), name
        assert polars.DataFrame(answer).equals(answer.to_polars()), name
        read = list(csv.DictReader(io.StringIO(answer.to_csv())))
        assert len(read) == len(rows), name
        assert not any(isinstance(cell, (dict, list)) for row in rows for cell in row.values()), (
            name
        )


def test_every_golden_answer_has_a_page_without_script(replies: dict[str, Json]) -> None:
    for name, reply in replies.items():
        answer = answer_of(reply["value"], reply["interval"], "is <b>1 < 2</b>?")
        page = answer._repr_html_()
        ElementTree.fromstring(page)  # well-formed, so every text is escaped
        assert "<script" not in page, name
        assert "<b>1" not in page, name
        assert repr(answer), name


def test_a_long_answer_is_cut_off_and_says_so() -> None:
    value = [{"group": {"age": n}, "value": n, "interval": None} for n in range(500)]
    answer = answer_of(value, None)
    assert "and 480 more rows" in answer._repr_html_()
    assert "and 480 more rows" in repr(answer)
    assert len(answer.to_pandas()) == 500


def test_an_answer_is_a_number_only_if_it_is_one() -> None:
    assert float(answer_of(3, None)) == 3.0
    with pytest.raises(Exception, match="not one number"):
        float(answer_of([1, 2], None))


def test_made_up_answers_are_marked() -> None:
    members = {**answer_of(3, None).members, "status": "rehearsed", "made_up": True}
    members |= {"receipt": None, "id": None}
    answer = read_answer(members, "count", {})
    assert "MADE-UP ROWS" in repr(answer)
    assert "made-up rows" in answer._repr_html_()
    assert "nothing was charged" in repr(answer)
