"""Blocks of rows: each row is in one block, results of blocks, and one row changes one block."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from app.data.card import Card, Dataset
from app.queries.block_tally import (
    Added,
    AtRanks,
    BlockCounts,
    BlockTally,
    Commonest,
    Given,
    Meets,
    RowReading,
    Steps,
    Trimmed,
)
from app.queries.tally import CategoryIndex, CentredBucket, Compare, Condition, EqualsValue
from tests.engines.remote.tables import Room, card_of, stored, write_csv
from tests.engines.sql.block_reference import block_reference, by_lot, by_readings

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": -5, "high": 50},
    {"name": "kept", "type": "boolean"},
    {"name": "kind", "type": "category", "values": ["a", "b", "c"]},
]
CARD = card_of(*COLUMNS)
BLOCKS = 4
TABLE = [3, 3, 3, 3, 7, 9, -5, 50, 12, 12, 4, 4, 8, 21]
X = Steps("x")
Row = dict[str, Any]


def row_of(value: Any) -> Row:
    """A row whose value does not determine its kind: 12 is once `a` and once `b`."""
    return {"x": value, "kept": value != 9, "kind": None if value == 7 else "abc"[(value or 0) % 3]}


def rows_of(values: list[Any]) -> list[Row]:
    seen = Counter[Any]()
    rows = []
    for value in values:
        seen[value] += 1
        rows.append({**row_of(value), **({"kind": "b"} if seen[value] == 2 else {})})
    return rows


class Prepared(Room):
    """A room for all tests of this file, which ask about the same tables: each is prepared once."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, open_versions_max=64)
        self.tables: dict[str, Dataset] = {}

    def table(self, rows: list[Row], card: Card, seed: str = "seed") -> Dataset:
        key = f"t{sha256(repr((rows, seed)).encode()).hexdigest()}"
        if key not in self.tables:
            shown = [{**row, "kept": str(row["kept"]).lower()} for row in rows]
            write_csv(self.data / f"{key}.csv", shown)
            self.tables[key] = self.prepared(f"{key}.csv", card, version_id=key, seed=seed)
        return self.tables[key]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    room = Prepared(tmp_path_factory.mktemp("blocks"))
    yield room
    room.engine.close()


def tally_of(
    given: Given, *readings: RowReading, blocks: int = BLOCKS, where: Condition | None = None
) -> BlockTally:
    return BlockTally(where, blocks, readings, given)


ALL: dict[str, BlockTally] = {
    "sums": tally_of(Added(((0,),)), X),
    "squares": tally_of(Added(((0,), (0, 0))), CentredBucket("x", -5, 4, 0)),
    "filtered": tally_of(Added(((0,),)), X, where=Compare("kept", "==", True)),
    "counts": tally_of(Added()),
    "shares": tally_of(Added(((0,),)), Meets(Compare("x", ">", 7))),
    "sums of two": tally_of(Added(((0,), (1,))), X, CategoryIndex("kept")),
    "products": tally_of(
        Added(((0,), (1,), (0, 0), (0, 1), (1, 1))),
        CentredBucket("x", -5, 1, 3),
        EqualsValue("kind", "b"),
    ),
    "middle": tally_of(AtRanks(((1, 2),)), X),
    "ends": tally_of(AtRanks(((0, 1), (9, 10), (1, 1))), X),
    "trimmed": tally_of(Trimmed((1, 5)), X),
    "commonest": tally_of(Commonest(), CategoryIndex("kind")),
    "commonest of two": tally_of(Commonest(), CategoryIndex("kept")),
    "nobody": tally_of(Added(((0,),)), X, where=Compare("x", ">", 60)),
}


Blocks = dict[int, tuple[int, ...]]


def by_block(counts: BlockCounts) -> Blocks:
    return {block: tuple(numbers) for block, *numbers in counts}


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("blocks", [1, BLOCKS, 1000])
def test_blocks_are_those_of_the_reference_in_every_order_of_rows(
    room: Prepared, name: str, blocks: int
) -> None:
    tally = ALL[name]
    tally = BlockTally(tally.where, blocks, tally.readings, tally.given)
    rows = rows_of([*TABLE, None, None])
    expected = block_reference(CARD, rows, tally, by_readings(blocks, "seed"))
    assert (expected == []) == (name == "nobody")
    assert sorted(room.engine.blocks(room.table(rows, CARD), tally)) == expected
    assert sorted(room.engine.blocks(room.table(rows[::-1], CARD), tally)) == expected


@pytest.mark.parametrize("name", list(ALL))
def test_an_added_row_changes_one_block(room: Prepared, name: str) -> None:
    """Brute force over possible rows, including rows that are present many times."""
    tally, rows = ALL[name], rows_of(TABLE)
    before = by_block(room.engine.blocks(room.table(rows, CARD), tally))
    changed = Counter[int]()
    for number, value in enumerate([-5, 3, 7, 12, 30, 50, None]):
        table = [{**row_of(value), "kind": "cab"[number % 3]}, *rows]
        after = by_block(room.engine.blocks(room.table(table, CARD), tally))
        moved = [b for b in range(BLOCKS) if before.get(b) != after.get(b)]
        assert len(moved) <= 1
        changed.update(moved)
    if name == "sums":
        assert len(changed) > 1  # the seed spreads them


# Persons with several rows

BY_PERSON = card_of(*COLUMNS, person={"kind": "column", "column": "who", "rows_max": 3})
PERSONS = [f"p{number}" for number in range(12)]


def persons_rows(persons: list[str]) -> list[Row]:
    """Three rows per person, equal to rows of others."""
    return [
        {**row_of(TABLE[(int(who[1:]) * step) % len(TABLE)]), "who": who}
        for who in persons
        for step in (1, 2, 5)
    ]


def of_persons(room: Prepared, persons: list[str], seed: str = "seed") -> Dataset:
    return room.table(persons_rows(persons), BY_PERSON, seed)


@pytest.mark.parametrize("name", list(ALL))
def test_all_rows_of_a_person_are_in_one_block(room: Prepared, name: str) -> None:
    """This holds for all other persons and every order. Removing a person changes one block."""
    tally = replace(ALL[name], persons=True)
    table = persons_rows(PERSONS)
    placing = by_lot(BY_PERSON, table, BLOCKS, "seed", "who")
    expected = block_reference(BY_PERSON, table, tally, placing)
    assert sorted(room.engine.blocks(of_persons(room, PERSONS), tally)) == expected
    assert sorted(room.engine.blocks(of_persons(room, PERSONS[::-1]), tally)) == expected
    for gone in ("p0", "p7"):
        left = of_persons(room, [who for who in PERSONS if who != gone])
        after = by_block(room.engine.blocks(left, tally))
        before = by_block(expected)
        assert sum(before.get(b) != after.get(b) for b in range(BLOCKS)) <= 1


def blocks_of(room: Prepared, table: list[Row], tally: BlockTally) -> Blocks:
    return by_block(room.engine.blocks(room.table(table, BY_PERSON), tally))


@pytest.mark.parametrize("name", ["sums", "middle", "commonest"])
def test_adding_removing_or_replacing_a_person_changes_no_other_block(
    room: Prepared, name: str
) -> None:
    """Brute force over all twelve: each removed, each with other rows, each another person.

    The block hash depends on a person's own rows, so other rows may be in another block: at most
    two blocks change.
    """
    tally, whole = replace(ALL[name], persons=True), persons_rows(PERSONS)
    before = blocks_of(room, whole, tally)
    moves = Counter[int]()
    for who in PERSONS:
        others = [row for row in whole if row["who"] != who]
        own = [row for row in whole if row["who"] == who]
        neighbours = {
            "gone": (others, 1),
            "otherwise": ([*others, *({**row, "x": 50 - i} for i, row in enumerate(own))], 2),
            "replaced": ([*({**row, "who": f"new {who}"} for row in own), *others], 2),
        }
        for kind, (table, most) in neighbours.items():
            after = blocks_of(room, table, tally)
            moved = sum(before.get(b) != after.get(b) for b in range(BLOCKS))
            assert moved <= most, (kind, who)
            moves[moved] += 1
    if name == "sums":  # a vote or a median may stay the same
        assert moves[2] > 0


def test_persons_are_spread_evenly_over_blocks(room: Prepared) -> None:
    """3,000 persons of two rows are in 10 blocks. Each count is binomial with deviation 16.4.

    One is off by 90 with probability below 1e-6.
    """
    table = [{**row_of(i % 7), "who": f"p{i % 3000}"} for i in range(6000)]
    wanted = replace(tally_of(Added(), blocks=10), persons=True)
    counts = [numbers[0] for numbers in blocks_of(room, table, wanted).values()]
    assert len(counts) == 10
    assert all(count % 2 == 0 for count in counts)
    assert max(abs(count // 2 - 300) for count in counts) < 90


def test_the_person_number_would_be_no_block_hash(room: Prepared) -> None:
    """It changes with earlier persons: most of the others would move to another block."""

    def numbers(persons: list[str], seed: str = "seed") -> dict[int, int]:
        """Person number by block hash; the last stored column is the row's position."""
        dataset = of_persons(room, persons, seed)
        room.engine.close()
        rows = stored(room, dataset)
        return {row[-3]: row[-2] for row in rows}

    before, after = numbers(PERSONS), numbers(PERSONS[1:])
    assert len(before) == 12
    assert set(after) < set(before)
    assert sum(before[lot] != after[lot] for lot in after) > 5
    assert not set(before) & set(numbers(PERSONS, seed="another"))


def test_blocks_are_even_and_another_seed_changes_them(room: Prepared) -> None:
    """2,000 equal values are in 10 blocks: a block is off by 60 with probability below 1e-4."""
    tally = tally_of(Added(), X, blocks=10)
    table = [row_of(7)] * 2000
    dataset = room.table(table, CARD)
    counts = [numbers[0] for numbers in by_block(room.engine.blocks(dataset, tally)).values()]
    assert len(counts) == 10
    assert fmean(counts) == 200
    assert max(abs(count - 200) for count in counts) < 75
    again = room.table(table, CARD, seed="another")
    assert room.engine.blocks(again, tally) != room.engine.blocks(dataset, tally)
