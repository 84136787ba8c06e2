"""Score ranges by brute force: every neighbouring pair of small tables, in exact arithmetic.

A person has up to `rows_max` rows with a missing value or one of four, kept by the filter or not.
Under add_remove the person is present or not. Under replace_one any choice of rows becomes any
other. The others' rows are every table of up to eight rows.
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from app.data.card import Card
from app.queries.shapes.selection import SelectionShape
from tests.mechanisms.selection.selection_law import (
    Law,
    discrete_laplace_law,
    exponential_law,
    permute_and_flip_law,
)
from tests.queries.cards import card, choice_shape
from tests.queries.reference import Row, tallied

Vector = tuple[int, ...]
OTHERS_MAX = 8
COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": 0, "high": 3},
    {"name": "amount", "type": "number", "low": 0.0, "high": 7.0},
    {"name": "day", "type": "date", "low": "2020-01-01", "high": "2020-01-04"},
    {"name": "group", "type": "category", "values": ["a", "b", "c", "d"]},
    {"name": "flag", "type": "boolean"},
    {"name": "kept", "type": "boolean"},
]
VALUES: dict[str, list[Any]] = {
    "x": [0, 1, 2, 3],
    "amount": [0.0, 1.5, 4.0, 7.0],
    "group": ["a", "b", "c", "d"],
    "flag": [False, True],
}
WHERE = {"column": "kept", "op": "==", "value": True}
KINDS: dict[str, tuple[dict[str, Any], int]] = {  # with the target rank
    "mode": ({"kind": "mode", "column": "group"}, 0),
    "mode of a boolean": ({"kind": "mode", "column": "flag"}, 0),
    "top_k": ({"kind": "top_k", "column": "group", "k": 2}, 0),
    "median": ({"kind": "median", "column": "x"}, 0),
    "median of numbers": (
        {"kind": "median", "column": "amount", "candidates": [0, 1.5, 2, 4, 7]},
        0,
    ),
    "quantile 0.25": ({"kind": "quantile", "column": "x", "q": "0.25"}, 0),
    "quantile 0.8": ({"kind": "quantile", "column": "x", "q": "0.8"}, 0),
    "median between edges": (
        {"kind": "median", "column": "amount", "candidates": {"edges": [0, 1.5, 2, 4, 7]}},
        0,
    ),
    "quantile 0.8 between edges": (
        {"kind": "quantile", "column": "x", "q": "0.8", "candidates": {"edges": [0, 1, 2, 3]}},
        0,
    ),
    "min between edges": (
        {"kind": "min", "column": "x", "candidates": {"edges": [0, 1, 2, 3]}},
        3,
    ),
    "min": ({"kind": "min", "column": "x"}, 3),
    "max": ({"kind": "max", "column": "x"}, 3),
    "price": ({"kind": "price", "column": "x", "candidates": [1, 2, 3]}, 0),
    "price from zero": ({"kind": "price", "column": "x", "candidates": [0, 2, 3]}, 0),
    "price, near each other": ({"kind": "price", "column": "x", "candidates": [2, 3]}, 0),
}
CASES = [
    pytest.param(*each, id="-".join([each[0], each[1], "person" if each[2] else "row"]))
    for each in product(KINDS, ("add_remove", "replace_one"), (None, 2))
]


def shape_of(kind: str, neighbours: str, rows_max: int | None) -> tuple[Card, SelectionShape]:
    made = card(COLUMNS, neighbours=neighbours, rows_max=rows_max)
    return made, choice_shape({**KINDS[kind][0], "where": WHERE}, made)


def counted(made: Card, shape: SelectionShape, column: str, value: Any, kept: bool) -> Vector:
    """The contribution of one row to the tally."""
    row: Row = dict.fromkeys([each["name"] for each in COLUMNS]) | {column: value, "kept": kept}
    return tallied(made, shape.tally, [row])[0]


def added(*vectors: Vector) -> Vector:
    return tuple(map(sum, zip(*vectors, strict=True)))


@cache
def pairs(
    kind: str, neighbours: str, rows_max: int | None, others_max: int = OTHERS_MAX
) -> list[tuple[Vector, Vector]]:
    """The scores of all neighbouring tables, each pair once."""
    made, shape = shape_of(kind, neighbours, rows_max)
    query, rank = KINDS[kind]
    column = query["column"]
    rows = {counted(made, shape, column, value, True) for value in VALUES[column]}
    nothing = {counted(made, shape, column, None, True), counted(made, shape, column, 0, False)}
    assert nothing == {tuple([0] * shape.tally.group_count())}
    choices = {added(*chosen) for chosen in combinations_with_replacement(rows | nothing, 1)}
    if rows_max is not None:
        choices = {added(*chosen) for chosen in combinations_with_replacement(rows | nothing, 2)}
    before = nothing if neighbours == "add_remove" else choices
    score_pairs: set[tuple[Vector, Vector]] = set()
    for count in range(others_max + 1):
        for chosen in combinations_with_replacement(sorted(rows), count):
            others = added(*chosen, *nothing)
            scores = {
                choice: tuple(shape.scores((added(others, choice),), rank)) for choice in choices
            }
            score_pairs |= {(scores[one], scores[two]) for one in before for two in choices}
    return sorted(score_pairs)


def moved_apart(one: Vector, two: Vector) -> int:
    changes = [b - a for a, b in zip(one, two, strict=True)]
    return max(changes) - min(changes)


@pytest.mark.parametrize(("kind", "neighbours", "rows_max"), CASES)
def test_no_neighbour_moves_two_scores_apart_by_more_than_the_range_and_some_as_far(
    kind: str, neighbours: str, rows_max: int | None
) -> None:
    _, shape = shape_of(kind, neighbours, rows_max)
    largest = max(moved_apart(*pair) for pair in pairs(kind, neighbours, rows_max))
    assert largest <= shape.score_range
    assert largest > shape.score_range - 1  # the saboteur's range, one smaller, is caught


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_the_range_of_an_extreme_does_not_depend_on_the_rank(
    kind: str, neighbours: str, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs.cache_clear()
    monkeypatch.setitem(KINDS, kind, (KINDS[kind][0], rank))
    _, shape = shape_of(kind, neighbours, 2)
    largest = max(moved_apart(*pair) for pair in pairs(kind, neighbours, 2))
    assert largest <= shape.score_range == 4
    pairs.cache_clear()


LAWS: dict[str, Callable[[Vector, float], Law]] = {
    "permute and flip": permute_and_flip_law,
    "exponential": exponential_law,
    "laplace": discrete_laplace_law,
}


@pytest.mark.parametrize("kind", ["mode", "quantile 0.25", "min", "price"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("law", LAWS)
def test_no_outcome_is_more_than_exp_epsilon_times_as_likely_for_a_neighbour(
    law: str, kind: str, neighbours: str
) -> None:
    """By the exact laws at epsilon = 1.

    The log-ratio of the exponential mechanism alone has a range of at most epsilon, which its curve
    charges.
    """
    _, shape = shape_of(kind, neighbours, None)
    law_of = cache(LAWS[law])
    widest = 0.0
    all_pairs = pairs(kind, neighbours, None, 2 if law == "laplace" else 4)
    shifted = {
        tuple(tuple(s - max(scores) for s in scores) for scores in pair) for pair in all_pairs
    }
    for one, two in shifted:
        laws = (law_of(scores, 1 / shape.score_range) for scores in (one, two))
        ratios = [math.log(a / b) for a, b in zip(*laws, strict=True)]
        assert max(map(abs, ratios)) <= 1 + 1e-9
        widest = max(widest, max(ratios) - min(ratios))
    if law == "exponential":
        assert widest <= 1 + 1e-9
    elif law == "permute and flip" and (kind, neighbours) == ("mode", "replace_one"):
        assert widest > 1.2  # so its curve must not be that of bounded range
