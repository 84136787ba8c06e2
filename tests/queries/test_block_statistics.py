"""Statistics of blocks: each is the plain one, and of all neighbours few blocks give another."""

import datetime
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from statistics import pvariance
from typing import Any

import numpy as np
import pytest

from app.datasets import Card
from app.queries.block_statistics import BlockMode
from app.queries.block_tally import BlockTally
from app.queries.derived_shape import DerivedShape
from app.queries.elimination import eliminate
from app.queries.sample_aggregate import SampleAggregate
from tests.engines.block_reference import (
    Placing,
    Readings,
    Row,
    block_reference,
    by_person,
    by_readings,
)
from tests.queries.cards import card, question

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": 0, "high": 9},
    {"name": "y", "type": "number", "low": 0.5, "high": 8},
    {"name": "city", "type": "category", "values": ["Bern", "Chur", "Zürich"]},
    {"name": "member", "type": "boolean"},
    {"name": "born", "type": "date", "low": "1950-01-01", "high": "2010-12-31"},
]
BLOCKS = 2
Plain = Callable[[list[Row]], Fraction | None]


def there(rows: list[Row], *names: str) -> list[Row]:
    return [row for row in rows if all(row[name] is not None for name in names)]


def numbers(rows: list[Row], name: str) -> list[Fraction]:
    return sorted(Fraction(row[name]) for row in there(rows, name))


def at_rank(values: list[Fraction], q: Fraction) -> Fraction:
    return values[min(len(values), max(1, math.ceil(q * len(values)))) - 1]


def ranked(name: str, q: Fraction) -> Plain:
    def value(rows: list[Row]) -> Fraction | None:
        values = numbers(rows, name)
        return at_rank(values, q) if values else None

    return value


def spread(rows: list[Row]) -> Fraction | None:
    values = numbers(rows, "x")
    quarters = [at_rank(values, Fraction(i, 4)) for i in (1, 3)] if values else []
    return quarters[1] - quarters[0] if quarters else None


def mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def trimmed(rows: list[Row]) -> Fraction | None:
    values = numbers(rows, "y")
    cut = len(values) * 3 // 10
    return mean(values[cut : len(values) - cut])


def variance(rows: list[Row]) -> Fraction | None:
    values = numbers(rows, "x")
    return pvariance(values) if values else None


def share(rows: list[Row], met: Callable[[Row], bool]) -> Fraction | None:
    return Fraction(sum(map(met, rows)), len(rows)) if rows else None


def over(rows: list[Row]) -> Fraction | None:
    both = there(rows, "x", "y")
    total = sum(numbers(both, "x"), Fraction(0))
    return total / sum(numbers(both, "y"), Fraction(0)) if both else None


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """By exchanging rows and fractions, which the one that is tested does without."""
    rows = [[*line, last] for line, last in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [each / rows[k][k] for each in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def coarse(row: Row) -> Fraction:
    """y on the grid of a regression, which has at most 2^16 steps between the bounds."""
    exponent = 30  # of y: 8 is near 2^34 steps
    steps, low = math.floor(Fraction(row["y"]) * 2**exponent), 2**exponent // 2
    grain = 1 << ((8 * 2**exponent - low).bit_length() - 16)
    return Fraction(low + (steps - low) // grain * grain, 2**exponent)


def fitted(features: list[str], wanted: int, intercept: bool) -> Plain:
    """The coefficients of x on y and the like; those of a category are of Chur and Zürich."""

    def value(rows: list[Row]) -> Fraction | None:
        lines = []
        for row in there(rows, "x", *features):
            line = [Fraction(1)] * intercept
            for name in features:
                if name == "city":
                    line += [Fraction(row["city"] == each) for each in ("Chur", "Zürich")]
                else:
                    line.append(coarse(row) if name == "y" else Fraction(row[name]))
            lines.append((line, Fraction(row["x"])))
        size = range(len(lines[0][0])) if lines else range(0)
        matrix = [[sum((f[i] * f[j] for f, _ in lines), Fraction(0)) for j in size] for i in size]
        found = solved(matrix, [sum((f[i] * y for f, y in lines), Fraction(0)) for i in size])
        return found[wanted] if found else None

    return value


def regression(features: list[str], coefficient: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "linear_regression",
        "outcome": "x",
        "features": features,
        "coefficient": coefficient,
        **more,
    }


MEMBERS = {"column": "member", "op": "==", "value": True}
# The statistic, its bounds, and the same in plain words.
ALL: dict[str, tuple[dict[str, Any], float, float, Plain]] = {
    "mean": ({"kind": "mean", "column": "y"}, 0, 9, lambda rows: mean(numbers(rows, "y"))),
    "sum": ({"kind": "sum", "column": "x"}, -1, 40, lambda rows: Fraction(sum(numbers(rows, "x")))),
    "count": ({"kind": "count"}, -2.5, 3, lambda rows: Fraction(len(rows))),
    "variance": ({"kind": "variance", "column": "x"}, 0, 30, variance),
    "median": ({"kind": "median", "column": "x"}, 0, 9, ranked("x", Fraction(1, 2))),
    "quantile": ({"kind": "quantile", "column": "y", "q": 0.9}, 0, 9, ranked("y", Fraction(9, 10))),
    "min": ({"kind": "min", "column": "x"}, 0, 9, ranked("x", Fraction(0))),
    "max": ({"kind": "max", "column": "x"}, 0, 9, ranked("x", Fraction(1))),
    "iqr": ({"kind": "iqr", "column": "x"}, 0, 9, spread),
    "trimmed_mean": ({"kind": "trimmed_mean", "column": "y", "trim": 0.3}, 0, 9, trimmed),
    "share": (
        {"kind": "ratio", "numerator": {"where": MEMBERS}},
        0,
        1,
        lambda rows: share(rows, lambda row: row["member"] is True),
    ),
    "ratio": (
        {"kind": "ratio", "numerator": {"column": "x"}, "denominator": {"column": "y"}},
        0,
        5,
        over,
    ),
    "cdf": (
        {"kind": "cdf", "column": "x", "edge": 4.5},
        0,
        1,
        lambda rows: share(there(rows, "x"), lambda row: row["x"] <= 4.5),
    ),
    "cdf of days": (
        {"kind": "cdf", "column": "born", "edge": "1999-12-31"},
        0,
        1,
        lambda rows: share(there(rows, "born"), lambda row: row["born"].year < 2000),
    ),
    "slope": (regression(["y"], "y"), -5, 5, fitted(["y"], 1, True)),
    "intercept": (regression(["y"], "(intercept)"), -20, 20, fitted(["y"], 0, True)),
    "through 0": (regression(["y"], "y", intercept=False), -5, 5, fitted(["y"], 0, False)),
    "flag": (regression(["member"], "member"), -9, 9, fitted(["member"], 1, True)),
    "category": (regression(["city"], "city=Zürich"), -9, 9, fitted(["city"], 2, True)),
    "two": (regression(["y", "member"], "y"), -9, 9, fitted(["y", "member"], 1, True)),
}
MODES = {"mode": {"kind": "mode", "column": "city"}, "of two": {"kind": "mode", "column": "member"}}
DAY = datetime.date
ROWS: list[Row] = [
    dict(zip(("x", "y", "city", "member", "born"), values, strict=True))
    for values in (
        (1, 7.25, "Bern", True, DAY(1999, 12, 31)),
        (9, 7.25, "Zürich", False, DAY(2000, 1, 1)),
        (1, 0.1 + 0.7, "Chur", False, DAY(1960, 2, 3)),
        (5, None, "Bern", None, None),
        (None, 2.0, None, True, DAY(2001, 5, 5)),
        (4, 4.5, "Chur", True, DAY(1980, 1, 1)),
    )
]


def asked(
    name: str, declared: Card | None = None, blocks: int = BLOCKS
) -> tuple[SampleAggregate, DerivedShape]:
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
def test_a_block_gives_the_plain_statistic_of_its_rows(name: str) -> None:
    """Over all tables of at most four rows; what is not decided is the middle."""
    query, shape = asked(name)
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
    """Of ties the first on the card wins, and a block without values gives no vote."""
    for name, values in (("mode", ["Bern", "Chur", "Zürich"]), ("of two", [False, True])):
        _, shape = asked(name)
        column = "city" if name == "mode" else "member"
        assert isinstance(shape.source, BlockTally)
        for rows in combinations_with_replacement(ROWS, 3):
            (votes,) = shape.exact(block_reference(card(COLUMNS), rows, shape.source, in_one))
            counts = Counter(row[column] for row in rows if row[column] is not None)
            best = max(values, key=lambda value: counts[value])
            assert votes == tuple(int(bool(counts) and each == best) for each in values)


# What one person can do


def gives(shape: DerivedShape, rows: Sequence[Row], placing: Placing, query: Any) -> list[Any]:
    """What each block gives, as it is aggregated."""
    assert isinstance(shape.source, BlockTally)
    counts = block_reference(card(COLUMNS), rows, shape.source, placing)
    if isinstance(query.statistic, BlockMode):
        votes = {block: code for block, code in counts}  # noqa: C416 - pairs, in fact
        return [votes.get(block) for block in range(query.blocks)]
    return list(shape.exact(counts)[0])


def by_place(rows: Counted) -> list[int]:
    """A saboteur: stretches of the table."""
    return [place % BLOCKS for place in range(len(rows))]


def by_first(rows: Counted) -> list[int]:
    """Another: the k-th row that has the same first reading, whatever else is read of it."""
    placed = by_readings(BLOCKS, "seed")
    return placed([(each[:1], row) for each, row in rows])


def most_changed(name: str, placing: Placing, relation: str = "add_remove") -> int:
    """The most blocks that give something else, over all neighbours of tables of a few rows and two
    places at which a row may come."""
    query, shape = asked(name)
    most, size = 0, 5 if name in ("category", "two") else 4  # three terms take three rows
    known: dict[tuple[int, ...], list[Any]] = {}

    def given(table: tuple[int, ...]) -> list[Any]:
        if table not in known:
            known[table] = gives(shape, [ROWS[i] for i in table], placing, query)
        return known[table]

    for table in combinations_with_replacement(range(len(ROWS)), size):
        for row in range(len(ROWS)):
            if relation == "add_remove":
                others = [(row, *table), (*table, row)]
            else:
                others = [(*table[:i], row, *table[i + 1 :]) for i in range(size)]
            for other in others:
                pairs = zip(given(table), given(other), strict=True)
                most = max(most, sum(a != b for a, b in pairs))
    return most


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_no_more_blocks_change_than_are_paid_for(name: str, relation: str) -> None:
    _, shape = asked(name, card(COLUMNS, neighbours=relation))
    paid = shape.told["blocks_changed"]
    assert paid == (1 if relation == "add_remove" else 2)
    found = [most_changed(name, by_readings(BLOCKS, seed), relation) for seed in ("a", "b")]
    assert max(found) <= paid
    replaced = name == "count" and relation == "replace_one"  # there are as many as before
    assert max(found) >= (not replaced)


@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_blocks_by_place_are_found_out(name: str) -> None:
    """A row before all others moves every block; how many of a kind there are it does not move."""
    assert most_changed(name, by_place) > (name != "count")


@pytest.mark.parametrize("name", ["ratio", "slope", "intercept", "through 0", "two"])
def test_blocks_by_the_first_reading_alone_are_found_out(name: str) -> None:
    """Rows of one first reading are told apart by the others, and their order is no public one."""
    assert most_changed(name, by_first) > 1


THREE = 3
PERSONS = {"a": [0, 1, 2], "b": [3, 3], "c": [5, 1], "d": [4, 0], "e": [2, 5, 5]}


def of_persons(who: str) -> list[Row]:
    return [{**ROWS[i], "who": person} for person in who for i in PERSONS[person]]


def by_first_row(rows: Counted) -> list[int]:
    """A saboteur: by the number of the person's first row, which tells persons apart too."""
    first: dict[str, int] = {}
    for number, (_, row) in enumerate(rows):
        first.setdefault(row["who"], number)
    return [first[row["who"]] % THREE for _, row in rows]


def most_changed_by_a_person(name: str, placing: Placing, relation: str) -> int:
    """Over all tables of the five persons, each there or not, and all who may come, or come in
    place of another."""
    query, shape = asked(name, card(COLUMNS, rows_max=3), THREE)
    most = 0
    for size in range(5):
        for table in combinations("abcde", size):
            before = gives(shape, of_persons("".join(table)), placing, query)
            for person in set("abcde") - set(table):
                gone = table if relation == "replace_one" else ("",)
                for one in gone:
                    stay = "".join(each for each in table if each != one)
                    after = gives(shape, of_persons("".join(sorted(stay + person))), placing, query)
                    pairs = zip(before, after, strict=True)
                    most = max(most, sum(a != b for a, b in pairs))
    return most


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_a_person_of_many_rows_changes_as_many_blocks_as_one_of_one_row(
    name: str, relation: str
) -> None:
    _, shape = asked(name, card(COLUMNS, neighbours=relation, rows_max=3))
    assert isinstance(shape.source, BlockTally)
    assert shape.source.persons
    paid = shape.told["blocks_changed"]
    assert paid == (1 if relation == "add_remove" else 2)
    placings = [by_person(THREE, seed, "who") for seed in ("a", "b", "c")]
    found = [most_changed_by_a_person(name, each, relation) for each in placings]
    assert 1 <= max(found) <= paid


# Of the others five persons are too few: a block of one of them gives the same, or nothing.
SEEN = sorted({*ALL, *MODES} - {"quantile", "category", "two"})


@pytest.mark.parametrize("name", SEEN)
def test_persons_by_their_first_row_are_found_out(name: str) -> None:
    """Whoever comes moves the blocks of all who stand behind them."""
    assert most_changed_by_a_person(name, by_first_row, "add_remove") > 1


@pytest.mark.parametrize("name", ["mean", "sum", "max", "ratio", "slope", "mode"])
def test_blocks_of_rows_are_found_out_where_persons_have_several(name: str) -> None:
    placing = by_readings(THREE, "seed")
    assert most_changed_by_a_person(name, placing, "add_remove") > 1


@pytest.mark.parametrize("name", [*ALL, *MODES])
def test_the_order_of_rows_is_of_no_matter(name: str) -> None:
    query, shape = asked(name)
    placing = by_readings(BLOCKS, "seed")
    for rows in (ROWS[:4], [ROWS[0], ROWS[1], ROWS[0], ROWS[4]]):
        found = {tuple(gives(shape, each, placing, query)) for each in permutations(rows)}
        assert len(found) == 1


# Elimination


def test_elimination_gives_determinants_and_finds_what_is_singular() -> None:
    """Of so many points as there are dimensions, and of one less."""
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
