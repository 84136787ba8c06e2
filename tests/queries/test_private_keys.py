"""Private keys: what a question asks for, and by brute force how far one person moves the keys.

Every person of up to three rows with a text out of three or none, in tables in which somebody else
has each of the texts or not; neighbours by both relations. For every pair of tables: how far the
counts of shared keys move, how many rows each table has in keys of its own, and how many keys have
another number of persons.
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
    keys: int  # whose number of persons moves
    apart: int  # the most that one key's number of persons moves


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
        people = [rows for rows in people if len(rows) == 1]  # a row is there, or another
    counted = [Counter(text for text in rows if text is not None) for rows in people]
    firsts = [Counter[str]()] if neighbours == "add_remove" else counted
    for others in product((0, 2), repeat=3):
        there = Counter({text: n for text, n in zip(TEXTS, others, strict=True) if n})
        for before, after in product(firsts, counted):
            yield change(there, before, after)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("rows_max", [None, 1, 2, 3])
def test_nobody_moves_the_keys_further_than_is_said_and_some_move_them_as_far(
    neighbours: str, rows_max: int | None
) -> None:
    shape = shape_of(BY_NOTE, made(neighbours, rows_max))
    found = list(changes(neighbours, rows_max))
    assert max(each.l1 for each in found) == shape.measure.sensitivity
    assert max(each.squares for each in found) == shape.measure.sensitivity_squared
    assert max(max(each.alone) for each in found) == shape.rows
    assert max(each.apart for each in found) == 1
    # With three texts no more than three keys can move.
    assert max(each.keys for each in found) == min(shape.keys, 3)
    if neighbours == "add_remove":
        assert all(min(each.alone) == 0 for each in found)


def test_persons_are_counted_where_someone_may_have_several_rows_of_a_text() -> None:
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


def test_public_groups_may_stand_beside_private_keys() -> None:
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
def test_what_cannot_be_asked_names_its_field(what: str) -> None:
    query, pointer, rule = REFUSED[what]
    with pytest.raises(Invalid) as refused:
        question(query).query.shape(made())
    (field,) = refused.value.fields
    assert field.pointer == pointer
    assert rule in field.rule
    assert "shoes" not in field.rule


def test_a_workload_may_ask_for_texts_it_names() -> None:
    """Which predicates overlap is found from what they name: these two never meet."""
    predicates = [
        {"name": text, "where": {"column": "note", "op": "==", "value": text}} for text in "ab"
    ]
    asked = question({"kind": "workload", "predicates": predicates, "strategy": "identity"})
    shape = asked.query.shape(made())
    assert not isinstance(shape, PrivateKeysShape)
    (measure,) = shape.measures  # type: ignore[union-attr]
    assert measure.sensitivity == 1
    more = {"name": "not a", "where": {"column": "note", "op": "!=", "value": "a"}}
    asked = question(
        {"kind": "workload", "predicates": [*predicates, more], "strategy": "identity"}
    )
    (measure,) = asked.query.shape(made()).measures  # type: ignore[union-attr]
    assert measure.sensitivity == 2  # "b" is not "a"
