"""Sample rows: made up from the card alone."""

import datetime
import inspect
from collections import Counter
from typing import Any

import pytest

from app.data.columns import TextColumn
from app.data.sample_rows import WORDS, sample_rows
from app.mechanisms.sampling.system import SystemRandom
from tests.queries.cards import card

NOISE = SystemRandom()


def test_the_card_allows_every_sample_value() -> None:
    made = card()
    for row in sample_rows(made, 500, NOISE):
        assert list(row) == [column.name for column in made.columns]
        assert 0 <= row["age"] <= 100
        assert type(row["age"]) is int
        assert -10.5 <= row["income"] <= 1000.25
        assert row["city"] in {"Bern", "Chur", "Zürich"}
        assert type(row["member"]) is bool
        assert datetime.date(1950, 1, 1) <= datetime.date.fromisoformat(row["born"])
        assert datetime.date.fromisoformat(row["born"]) <= datetime.date(2010, 12, 31)


NARROW: list[tuple[float, float]] = [
    (1e-9, 2e-9),
    (0.1234561, 0.1234569),
    (-2e-9, -1e-9),
    (1e15 - 1, 1e15),
    (-1e15, 1e15),
    (1.0, 1.0 + 1e-12),
]


@pytest.mark.parametrize(("low", "high"), NARROW)
def test_narrow_and_wide_bounds_hold_too(low: float, high: float) -> None:
    made = card([{"name": "x", "type": "number", "low": low, "high": high}])
    for row in sample_rows(made, 200, NOISE):
        assert low <= row["x"] <= high


@pytest.mark.statistical
def test_both_ends_of_every_range_occur() -> None:
    """Missed with probability below 1e-20."""
    made = card(
        [
            {"name": "n", "type": "integer", "low": -1, "high": 1},
            {"name": "d", "type": "date", "low": "2000-01-01", "high": "2000-01-02"},
            {"name": "b", "type": "boolean"},
        ]
    )
    rows = sample_rows(made, 500, NOISE)
    assert {row["n"] for row in rows} == {-1, 0, 1}
    assert {row["d"] for row in rows} == {"2000-01-01", "2000-01-02"}
    assert {row["b"] for row in rows} == {True, False}


def test_sample_texts_are_words_of_a_public_list_within_the_declared_length() -> None:
    made = card(
        [
            {"name": "t", "type": "text"},
            {"name": "short", "type": "text", "length_max": 2},
        ]
    )
    rows = sample_rows(made, 500, NOISE)
    assert {row["t"] for row in rows} <= set(WORDS)
    assert {row["short"] for row in rows} <= {word[:2] for word in WORDS}
    for column, row in ((column, row) for column in made.columns for row in rows):
        assert isinstance(column, TextColumn)
        assert column.could_hold(row[column.name])


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_the_requested_number_of_rows_is_returned(count: int) -> None:
    for made in (card(), card(rows_max=5), card(rows_max=100_000)):
        assert len(sample_rows(made, count, NOISE)) == count


def test_persons_have_at_most_as_many_rows_as_declared() -> None:
    rows = sample_rows(card(rows_max=3), 300, NOISE)
    assert next(iter(rows[0])) == "person"
    most = Counter(row["person"] for row in rows)
    assert max(most.values()) <= 3
    assert len(most) >= 100


def test_the_only_inputs_are_a_card_a_number_and_a_source_of_randomness() -> None:
    """No value can come from the data, since no data go in."""
    parameters: Any = inspect.signature(sample_rows).parameters
    assert list(parameters) == ["card", "count", "choice"]
