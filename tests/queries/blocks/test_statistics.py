"""Statistics of blocks: each equals the plain version, and one person changes few blocks."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest

from app.data.card import Card
from app.queries.bareiss import eliminate
from app.queries.block_tally import BlockTally
from app.queries.blocks.sample_aggregate import SampleAggregate
from app.queries.blocks.statistics import BlockMode
from app.queries.shapes.post_processed import PostProcessedShape
from tests.effort import thorough_after
from tests.engines.sql.block_reference import (
    Placing,
    Readings,
    Row,
    block_reference,
    by_person,
    by_readings,
)
from tests.queries.blocks.block_plain import ALL, COLUMNS, MODES, ROWS, solved
from tests.queries.cards import card, question

BLOCKS = 2


def query_and_shape(
    name: str, declared: Card | None = None, blocks: int = BLOCKS
) -> tuple[SampleAggregate, PostProcessedShape]:
    query: dict[str, Any] = {"kind": "sample_aggregate", "blocks": blocks}
    if name in MODES:
        query |= {"statistic": MODES[name]}
    else:
        statistic, low, high, _ = ALL[name]
        query |= {"statistic": statistic, "low": low, "high": high}
    made = question(query).query
    assert isinstance(made, SampleAggregate)
    return made, made.shape(declared or card(COLUMNS))


Counted = Sequence[tuple[Readings, Row]]


def in_one(rows: Counted) -> list[int]:
    return [0] * len(rows)


@pytest.mark.parametrize("name", list(ALL))
def test_a_block_returns_the_plain_statistic_of_its_rows(name: str) -> None:
    """Checked for all tables of at most four rows; an undefined statistic is the middle."""
    query, shape = query_and_shape(name)
    plain = ALL[name][3]
    assert isinstance(shape.source, BlockTally)
    scale, low, high = Fraction(2) ** query.exponent, Fraction(query.low or 0), query.high or 0
    seen = set()
    for size in range(5):
        for rows in combinations_with_replacement(ROWS, size):
            places = shape.exact(block_reference(card(COLUMNS), rows, shape.source, in_one))[0]
            value, nothing = plain(list(rows)), plain([])
            expected = [
                query.top // 2
                if each is None
                else math.floor((min(max(each, low), Fraction(high)) - low) * scale)
                for each in (value, nothing)
            ]
            assert list(places) == expected, rows
            seen.add(value)
    assert len(seen) > 3


def test_votes_are_the_modes_of_blocks() -> None:
    """The first category on the card wins ties, and a block without values has no vote."""
    for name, values in (("mode", ["Bern", "Chur", "Zürich"]), ("of two", [False, True])):
        _, shape = query_and_shape(name)
        column = "city" if name == "mode" else "member"
        assert isinstance(shape.source, BlockTally)
        for rows in combinations_with_replacement(ROWS, 3):
            (votes,) = shape.exact(block_reference(card(COLUMNS), rows, shape.source, in_one))
            counts = Counter(row[column] for row in rows if row[column] is not None)
            best = max(values, key=lambda value: counts[value])
            assert votes == tuple(int(bool(counts) and each == best) for each in values)


# Influence of one person


def block_values(
    shape: PostProcessedShape, rows: Sequence[Row], placing: Placing, query: Any
) -> list[Any]:
    """The value of each block that is then aggregated."""
    assert isinstance(shape.source, BlockTally)
    counts = block_reference(card(COLUMNS), rows, shape.source, placing)
    if isinstance(query.statistic, BlockMode):
        votes = {block: code for block, code in counts}  # noqa: C416 - pairs, in fact
        return [votes.get(block) for block in range(query.blocks)]
    return list(shape.exact(counts)[0])


def by_place(rows: Counted) -> list[int]:
    """A saboteur: contiguous parts of the table."""
    return [place % BLOCKS for place in range(len(rows))]


def by_first(rows: Counted) -> list[int]:
    """A saboteur: the k-th row with the same first reading, ignoring its other readings."""
    placed = by_readings(BLOCKS, "a")  # with some seeds, this few rows show nothing
    return placed([(each[:1], row) for each, row in rows])


def most_changed(
    name: str, placing: Placing, relation: str = "add_remove", blocks: int = BLOCKS
) -> int:
    """Largest number of changed blocks, over all neighbours of small tables.

    A row may be added at two positions.
    """
    query, shape = query_and_shape(name, blocks=blocks)
    most, size = 0, 5 if name in ("category", "two") else 4  # three terms need three rows
    known: dict[tuple[int, ...], list[Any]] = {}

    def values_of(table: tuple[int, ...]) -> list[Any]:
        if table not in known:
            known[table] = block_values(shape, [ROWS[i] for i in table], placing, query)
        return known[table]

    for table in combinations_with_replacement(range(len(ROWS)), size):
        for row in range(len(ROWS)):
            if relation == "add_remove":
                others = [(row, *table), (*table, row)]
            else:
                others = [(*table[:i], row, *table[i + 1 :]) for i in range(size)]
            for other in others:
                pairs = zip(values_of(table), values_of(other), strict=True)
                most = max(most, sum(a != b for a, b in pairs))
    return most


@pytest.mark.parametrize("relation", thorough_after(1, ["add_remove", "replace_one"]))
@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_no_more_blocks_change_than_are_charged(name: str, relation: str) -> None:
    _, shape = query_and_shape(name, card(COLUMNS, neighbours=relation))
    paid = shape.public_facts["blocks_changed"]
    assert paid == (1 if relation == "add_remove" else 2)
    blocks = paid + 1  # so that more blocks could change
    changed = [
        most_changed(name, by_readings(blocks, seed), relation, blocks) for seed in ("a", "b")
    ]
    assert max(changed) <= paid
    # With this few rows in three blocks, a fit of three terms is never defined, and a count stays.
    still = relation == "replace_one" and name in ("count", "category", "two")
    assert max(changed) >= (not still)


@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_blocks_by_position_are_caught(name: str) -> None:
    """A row before all others moves every block, but not the number of rows of a kind."""
    assert most_changed(name, by_place) > (name != "count")


@pytest.mark.parametrize("name", ["ratio", "slope", "intercept", "through 0", "two"])
def test_blocks_by_the_first_reading_alone_are_caught(name: str) -> None:
    """Other readings distinguish rows with one first reading, and their order is not public."""
    assert most_changed(name, by_first) > 1


THREE = 3
PERSONS = {"a": [0, 1, 2], "b": [3, 3], "c": [5, 1], "d": [4, 0], "e": [2, 5, 5]}


def of_persons(who: str) -> list[Row]:
    return [{**ROWS[i], "who": person} for person in who for i in PERSONS[person]]


def by_first_row(rows: Counted) -> list[int]:
    """A saboteur: by the number of the person's first row, which identifies persons too."""
    first: dict[str, int] = {}
    for number, (_, row) in enumerate(rows):
        first.setdefault(row["who"], number)
    return [first[row["who"]] % THREE for _, row in rows]


def most_changed_by_a_person(name: str, placing: Placing, relation: str) -> int:
    """Largest number of changed blocks over all subsets of five persons.

    Any person may be added, or replace another.
    """
    query, shape = query_and_shape(name, card(COLUMNS, rows_max=3), THREE)
    most = 0
    for size in range(5):
        for table in combinations("abcde", size):
            before = block_values(shape, of_persons("".join(table)), placing, query)
            for person in set("abcde") - set(table):
                gone = table if relation == "replace_one" else ("",)
                for one in gone:
                    stay = "".join(each for each in table if each != one)
                    after = block_values(
                        shape, of_persons("".join(sorted(stay + person))), placing, query
                    )
                    pairs = zip(before, after, strict=True)
                    most = max(most, sum(a != b for a, b in pairs))
    return most


@pytest.mark.parametrize("relation", thorough_after(1, ["add_remove", "replace_one"]))
@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_a_person_with_many_rows_changes_as_many_blocks_as_one_with_one_row(
    name: str, relation: str
) -> None:
    _, shape = query_and_shape(name, card(COLUMNS, neighbours=relation, rows_max=3))
    assert isinstance(shape.source, BlockTally)
    assert shape.source.persons
    paid = shape.public_facts["blocks_changed"]
    assert paid == (1 if relation == "add_remove" else 2)
    placings = [by_person(THREE, seed, "who") for seed in ("a", "b", "c")]
    found = [most_changed_by_a_person(name, each, relation) for each in placings]
    assert 1 <= max(found) <= paid


# Five persons are too few for the others: a block of one person gives the same value, or none.
SEEN = sorted({*ALL, *MODES} - {"quantile", "category", "two"})


@pytest.mark.parametrize("name", SEEN)
def test_persons_by_their_first_row_are_caught(name: str) -> None:
    """A new person moves the blocks of all later ones."""
    assert most_changed_by_a_person(name, by_first_row, "add_remove") > 1


@pytest.mark.parametrize("name", ["mean", "sum", "max", "ratio", "slope", "mode"])
def test_blocks_of_rows_are_caught_if_persons_have_several(name: str) -> None:
    placing = by_readings(THREE, "seed")
    assert most_changed_by_a_person(name, placing, "add_remove") > 1


@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    query, shape = query_and_shape(name)
    placing = by_readings(BLOCKS, "seed")
    for rows in (ROWS[:4], [ROWS[0], ROWS[1], ROWS[0], ROWS[4]]):
        found = {tuple(block_values(shape, each, placing, query)) for each in permutations(rows)}
        assert len(found) == 1


# Elimination


def test_elimination_gives_determinants_and_detects_singular_matrices() -> None:
    """With as many points as dimensions, and with one less."""
    for size, spare in product((1, 2, 4), (0, 1)):
        points = np.array(
            [[(7 * i + 3) ** (j + 1) % 11 - 4 for j in range(size)] for i in range(size - spare)],
            dtype=int,
        ).reshape(-1, size)
        gram = (points.T @ points).tolist()
        rows = [[*line, 1] for line in gram]
        found = eliminate(rows, size - 1) and rows[-1][size - 1]
        exact = solved([[Fraction(n) for n in line] for line in gram], [Fraction(1)] * size)
        assert bool(found) == (exact is not None)
        if exact is not None:
            assert Fraction(rows[-1][size], rows[-1][size - 1]) == exact[-1]
            assert round(np.linalg.det(np.array(gram))) == rows[-1][size - 1]
