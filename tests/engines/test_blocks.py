"""Blocks of a column's values: each value in one, and one row changes one of them."""

from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from app.datasets import Dataset
from app.queries.statistics import BlockCounts, BlockTally, Compare
from tests.engines.tables import Room, card_of, room_in, write_csv

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": -5, "high": 50},
    {"name": "kept", "type": "boolean"},
]
BLOCKS = 4
TABLE = [3, 3, 3, 3, 7, 9, -5, 50, 12, 12, 4, 4, 8, 21]


def made(room: Room, values: list[Any], name: str) -> Dataset:
    rows = [{"x": value, "kept": "false" if value == 9 else "true"} for value in values]
    write_csv(room.data / f"{name}.csv", rows, ["x", "kept"])
    return room.prepared(f"{name}.csv", card_of(*COLUMNS))


def by_block(counts: BlockCounts) -> dict[int, tuple[int, ...]]:
    return {block: tuple(numbers) for block, *numbers in counts}


def test_every_value_is_in_one_block_and_order_does_not_matter(room: Room) -> None:
    sums = BlockTally(None, "x", BLOCKS, low=-5, squares=True)
    found = by_block(room.engine.blocks(made(room, [*TABLE, None], "a"), sums))
    assert sum(count for count, _, _ in found.values()) == len(TABLE)
    assert sum(total for _, total, _ in found.values()) == sum(v + 5 for v in TABLE)
    assert sum(squares for _, _, squares in found.values()) == sum((v + 5) ** 2 for v in TABLE)
    assert set(found) <= set(range(BLOCKS))
    turned = made(room, [None, *TABLE[::-1]], "b")
    assert by_block(room.engine.blocks(turned, sums)) == found


def test_sums_are_of_coarse_steps_and_filters_hold(room: Room) -> None:
    dataset = made(room, TABLE, "a")
    coarse = BlockTally(Compare("kept", "==", True), "x", 1, low=-5, grain=4, squares=True)
    kept = [(v + 5) // 4 for v in TABLE if v != 9]
    expected = [(0, len(kept), sum(kept), sum(t * t for t in kept))]
    assert room.engine.blocks(dataset, coarse) == expected
    assert room.engine.blocks(dataset, BlockTally(Compare("x", ">", 60), "x", 3)) == []


@pytest.mark.parametrize("share", [(0, 1), (1, 4), (1, 2), (9, 10), (1, 1)])
def test_values_at_ranks_are_those_of_their_block(room: Room, share: tuple[int, int]) -> None:
    """With the same seed the blocks of sums and of ranks are the same: one block is all rows."""
    a, b = share
    values = sorted(TABLE)
    n = len(values)
    rank = min(n, max(1, -(-a * n // b)))
    found = room.engine.blocks(made(room, TABLE, "a"), BlockTally(None, "x", 1, (share, (1, 1))))
    assert found == [(0, values[rank - 1], 50)]


@pytest.mark.parametrize("ranks", [(), ((1, 2),), ((0, 1), (1, 1))])
def test_one_row_more_changes_one_block(tmp_path: Path, ranks: tuple[tuple[int, int], ...]) -> None:
    """Brute force over what may come: also a value that is there many times already."""
    wanted = BlockTally(None, "x", BLOCKS, ranks, low=-5)
    with room_in(tmp_path) as room:
        before = by_block(room.engine.blocks(made(room, TABLE, "base"), wanted))
        changed = Counter[int]()
        for value in range(-5, 51, 3):
            table = [value, *TABLE]
            after = by_block(room.engine.blocks(made(room, table, f"t{value}"), wanted))
            moved = [b for b in range(BLOCKS) if before.get(b) != after.get(b)]
            assert len(moved) <= 1
            changed.update(moved)
        assert ranks or len(changed) > 1  # the seed spreads them


def test_blocks_by_place_would_all_change() -> None:
    """The saboteur cuts the table into stretches: a row before all others moves every block."""

    def stretches(table: list[int]) -> list[list[int]]:
        return [table[i::BLOCKS] for i in range(BLOCKS)]

    pairs = zip(stretches(TABLE), stretches([1, *TABLE]), strict=True)
    assert sum(one != other for one, other in pairs) == BLOCKS


def test_blocks_are_even_and_another_seed_makes_others(room: Room) -> None:
    """2,000 equal values in 10 blocks: a block is off by 60 with probability below 1e-4."""
    wanted = BlockTally(None, "x", 10, low=-5)
    dataset = made(room, [7] * 2000, "a")
    counts = [numbers[0] for numbers in by_block(room.engine.blocks(dataset, wanted)).values()]
    assert len(counts) == 10
    assert fmean(counts) == 200
    assert max(abs(count - 200) for count in counts) < 75
    again = room.prepared("a.csv", card_of(*COLUMNS), version_id="again", seed="another")
    assert room.engine.blocks(again, wanted) != room.engine.blocks(dataset, wanted)
