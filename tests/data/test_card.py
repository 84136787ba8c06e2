"""Cards: a declaration is checked before any row is read."""

import datetime
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.data.card import Card
from app.data.columns import DateColumn, IntegerColumn, NumberColumn, TextColumn, day
from tests.queries.cards import COLUMNS, card

GOOD: dict[str, Any] = {
    "person": {"kind": "row"},
    "neighbours": "add_remove",
    "columns": COLUMNS,
}


DECADES = ["1950-01-01", "1980-01-01", "2010-12-31"]


def column(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "columns": [{"name": "x", **changes}]}


def test_a_card_survives_a_round_trip_through_json() -> None:
    for made in (
        Card.model_validate(GOOD),
        card(neighbours="replace_one"),
        card(rows_max=7),
        Card.model_validate({**GOOD, "cells": {"column": "age", "edges": [0, 18, 100]}}),
        Card.model_validate({**GOOD, "cells": {"column": "born", "edges": DECADES}}),
        Card.model_validate({**GOOD, "cells": {"column": "city"}}),
    ):
        assert Card.model_validate_json(made.model_dump_json()) == made


def test_a_column_is_found_by_its_exact_name() -> None:
    made = Card.model_validate(GOOD)
    found = made.column("age")
    assert isinstance(found, IntegerColumn)
    assert made.column("AGE") is None
    assert made.column("") is None


def test_a_person_has_one_row_or_as_many_as_declared() -> None:
    assert card().person.rows_max == 1
    assert card(rows_max=7).person.rows_max == 7


WRONG: dict[str, dict[str, Any]] = {
    "no person": {**GOOD, "person": None},
    "an unknown person": {**GOOD, "person": {"kind": "household"}},
    "a person of no rows": {
        **GOOD,
        "person": {"kind": "column", "column": "id", "rows_max": 0},
    },
    "a person of too many rows": {
        **GOOD,
        "person": {"kind": "column", "column": "id", "rows_max": 100_001},
    },
    "a person column that may be asked about": {
        **GOOD,
        "person": {"kind": "column", "column": "AGE", "rows_max": 1},
    },
    "an unknown relation": {**GOOD, "neighbours": "replace"},
    "replace_one without rows": {**GOOD, "neighbours": "replace_one"},
    "replace_one of no rows": {**GOOD, "neighbours": "replace_one", "rows": 0},
    "add_remove with rows": {**GOOD, "rows": 5},
    "no columns": {**GOOD, "columns": []},
    "too many columns": {
        **GOOD,
        "columns": [{"name": f"c{i}", "type": "boolean"} for i in range(501)],
    },
    "the same column twice": {
        **GOOD,
        "columns": [{"name": "x", "type": "boolean"}, {"name": "X", "type": "boolean"}],
    },
    "an unknown type": column(type="essay"),
    "an empty name": {**GOOD, "columns": [{"name": "", "type": "boolean"}]},
    "an unknown field": column(type="boolean", secret=1),
    "bounds that are the same": column(type="integer", low=1, high=1),
    "bounds that fall": column(type="integer", low=2, high=1),
    "bounds that are fractions": column(type="integer", low=0.5, high=1),
    "bounds that are true": column(type="integer", low=False, high=True),
    "bounds beyond a float": column(type="integer", low=0, high=2**53 + 1),
    "number bounds that fall": column(type="number", low=2.0, high=1.0),
    "number bounds that are NaN": column(type="number", low=float("nan"), high=1.0),
    "number bounds that are infinite": column(type="number", low=0.0, high=float("inf")),
    "number bounds beyond reason": column(type="number", low=0.0, high=1e16),
    "number bounds that are next to nothing": column(type="number", low=0.0, high=1e-10),
    "number bounds that are text": column(type="number", low="0", high="1"),
    "number bounds that are true": column(type="number", low=False, high=True),
    "no categories": column(type="category", values=[]),
    "a category twice": column(type="category", values=["a", "a"]),
    "a long category": column(type="category", values=["a" * 201]),
    "a category that is a number": column(type="category", values=[1]),
    "dates that fall": column(type="date", low="2000-01-02", high="2000-01-01"),
    "dates that are none": column(type="date", low="2000-01-01", high="2000-02-30"),
    "dates without dashes": column(type="date", low="20000101", high="20010101"),
    "dates by week": column(type="date", low="2000-W01-1", high="2001-01-01"),
    "a text column of no length": column(type="text", length_max=0),
    "a text column too long": column(type="text", length_max=501),
    "a text column with values": column(type="text", values=["a"]),
    "cells of a text column": {**column(type="text"), "cells": {"column": "x"}},
    "cells of a text column with edges": {
        **column(type="text"),
        "cells": {"column": "x", "edges": [0, 1]},
    },
    "cells of nothing": {**GOOD, "cells": {"column": "salary"}},
    "cells of a date": {**GOOD, "cells": {"column": "born"}},
    "cells of a number without edges": {**GOOD, "cells": {"column": "age"}},
    "cells that leave values out": {**GOOD, "cells": {"column": "age", "edges": [1, 100]}},
    "cells that fall": {**GOOD, "cells": {"column": "age", "edges": [0, 60, 50, 100]}},
    "cells of a number with days": {**GOOD, "cells": {"column": "age", "edges": DECADES}},
    "cells of a date with numbers": {**GOOD, "cells": {"column": "born", "edges": [0, 1]}},
    "cells of days that are none": {
        **GOOD,
        "cells": {"column": "born", "edges": ["1950-01-01", "1980-02-30", "2010-12-31"]},
    },
    "cells of days that leave some out": {
        **GOOD,
        "cells": {"column": "born", "edges": ["1950-01-02", "2010-12-31"]},
    },
    "cells of numbers and days": {**GOOD, "cells": {"column": "age", "edges": [0, *DECADES]}},
    "cells with an edge beyond a float": {
        **GOOD,
        "cells": {"column": "age", "edges": [0, 10**400]},
    },
    "cells with an infinite edge": {**GOOD, "cells": {"column": "age", "edges": [0, math.inf]}},
    "cells with an edge that is true": {**GOOD, "cells": {"column": "age", "edges": [True, 100]}},
    "cells with edges that are no list": {**GOOD, "cells": {"column": "age", "edges": "0,100"}},
    "cells with edges for a category": {**GOOD, "cells": {"column": "city", "edges": [0, 1]}},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_card_is_refused_that_has(what: str) -> None:
    with pytest.raises(ValidationError):
        Card.model_validate(WRONG[what])


@pytest.mark.parametrize("kind", ["integer", "category"])
def test_there_are_at_most_256_cells(kind: str) -> None:
    def made(count: int) -> Card:
        if kind == "category":
            declared = column(type="category", values=[str(i) for i in range(count)])
            return Card.model_validate({**declared, "cells": {"column": "x"}})
        declared = column(type="integer", low=0, high=count)
        return Card.model_validate(
            {**declared, "cells": {"column": "x", "edges": [*range(count + 1)]}}
        )

    assert made(256).cells is not None
    with pytest.raises(ValidationError, match="at most 256 cells"):
        made(257)


floats = st.floats(-1e15, 1e15, allow_nan=False)


@settings(deadline=None)
@given(floats, floats)
def test_the_grid_of_a_number_is_fine_and_exact_and_its_bounds_are_ordered(
    low: float, high: float
) -> None:
    try:
        made = NumberColumn(name="x", type="number", low=low, high=high)
    except ValidationError:
        return
    grid = 1 / Fraction(2) ** made.grid_exponent
    first, last = made.steps
    assert first <= last
    for bound, steps in ((low, first), (high, last)):
        assert 0 <= Fraction(bound) - steps * grid < grid
    reach = max(abs(first), abs(last))
    assert 2**30 <= reach <= 2**41
    assert math.ldexp(1.0, -made.grid_exponent) == grid


def test_the_steps_of_an_integer_are_its_values() -> None:
    made = IntegerColumn(name="x", type="integer", low=-3, high=9)
    assert (made.steps, made.grid_exponent) == ((-3, 9), 0)


def test_integer_bounds_of_a_number_column_become_numbers() -> None:
    made = NumberColumn.model_validate({"name": "x", "type": "number", "low": 0, "high": 5})
    assert (made.low, made.high) == (0.0, 5.0)


def test_a_date_has_one_notation() -> None:
    assert day("2000-02-29") == datetime.date(2000, 2, 29)
    for text in (
        "2000-2-9",
        "20000229",
        "2000-W09-2",
        "2000-060",
        "29.02.2000",
        "",
        "2000-02-29 ",
        "\uff12000-02-29",
    ):
        with pytest.raises(ValueError, match="YYYY-MM-DD"):
            day(text)
    made = DateColumn.model_validate(
        {"name": "x", "type": "date", "low": "2000-01-01", "high": "2000-12-31"}
    )
    assert made.low == datetime.date(2000, 1, 1)


def test_cells_of_a_text_column_are_refused_with_a_reason() -> None:
    with pytest.raises(ValidationError, match="its values are not public"):
        Card.model_validate({**column(type="text"), "cells": {"column": "x"}})


TEXT = TextColumn(name="t", type="text", length_max=5)


@pytest.mark.parametrize("text", ["a", "a b", "é", "😀😀😀😀😀", "~|", "\u200b", "0"])
def test_a_text_column_could_hold(text: str) -> None:
    assert TEXT.could_hold(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sixsix",
        " a",
        "a ",
        "a  b",
        "a\tb",
        "\0",
        "a\x85",
        "a\xa0b",
        "\u2028",
        "\ud800",
        "a\x7f",
        "\u3000",
    ],
)
def test_a_text_column_could_not_hold(text: str) -> None:
    assert not TEXT.could_hold(text)
