"""Private keys: the shape of a question, and the influence of one person by brute force.

A person has up to three rows with one of three texts or none. In each table another person has each
of the texts or not. The tests cover neighbours of both relations. For every pair they measure how
far the counts of shared keys move. They count the rows that each table has in keys of its own. They
also count the keys whose number of persons differs.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from app.data.card import Card
from app.errors import Invalid
from app.queries.shapes.private_keys import PrivateKeysShape
from app.queries.tally import Compare, CountRows, KeyCountsRequest, Tally
from tests.queries.cards import COLUMNS, card, question

TEXTS = ["a", "b", "c"]
PRIVATE = {"column": "note", "keys": "private"}
WITH_TEXT = [*COLUMNS, {"name": "note", "type": "text"}, {"name": "other", "type": "text"}]
BY_NOTE: dict[str, Any] = {"kind": "count", "group_by": [PRIVATE]}
RELATIONS = ["add_remove", "replace_one"]


def made(neighbours: str = "add_remove", rows_max: int | None = None) -> Card:
    return card(WITH_TEXT, neighbours=neighbours, rows_max=rows_max)


def shape_of(query: dict[str, Any], on: Card) -> PrivateKeysShape:
    shape = question(query).query.shape(on)
    assert isinstance(shape, PrivateKeysShape)
    return shape


@dataclass(frozen=True)
class Change:
    l1: int  # of shared keys
    squares: int
    alone: tuple[int, int]  # rows in keys that only one of the tables has
    keys: int  # keys with a changed number of persons
    apart: int  # largest change of one key's number of persons


def choices(rows_max: int) -> list[tuple[str | None, ...]]:
    """The rows that one person may have."""
    texts = [None, *TEXTS]
    return [
        chosen
        for count in range(rows_max + 1)
        for chosen in combinations_with_replacement(texts, count)
    ]


def change(others: Counter[str], before: Counter[str], after: Counter[str]) -> Change:
    one, two = others + before, others + after
    shared = one.keys() & two.keys()
    moves = [abs(one[key] - two[key]) for key in shared]
    alone = tuple(sum(this[key] for key in this.keys() - shared) for this in (one, two))
    persons = [(key in before) - (key in after) for key in TEXTS]
    return Change(
        sum(moves),
        sum(move**2 for move in moves),
        (alone[0], alone[1]),
        sum(map(abs, persons)),
        max(map(abs, persons)),
    )


def changes(neighbours: str, rows_max: int | None) -> Iterator[Change]:
    people = choices(rows_max or 1)
    if rows_max is None:
        people = [rows for rows in people if len(rows) == 1]  # a row is present, or another
    counted = [Counter(text for text in rows if text is not None) for rows in people]
    firsts = [Counter[str]()] if neighbours == "add_remove" else counted
    for others in product((0, 2), repeat=3):
        there = Counter({text: n for text, n in zip(TEXTS, others, strict=True) if n})
        for before, after in product(firsts, counted):
            yield change(there, before, after)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("rows_max", [None, 1, 2, 3])
def test_nobody_moves_the_keys_by_more_than_the_sensitivity_and_some_as_far(
    neighbours: str, rows_max: int | None
) -> None:
    shape = shape_of(BY_NOTE, made(neighbours, rows_max))
    observed = list(changes(neighbours, rows_max))
    assert max(one.l1 for one in observed) == shape.measure.sensitivity
    assert max(one.squares for one in observed) == shape.measure.sensitivity_squared
    assert max(max(one.alone) for one in observed) == shape.rows
    assert max(one.apart for one in observed) == 1
    # With three texts at most three keys can move.
    assert max(one.keys for one in observed) == min(shape.keys, 3)
    if neighbours == "add_remove":
        assert all(min(one.alone) == 0 for one in observed)


def test_persons_are_counted_if_they_may_have_several_rows_of_a_text() -> None:
    which = {"kind": "keys", "column": "note"}
    assert not shape_of(which, made()).wanted.persons
    assert not shape_of(which, made(rows_max=1)).wanted.persons
    assert shape_of(which, made(rows_max=2)).wanted.persons
    assert not shape_of(BY_NOTE, made(rows_max=2)).wanted.persons


@pytest.mark.parametrize(
    "query", [BY_NOTE, {"kind": "histogram", "column": "note"}], ids=["count", "histogram"]
)
def test_a_histogram_of_texts_is_a_count_by_private_keys(query: dict[str, Any]) -> None:
    shape = shape_of(query, made())
    assert shape.wanted == KeyCountsRequest(Tally(None, (), (CountRows(),)), "note")
    assert shape.counts
    assert [each.noise for each in (shape, *shape.alternatives)] == ["laplace", "gaussian"]


def test_public_groups_combine_with_private_keys() -> None:
    where = {"column": "note", "op": "!=", "value": "flu"}
    groups = ["city", PRIVATE, {"column": "age", "edges": [0, 50, 100]}]
    shape = shape_of({"kind": "count", "group_by": groups, "where": where}, made())
    assert [grouping.column for grouping in shape.tally.groups] == ["city", "age"]
    assert shape.tally.where == Compare("note", "!=", "flu")
    assert shape.wanted.column == "note"


LONG = {"column": "note", "op": "==", "value": "x" * 101}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a category": (
        {"kind": "count", "group_by": [{"column": "city", "keys": "private"}]},
        "/query/group_by/0/column",
        "category column are public",
    ),
    "a number": (
        {"kind": "count", "group_by": ["city", {"column": "age", "keys": "private"}]},
        "/query/group_by/1/column",
        "integer column are public",
    ),
    "nothing declared": (
        {"kind": "count", "group_by": [{"column": "shoes", "keys": "private"}]},
        "/query/group_by/0/column",
        "declares",
    ),
    "two text columns": (
        {"kind": "count", "group_by": [PRIVATE, {"column": "other", "keys": "private"}]},
        "/query/group_by/1/keys",
        "one column",
    ),
    "one twice": (
        {"kind": "count", "group_by": [PRIVATE, PRIVATE]},
        "/query/group_by/1/keys",
        "one column",
    ),
    "public groups of a text": (
        {"kind": "count", "group_by": ["note"]},
        "/query/group_by/0",
        "no public groups",
    ),
    "edges of a text": (
        {"kind": "count", "group_by": [{"column": "note", "edges": [0, 1]}]},
        "/query/group_by/0",
        "no public groups",
    ),
    "a sum": (
        {"kind": "sum", "column": "age", "group_by": [PRIVATE]},
        "/query/group_by/0/keys",
        "count",
    ),
    "a mean": (
        {"kind": "mean", "column": "age", "group_by": ["city", PRIVATE]},
        "/query/group_by/1/keys",
        "count",
    ),
    "a reciprocal": ({"kind": "reciprocal", "group_by": [PRIVATE]}, "/query/group_by/0/keys", ""),
    "the sum of a text": ({"kind": "sum", "column": "note"}, "/query/column", "number"),
    "the mean of a text": ({"kind": "mean", "column": "note"}, "/query/column", "number"),
    "the mode of a text": ({"kind": "mode", "column": "note"}, "/query/column", "category"),
    "the top texts": ({"kind": "top_k", "column": "note", "k": 1}, "/query/column", "category"),
    "the median of a text": ({"kind": "median", "column": "note"}, "/query/column", ""),
    "the cdf of a text": ({"kind": "cdf", "column": "note", "edges": [0, 1]}, "/query/column", ""),
    "a histogram of a text with edges": (
        {"kind": "histogram", "column": "note", "edges": [0, 1]},
        "/query/edges",
        "no edges",
    ),
    "the keys of a category": ({"kind": "keys", "column": "city"}, "/query/column", "public"),
    "the keys of nothing": ({"kind": "keys", "column": "shoes"}, "/query/column", "declares"),
    "the order of texts": (
        {"kind": "count", "where": {"column": "note", "op": "<", "value": "a"}},
        "/query/where/op",
        "no order",
    ),
    "a text between": (
        {"kind": "keys", "column": "note", "where": {**LONG, "op": "between", "value": ["a", "b"]}},
        "/query/where/op",
        "no order",
    ),
    "a text that is too long": ({"kind": "count", "where": LONG}, "/query/where/value", "100"),
    "a text that is a number": (
        {"kind": "count", "where": {**LONG, "value": 5}},
        "/query/where/value",
        "text",
    ),
    "a text with a line in it": (
        {"kind": "count", "where": {**LONG, "op": "in", "value": ["a", "b\nc"]}},
        "/query/where/value/1",
        "control",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_invalid_question_names_its_field(what: str) -> None:
    query, pointer, rule = REFUSED[what]
    with pytest.raises(Invalid) as refused:
        question(query).query.shape(made())
    (field,) = refused.value.fields
    assert field.pointer == pointer
    assert rule in field.rule
    assert "shoes" not in field.rule


def test_a_workload_may_name_texts() -> None:
    """The named texts determine which predicates overlap: these two never do."""
    predicates = [
        {"name": text, "where": {"column": "note", "op": "==", "value": text}} for text in "ab"
    ]
    parsed = question({"kind": "workload", "predicates": predicates, "strategy": "identity"})
    shape = parsed.query.shape(made())
    assert not isinstance(shape, PrivateKeysShape)
    (measure,) = shape.measures  # type: ignore[union-attr]
    assert measure.sensitivity == 1
    more = {"name": "not a", "where": {"column": "note", "op": "!=", "value": "a"}}
    parsed = question(
        {"kind": "workload", "predicates": [*predicates, more], "strategy": "identity"}
    )
    (measure,) = parsed.query.shape(made()).measures  # type: ignore[union-attr]
    assert measure.sensitivity == 2  # "b" is not "a"
