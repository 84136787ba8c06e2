"""A person declared to be in one cell keeps only the rows of one cell."""

import datetime
from collections import Counter
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import pytest

from app.data.card import Card, Dataset
from app.planning.cells import cells_to_charge
from app.queries.tally import ByEdges, ByValues, Compare, CountRows, IsMissing, Persons, Tally
from tests.engines.remote.tables import Room, card_of, stored, write_csv
from tests.engines.test_epochs import appended

CITIES = ("Bern", "Chur", "Genf")
COLUMNS: list[dict[str, Any]] = [
    {"name": "city", "type": "category", "values": list(CITIES)},
    {"name": "n", "type": "integer", "low": 0, "high": 99},
    {"name": "share", "type": "number", "low": -1.5, "high": 2.5},
    {"name": "seen", "type": "date", "low": "2020-01-01", "high": "2020-12-31"},
    {"name": "member", "type": "boolean"},
    {"name": "epoch", "type": "epoch", "high": 3},
]
CELLS: dict[str, dict[str, Any]] = {
    "category": {"column": "city"},
    "boolean": {"column": "member"},
    "integer": {"column": "n", "edges": [-0.5, 9.5, 50, 99]},
    "number": {"column": "share", "edges": [-2, 0, 0.7, 2.5]},
    "date": {"column": "seen", "edges": ["2020-01-01", "2020-02-01", "2020-12-31"]},
}


def card(cells: dict[str, Any], rows_max: int = 2, *, promised: bool = True) -> Card:
    person = {"kind": "column", "column": "id", "rows_max": rows_max}
    return card_of(*COLUMNS, person=person, cells={**cells, "one_per_person": promised})


def row(who: str, city: str | None = "Bern", n: int | None = 1, **more: Any) -> dict[str, Any]:
    day = datetime.date(2020, 1, 31)
    return {"id": who, "city": city, "n": n, "share": 0.1, "seen": day, "member": True, **more}


def cities(room: Room, dataset: Dataset) -> dict[int, Counter[int | None]]:
    """Number of rows per city, by person number."""
    rows_by_city: dict[int, Counter[int | None]] = {}
    person, city = -2, 0
    for stored_row in stored(room, dataset):
        rows_by_city.setdefault(stored_row[person], Counter())[stored_row[city]] += 1
    return rows_by_city


def prepared(room: Room, rows: list[dict[str, Any]], made: Card, name: str, seed: str) -> Dataset:
    write_csv(room.data / f"{name}.csv", rows)
    return room.prepared(f"{name}.csv", made, seed=seed, version_id=f"{name}-{seed}")


def test_a_person_is_in_one_cell_for_all_possible_rows(room: Room) -> None:
    persons = [
        chosen
        for count in range(1, 4)
        for chosen in combinations_with_replacement((*CITIES, None), count)
    ]
    rows = [
        row(f"p{i}", city, n) for i, chosen in enumerate(persons) for n, city in enumerate(chosen)
    ]
    for seed, rows_max in product(("one", "two"), (2, 3)):
        dataset = prepared(room, rows, card(CELLS["category"], rows_max), f"t{rows_max}", seed)
        kept = Counter(tuple(held.items()) for held in cities(room, dataset).values())
        expected: Counter[Any] = Counter()
        for chosen in persons:
            own = min(chosen, key=lambda city: (city is None, city))
            city_index = None if own is None else CITIES.index(own)
            expected[((city_index, min(chosen.count(own), rows_max)),)] += 1
        assert kept == expected


def test_without_the_declaration_the_rows_of_all_cells_are_kept(room: Room) -> None:
    """With this planted bug no row is dropped, and a person is in two cells."""
    rows = [row("ann", city) for city in CITIES]
    dataset = prepared(room, rows, card(CELLS["category"], 3, promised=False), "t", "seed")
    assert [len(held) for held in cities(room, dataset).values()] == [3]
    pinned = Tally(Compare("city", "==", "Bern"), (), (CountRows(),))
    assert cells_to_charge(pinned, dataset.card).cells is None
    assert cells_to_charge(pinned, card(CELLS["category"], 3)).cells == (0,)


@pytest.mark.parametrize("kind", CELLS)
def test_a_person_is_in_one_cell_for_every_kind_of_cells(room: Room, kind: str) -> None:
    made = card(CELLS[kind], rows_max=4)
    values: dict[str, list[Any]] = {
        "city": ["Genf", "Bern", None, "Chur"],
        "member": [True, False, None, True],
        "n": [50, 9, None, 10],
        "share": [0.7, -0.0, -1.5, 0.69],
        "seen": [datetime.date(2020, 2, 1), datetime.date(2020, 1, 31), None, None],
    }
    name = CELLS[kind]["column"]
    rows = [
        row(f"p{i}", **{"city": "Bern", "n": 1, name: values[name][turn]})
        for i, turns in enumerate(permutations(range(4), 2))
        for turn in turns
    ]
    dataset = prepared(room, rows, made, "t", "seed")
    assert made.cells is not None
    by: Any = ByValues(name, CITIES if kind == "category" else (False, True))
    if made.cells.edges is not None:
        by = ByEdges(name, made.cells.edges)
    # Each person is in a single cell, so the cells add up to all persons.
    cells, missing = Tally(None, (by,), (Persons(),)), Tally(IsMissing(name), (), (Persons(),))
    all_of_them = Tally(None, (), (Persons(),))

    def over(dataset: Dataset) -> int:
        (each,), ((none,),) = room.ask(dataset, cells), room.ask(dataset, missing)
        return sum(each) + none - room.ask(dataset, all_of_them)[0][0]

    assert over(dataset) == 0
    loose = card(CELLS[kind], rows_max=4, promised=False)
    assert over(prepared(room, rows, loose, "loose", "seed")) > 0, (
        "without the declaration it would be visible"
    )


def test_the_cell_of_a_person_depends_on_no_seed_and_no_other_column(room: Room) -> None:
    """Two names of the same rows put a person in the same cell, with and without the
    declaration.
    """
    rows = [row(f"p{i}", CITIES[(i * n) % 3], n) for i in range(9) for n in range(1, 5)]
    one = prepared(room, rows, card(CELLS["category"]), "one", "a-seed")
    few = Card.model_validate(
        {**card(CELLS["category"]).model_dump(), "columns": [COLUMNS[0], COLUMNS[1]]}
    )
    two = prepared(room, rows, few, "two", "another")
    room.engine.close()
    by_city = Tally(None, (ByValues("city", CITIES),), (Persons(),))
    assert room.ask(one, by_city) == room.ask(two, by_city)


def test_a_person_stays_in_their_cell_when_more_rows_arrive(room: Room) -> None:
    for cells in (CELLS["category"], {"column": "epoch"}):
        made = card(cells, rows_max=3)
        name = cells["column"]
        write_csv(room.data / f"{name}-a.csv", [row("ann", "Genf"), row("bob", None)])
        first = room.prepared(f"{name}-a.csv", made)
        later = [
            row("ann", "Bern", 2),
            row("ann", "Genf", 3),
            row("bob", "Chur"),
            row("cy", "Chur"),
        ]
        write_csv(room.data / f"{name}-b.csv", later)
        second = appended(room, first, f"{name}-b.csv")
        kept = sorted(stored(room, second), key=str)
        room.engine.close()
        epochs = room.engine.epochs(second, None)
        if name == "city":
            assert [(each[0], each[1]) for each in kept if each[0] is not None] == [
                (1, 1), (2, 1), (2, 3),
            ]  # fmt: skip
            assert epochs == (2, 2)
        else:
            assert epochs == (2, 1), "nobody of the first epoch is in the second one"
