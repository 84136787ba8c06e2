"""Aggregates over persons in DuckDB, compared with plain Python; and the influence of one
person.
"""

import hashlib
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from app.data.card import Dataset
from app.queries.tally import (
    ByEdges,
    ByValues,
    Compare,
    Condition,
    Exact,
    OneOf,
    Persons,
    PersonTotal,
    Tally,
)
from tests.engines.remote.tables import Room, card_of, stored, write_csv
from tests.queries.sums.persons import Person, tallied_persons

CITIES = ("Bern", "Chur", "Genf")
CARD = card_of(
    {"name": "x", "type": "integer", "low": -9, "high": 9},
    {"name": "city", "type": "category", "values": list(CITIES)},
    {"name": "share", "type": "number", "low": -1.5, "high": 2.5},
    person={"kind": "column", "column": "id", "rows_max": 4},
)
BY_CITY = ByValues("city", CITIES)
BY_X = ByEdges("x", (-9.0, -3.0, 0.0, 9.0))
# Intervals that engines find by a join with a list: many even ones, and many uneven ones.
BY_EVEN = ByEdges("share", tuple(i / 10 - 1.5 for i in range(41)))
BY_UNEVEN = ByEdges("share", tuple(4 * (i / 80) ** 2 - 1.5 for i in range(81)))
STEP = 1 << 32  # of `share`, in a whole one


def made_rows(seed: int, persons: int, rows_max: int = 7) -> list[dict[str, Any]]:
    def one_of(options: list[Any], *of: object) -> Any:
        digest = hashlib.sha256(repr((seed, *of)).encode()).digest()
        return options[int.from_bytes(digest) % len(options)]

    rows = [
        {
            "id": one_of(["p0", "p0", "", None], "id", n) if who == 0 else f"p{who}",
            "x": one_of([None, -20, -9, -4, -3, 0, 0, 5, 9, 30], "x", who, n),
            "city": one_of([None, "Basel", *CITIES], "city", who, n),
            "share": one_of([None, -1.5, 0.1, 0.7, 2.5], "share", who, n),
        }
        for who in range(persons)
        for n in range(one_of(list(range(rows_max + 1)), who))
    ]
    rows.sort(key=lambda row: repr(row)[::-1])  # mix the persons
    return rows or [{"id": "p", "x": 1, "city": "Bern", "share": 0.1}]


def persons_of(room: Room, dataset: Dataset) -> list[Person]:
    """Stored rows of every person, each in their own order."""
    rows = stored(room, dataset)
    rows_by_person: dict[int, list[tuple[int, Any]]] = {}
    for x, city, share, _steps, _lot, person, position in rows:
        row = {"x": x, "city": None if city is None else CITIES[city], "share": share}
        rows_by_person.setdefault(person, []).append((position, row))
    for held in rows_by_person.values():
        held.sort(key=lambda each: each[0])
        assert [position for position, _ in held] == list(range(1, len(held) + 1))
    return [[row for _, row in held] for held in rows_by_person.values()]


GROUPS = ((), (BY_CITY,), (BY_X,), (BY_CITY, BY_X), (BY_EVEN,), (BY_CITY, BY_UNEVEN))
WHERES: tuple[Condition | None, ...] = (None, Compare("x", ">", -4), OneOf("city", CITIES[:2]))
AGGREGATES: tuple[tuple[Any, ...], ...] = (
    (Persons(),),
    (Persons("x"),),
    (PersonTotal("x", -5, 12), Persons("x")),
    (PersonTotal("share", -STEP // 2, STEP),),
)
TALLIES = [
    Tally(where, groups, aggregates, groups_max=groups_max)
    for where, groups, aggregates in product(WHERES, GROUPS, AGGREGATES)
    for groups_max in ((None, 1, 2) if groups else (None,))
]


def a_few_seeds(full: int, *, quick: int) -> list[Any]:
    """All seeds in `make test`, the first ones in `make check`."""
    more = [pytest.param(seed, marks=pytest.mark.thorough) for seed in range(quick, full)]
    return [*range(quick), *more]


@pytest.mark.parametrize("seed", a_few_seeds(3, quick=1))
def test_tallies_of_persons_are_those_of_the_reference(room: Room, seed: int) -> None:
    write_csv(room.data / "t.csv", made_rows(seed, 60))
    dataset = room.prepared("t.csv", CARD)
    table = persons_of(room, dataset)
    room.engine.close()
    assert max(map(len, table)) == 4
    answers = {tally: room.ask(dataset, tally) for tally in TALLIES}
    for tally, found in answers.items():
        assert found == tallied_persons(CARD, tally, table), tally
    few = [tally for tally in TALLIES if tally.groups_max is not None]
    assert any(answers[tally] != answers[replace(tally, groups_max=None)] for tally in few)


def test_persons_with_one_row_are_tallied_by_rows(room: Room) -> None:
    write_csv(room.data / "t.csv", made_rows(5, 40))
    people: list[dict[str, Any]] = [
        {"kind": "row"},
        {"kind": "column", "column": "id", "rows_max": 1},
    ]
    for person in people:
        card = CARD.model_validate({**CARD.model_dump(), "person": person})
        dataset = room.prepared("t.csv", card, version_id=person["kind"])
        rows = [
            [{"x": x, "city": None if city is None else CITIES[city], "share": share}]
            for x, city, share, _ in stored(room, dataset)
        ]
        room.engine.close()
        for tally in TALLIES:
            assert room.ask(dataset, tally) == tallied_persons(card, tally, rows), tally


def apart(before: Exact, after: Exact) -> int:
    """L1 distance of one aggregate."""
    return sum(abs(a - b) for a, b in zip(before[0], after[0], strict=True))


@pytest.mark.parametrize("seed", a_few_seeds(8, quick=2))
def test_removing_a_person_changes_no_more_than_is_charged(room: Room, seed: int) -> None:
    """Groups, totals and rows of the others stay the same.

    The test compares whole tables with and without one person. Brute force in tests/queries proves
    the bound.
    """
    rows = made_rows(100 + seed, 6)
    write_csv(room.data / "all.csv", rows)
    everyone = room.prepared("all.csv", CARD)
    rest = [row for row in rows if row["id"] != "p3"] or [dict.fromkeys(rows[0])]
    write_csv(room.data / "rest.csv", rest, list(rows[0]))
    without = room.prepared("rest.csv", CARD)
    charged = {Persons(): 1, Persons("x"): 1, PersonTotal("share", -STEP // 2, STEP): STEP}
    for tally in TALLIES:
        if len(tally.aggregates) > 1:
            continue
        groups = 4 if tally.groups_max is None else tally.groups_max
        moved = apart(room.ask(everyone, tally), room.ask(without, tally))
        assert moved <= charged[tally.aggregates[0]] * (groups if tally.groups else 1), tally


def test_totals_beyond_64_bits_are_clamped_without_an_error(room: Room) -> None:
    far = 1 << 53
    card = card_of(
        {"name": "x", "type": "integer", "low": -far, "high": far},
        person={"kind": "column", "column": "id", "rows_max": 5000},
    )
    rows = [{"id": "up", "x": far}] * 3000 + [{"id": "down", "x": -far}] * 3000
    write_csv(room.data / "t.csv", rows)
    dataset = room.prepared("t.csv", card)
    most = 1 << 60
    assert room.ask(dataset, Tally(None, (), (PersonTotal("x", -5, most),))) == ((most - 5,),)
    assert room.ask(dataset, Tally(None, (), (PersonTotal("x", -most, 7),))) == ((7 - most,),)
