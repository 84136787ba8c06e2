"""Blocks of rows: each row in one, what a block gives, and one row changes one of them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from app.data.card import Dataset
from app.queries.block_tally import (
    Added,
    AtRanks,
    BlockCounts,
    BlockTally,
    Commonest,
    Given,
    Meets,
    Reading,
    Steps,
    Trimmed,
)
from app.queries.tally import CategoryIndex, CentredBucket, Compare, Condition, EqualsValue
from tests.engines.remote.tables import Room, card_of, room_in, stored, write_csv
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
    """A kind that a value does not decide: 12 is once an `a` and once a `b`."""
    return {"x": value, "kept": value != 9, "kind": None if value == 7 else "abc"[(value or 0) % 3]}


def rows_of(values: list[Any]) -> list[Row]:
    seen = Counter[Any]()
    rows = []
    for value in values:
        seen[value] += 1
        rows.append({**row_of(value), **({"kind": "b"} if seen[value] == 2 else {})})
    return rows


def made(room: Room, rows: list[Row], name: str) -> Dataset:
    shown = [{**row, "kept": "true" if row["kept"] else "false"} for row in rows]
    write_csv(room.data / f"{name}.csv", shown, ["x", "kept", "kind"])
    return room.prepared(f"{name}.csv", CARD)


def asked(
    given: Given, *readings: Reading, blocks: int = BLOCKS, where: Condition | None = None
) -> BlockTally:
    return BlockTally(where, blocks, readings, given)


ALL: dict[str, BlockTally] = {
    "sums": asked(Added(((0,),)), X),
    "squares": asked(Added(((0,), (0, 0))), CentredBucket("x", -5, 4, 0)),
    "filtered": asked(Added(((0,),)), X, where=Compare("kept", "==", True)),
    "counts": asked(Added()),
    "shares": asked(Added(((0,),)), Meets(Compare("x", ">", 7))),
    "sums of two": asked(Added(((0,), (1,))), X, CategoryIndex("kept")),
    "products": asked(
        Added(((0,), (1,), (0, 0), (0, 1), (1, 1))),
        CentredBucket("x", -5, 1, 3),
        EqualsValue("kind", "b"),
    ),
    "middle": asked(AtRanks(((1, 2),)), X),
    "ends": asked(AtRanks(((0, 1), (9, 10), (1, 1))), X),
    "trimmed": asked(Trimmed((1, 5)), X),
    "commonest": asked(Commonest(), CategoryIndex("kind")),
    "commonest of two": asked(Commonest(), CategoryIndex("kept")),
    "nobody": asked(Added(((0,),)), X, where=Compare("x", ">", 60)),
}


Blocks = dict[int, tuple[int, ...]]


def by_block(counts: BlockCounts) -> Blocks:
    return {block: tuple(numbers) for block, *numbers in counts}


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("blocks", [1, BLOCKS, 1000])
def test_blocks_are_those_of_the_reference_in_whatever_order_rows_are(
    room: Room, name: str, blocks: int
) -> None:
    wanted = ALL[name]
    wanted = BlockTally(wanted.where, blocks, wanted.readings, wanted.given)
    rows = rows_of([*TABLE, None, None])
    expected = block_reference(CARD, rows, wanted, by_readings(blocks, "seed"))
    assert (expected == []) == (name == "nobody")
    assert sorted(room.engine.blocks(made(room, rows, "a"), wanted)) == expected
    assert sorted(room.engine.blocks(made(room, rows[::-1], "b"), wanted)) == expected


@pytest.mark.parametrize("name", list(ALL))
def test_one_row_more_changes_one_block(tmp_path: Path, name: str) -> None:
    """Brute force over what may come: also rows that are there many times already."""
    wanted, rows = ALL[name], rows_of(TABLE)
    with room_in(tmp_path) as room:
        before = by_block(room.engine.blocks(made(room, rows, "base"), wanted))
        changed = Counter[int]()
        for number, value in enumerate([-5, 3, 7, 12, 30, 50, None]):
            table = [{**row_of(value), "kind": "cab"[number % 3]}, *rows]
            after = by_block(room.engine.blocks(made(room, table, f"t{number}"), wanted))
            moved = [b for b in range(BLOCKS) if before.get(b) != after.get(b)]
            assert len(moved) <= 1
            changed.update(moved)
        if name == "sums":
            assert len(changed) > 1  # the seed spreads them


# Persons of several rows

BY_PERSON = card_of(*COLUMNS, person={"kind": "column", "column": "who", "rows_max": 3})
PERSONS = [f"p{number}" for number in range(12)]


def persons_rows(persons: list[str]) -> list[Row]:
    """Three rows of each, which are others' rows too."""
    return [
        {**row_of(TABLE[(int(who[1:]) * step) % len(TABLE)]), "who": who}
        for who in persons
        for step in (1, 2, 5)
    ]


def of_persons(room: Room, persons: list[str], name: str, seed: str = "seed") -> Dataset:
    shown = [{**row, "kept": str(row["kept"]).lower()} for row in persons_rows(persons)]
    write_csv(room.data / f"{name}.csv", shown, ["x", "kept", "kind", "who"])
    return room.prepared(f"{name}.csv", BY_PERSON, version_id=f"{name}-{seed}", seed=seed)


@pytest.mark.parametrize("name", list(ALL))
def test_all_rows_of_a_person_are_in_one_block(room: Room, name: str) -> None:
    """Whoever else there is, and in whatever order; a person who goes changes one block."""
    wanted = replace(ALL[name], persons=True)
    table = persons_rows(PERSONS)
    placing = by_lot(BY_PERSON, table, BLOCKS, "seed", "who")
    expected = block_reference(BY_PERSON, table, wanted, placing)
    assert sorted(room.engine.blocks(of_persons(room, PERSONS, "a"), wanted)) == expected
    assert sorted(room.engine.blocks(of_persons(room, PERSONS[::-1], "b"), wanted)) == expected
    for gone in ("p0", "p7"):
        left = of_persons(room, [who for who in PERSONS if who != gone], gone)
        after = by_block(room.engine.blocks(left, wanted))
        before = by_block(expected)
        assert sum(before.get(b) != after.get(b) for b in range(BLOCKS)) <= 1


def blocks_of(room: Room, table: list[Row], name: str, wanted: BlockTally) -> Blocks:
    shown = [{**row, "kept": str(row["kept"]).lower()} for row in table]
    write_csv(room.data / f"{name}.csv", shown, ["x", "kept", "kind", "who"])
    dataset = room.prepared(f"{name}.csv", BY_PERSON, version_id=name, seed="seed")
    return by_block(room.engine.blocks(dataset, wanted))


@pytest.mark.parametrize("name", ["sums", "middle", "commonest"])
def test_whoever_comes_goes_or_is_replaced_changes_no_other_block(
    tmp_path: Path, name: str
) -> None:
    """Brute force over all twelve: each gone, each with other rows, each another person. The lot
    hangs on a person's own rows, so one of other rows may be in another block: two at most."""
    wanted, whole = replace(ALL[name], persons=True), persons_rows(PERSONS)
    with room_in(tmp_path) as room:
        before = blocks_of(room, whole, "whole", wanted)
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
                after = blocks_of(room, table, f"{kind}-{who}", wanted)
                moved = sum(before.get(b) != after.get(b) for b in range(BLOCKS))
                assert moved <= most, (kind, who)
                moves[moved] += 1
        if name == "sums":  # a vote or a middle may stay as it was
            assert moves[2] > 0


def test_lots_of_persons_are_even(room: Room) -> None:
    """3,000 persons of two rows in 10 blocks: each count is binomial with deviation 16.4, so one is
    off by 90 with probability below 1e-6."""
    table = [{**row_of(i % 7), "who": f"p{i % 3000}"} for i in range(6000)]
    wanted = replace(asked(Added(), blocks=10), persons=True)
    counts = [numbers[0] for numbers in blocks_of(room, table, "even", wanted).values()]
    assert len(counts) == 10
    assert all(count % 2 == 0 for count in counts)
    assert max(abs(count // 2 - 300) for count in counts) < 90


def test_the_number_that_tells_persons_apart_would_be_no_lot(room: Room) -> None:
    """It changes with whoever stood before: most of the others would move to another block."""

    def numbers(persons: list[str], name: str, seed: str = "seed") -> dict[int, int]:
        """Of each lot the person's number; the last column is the place of a row."""
        rows = stored(room, of_persons(room, persons, name, seed))
        return {row[-3]: row[-2] for row in rows}

    before, after = numbers(PERSONS, "all"), numbers(PERSONS[1:], "fewer")
    assert len(before) == 12
    assert set(after) < set(before)
    assert sum(before[lot] != after[lot] for lot in after) > 5
    assert not set(before) & set(numbers(PERSONS, "all", seed="another"))


def test_blocks_are_even_and_another_seed_makes_others(room: Room) -> None:
    """2,000 equal values in 10 blocks: a block is off by 60 with probability below 1e-4."""
    wanted = asked(Added(), X, blocks=10)
    dataset = made(room, [row_of(7)] * 2000, "a")
    counts = [numbers[0] for numbers in by_block(room.engine.blocks(dataset, wanted)).values()]
    assert len(counts) == 10
    assert fmean(counts) == 200
    assert max(abs(count - 200) for count in counts) < 75
    again = room.prepared("a.csv", CARD, version_id="again", seed="another")
    assert room.engine.blocks(again, wanted) != room.engine.blocks(dataset, wanted)
