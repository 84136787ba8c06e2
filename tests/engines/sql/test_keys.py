"""Keys of text columns: read like the reference, in batches, and never cached."""

import re
import tempfile
import unicodedata
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.data.card import Card, Source
from app.engines.files.prepare import version_path
from app.engines.sql.keys import BATCH
from app.errors import EngineFailed, Invalid
from app.queries.tally import (
    AllOf,
    ByEdges,
    ByValues,
    Compare,
    Condition,
    CountPresent,
    CountRows,
    IsMissing,
    KeyCountsRequest,
    Negation,
    OneOf,
    Tally,
)
from tests.effort import examples
from tests.engines.clock import WatchdogClock
from tests.engines.reference import holds
from tests.engines.remote.tables import Room, card_of, room_in, stored, write_csv, write_parquet

LENGTH = 12
CARD = card_of(
    {"name": "note", "type": "text", "length_max": LENGTH},
    {"name": "age", "type": "integer", "low": 0, "high": 100},
    {"name": "city", "type": "category", "values": ["Bern", "Chur"]},
)
TYPES = {"note": "VARCHAR", "age": "BIGINT", "city": "VARCHAR"}
ALL = KeyCountsRequest(Tally(None, (), (CountRows(),)), "note")
TEXTS = [
    None, "", " ", "flu", "Flu", " flu ", "flu\t\n flu", "a|b", "~", "é", "e\u0301", "ß", "日本語",
    "😀", "x" * LENGTH, "x" * (LENGTH + 1), "y" * 5000, "17", "1.0", "true", "NULL", "null",
    "'); DROP", '"', "\x85a\x7f", "a\u2028b", "\u3000", "a,b", "\xa0", "\u202eabc",
]  # fmt: skip


def cleaned(text: str | None) -> str | None:
    """Normalized text: runs of white space and control characters become a space, none at the
    ends.
    """
    if text is None:
        return None
    spaced = "".join(
        " " if unicodedata.category(letter) in ("Cc", "Zs", "Zl", "Zp") else letter
        for letter in text
    )
    whole = " ".join(part for part in spaced.split(" ") if part)
    return whole if 0 < len(whole) <= LENGTH else None


def expected(
    rows: list[dict[str, Any]], where: Condition | None = None, groups: tuple[Any, ...] = ()
) -> dict[tuple[int, str], int]:
    counts: Counter[tuple[int, str]] = Counter()
    for raw in rows:
        row = {**raw, "note": cleaned(raw["note"])}
        group = 0
        for grouping in groups:
            values = list(grouping.values)
            group = group * len(values) + values.index(row[grouping.column])
        if row["note"] is not None and holds(where, row):
            counts[group, row["note"]] += 1
    return dict(counts)


def keys_of(room: Room, dataset: Any, wanted: KeyCountsRequest = ALL) -> dict[tuple[int, str], int]:
    counts: dict[tuple[int, str], int] = {}
    for batch in room.engine.keys(dataset, wanted):
        assert 0 < len(batch) <= BATCH
        for group, text, count in batch:
            assert (group, text) not in counts, "each key must come once"
            counts[group, text] = count
    return counts


def row(note: str | None, age: int = 5, city: str = "Bern") -> dict[str, Any]:
    return {"note": note, "age": age, "city": city}


def both(room: Room, rows: list[dict[str, Any]], card: Card = CARD) -> list[Any]:
    write_csv(room.data / "t.csv", rows, list(TYPES))
    write_parquet(room.data / "t.parquet", rows, TYPES)
    return [room.prepared(name, card) for name in ("t.csv", "t.parquet")]


def test_every_text_is_stored_normalized_from_csv_and_parquet(room: Room) -> None:
    rows = [row(text) for i, text in enumerate(TEXTS) for _ in range(i % 3 + 1)]
    for dataset in both(room, rows):
        assert keys_of(room, dataset) == expected(rows)


@examples(15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts=st.lists(
        st.none()
        | st.sampled_from(TEXTS)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=15),
        max_size=30,
    ),
    sign=st.sampled_from(["==", "!="]),
    literal=st.sampled_from(["flu", "é", "a b", "absent"]),
)
def test_keys_are_those_of_the_reference_for_any_text_and_filter(
    texts: list[str | None], sign: Any, literal: str
) -> None:
    rows = [row(text, age=i % 7) for i, text in enumerate(texts)]
    conditions: list[Condition | None] = [
        None,
        Compare("note", sign, literal),
        Negation(Compare("note", sign, literal)),
        OneOf("note", (literal, "flu")),
        OneOf("note", (*(f"n{i}" for i in range(60)), "flu")),
        IsMissing("note"),
        AllOf((Compare("age", "<", 3), Negation(IsMissing("note")))),
    ]
    with tempfile.TemporaryDirectory() as directory, room_in(Path(directory)) as room:
        for dataset in both(room, rows):
            for where in conditions:
                wanted = KeyCountsRequest(Tally(where, (), (CountRows(),)), "note")
                assert keys_of(room, dataset, wanted) == expected(rows, where)
                counted = sum(holds(where, {**r, "note": cleaned(r["note"])}) for r in rows)
                assert room.ask(dataset, Tally(where, (), (CountRows(),))) == ((counted,),)


def test_characters_outside_text_reach_no_answer(room: Room) -> None:
    """NUL, which JSON texts here may not hold, is a gap like other control characters."""
    write_parquet(room.data / "t.parquet", [row("a\0b"), row("\0"), row("a b")], TYPES)
    (room.data / "t.csv").write_bytes(b"note,age,city\na\0b,5,Bern\n\0,5,Bern\na b,5,Bern\n")
    for name in ("t.parquet", "t.csv"):
        assert keys_of(room, room.prepared(name, CARD)) == {(0, "a b"): 2}


def test_a_text_that_is_not_utf8_is_refused_at_registration_without_a_quote(room: Room) -> None:
    (room.data / "t.csv").write_bytes(b"note,age,city\nsecret\xff,5,Bern\n")
    with pytest.raises(Exception) as refused:  # noqa: PT011 - any error is fine if it quotes nothing
        room.register("t.csv", CARD)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("rows", [[], [row(None)] * 5, [row(" \t ")] * 5], ids=str)
def test_no_rows_and_no_texts_give_no_keys(room: Room, rows: list[dict[str, Any]]) -> None:
    for dataset in both(room, rows):
        assert keys_of(room, dataset) == {}
        assert room.ask(dataset, Tally(None, (), (CountRows(), CountPresent("note")))) == (
            (len(rows),),
            (0,),
        )


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        ("BIGINT", [7, -7, 7], {"7": 2, "-7": 1}),
        ("BOOLEAN", [True, False, True], {"true": 2, "false": 1}),
        ("UUID", ["0" * 8 + "-0000-0000-0000-" + "0" * 12], {}),  # longer than declared
    ],
)
def test_numbers_and_other_types_are_stored_as_their_text(
    room: Room, kind: str, values: list[Any], texts: dict[str, int]
) -> None:
    rows = [{**row(None), "note": value} for value in values]
    write_parquet(room.data / "t.parquet", rows, TYPES | {"note": kind})
    found = keys_of(room, room.prepared("t.parquet", CARD))
    assert found == {(0, text): count for text, count in texts.items()}


@pytest.mark.parametrize("kind", ["DOUBLE", "DATE", "VARCHAR[]", "BLOB"])
def test_other_stored_types_are_refused_as_text(room: Room, kind: str) -> None:
    write_parquet(room.data / "t.parquet", [], TYPES | {"note": kind})
    with pytest.raises(Invalid) as refused:
        room.register("t.parquet", CARD)
    assert refused.value.fields[0].pointer == "/columns/0/type"


def test_public_groups_combine_with_keys(room: Room) -> None:
    rows = [row("a", 5, "Bern"), row("a", 50, "Chur"), row("b", 50, "Chur"), row("a", 95, "Bern")]
    by_city = ByValues("city", ("Chur", "Bern"))
    by_age = ByEdges("age", (0.0, 10.0, 60.0))
    for dataset in both(room, [*rows, row("c", 5, "Genf")]):
        wanted = KeyCountsRequest(Tally(None, (by_city,), (CountRows(),)), "note")
        assert keys_of(room, dataset, wanted) == expected(rows, None, (by_city,))
        wanted = KeyCountsRequest(Tally(None, (by_city, by_age), (CountRows(),)), "note")
        found = keys_of(room, dataset, wanted)
        assert found == {(1, "a"): 1, (1, "b"): 1, (2, "a"): 1}  # 95 is outside the edges


def persons_card(rows_max: int) -> Card:
    person = {"kind": "column", "column": "id", "rows_max": rows_max}
    note = {"name": "note", "type": "text"}
    return card_of(note, {"name": "age", "type": "integer", "low": 0, "high": 100}, person=person)


VISITS = [
    {"id": who, "note": note, "age": age}
    for who, note, age in [
        ("ann", "flu", 1), ("ann", "flu", 2), ("ann", "gout", 3), ("bob", "flu", 9),
        ("bob", None, 9), ("bob", "flu", 9), ("cy", "gout", 50), (None, "rare", 1),
    ]
]  # fmt: skip


def visits(room: Room, rows_max: int = 5, name: str = "v.csv", **options: str) -> Any:
    write_csv(room.data / name, VISITS)
    return room.prepared(name, persons_card(rows_max), **options)


def test_a_person_counts_once_per_text(room: Room) -> None:
    dataset = visits(room)
    assert keys_of(room, dataset) == {(0, "flu"): 4, (0, "gout"): 2}
    persons = KeyCountsRequest(ALL.tally, "note", persons=True)
    assert keys_of(room, dataset, persons) == {(0, "flu"): 2, (0, "gout"): 2}
    old = KeyCountsRequest(Tally(Compare("age", ">", 1), (), (CountRows(),)), "note", persons=True)
    assert keys_of(room, dataset, old) == {(0, "flu"): 2, (0, "gout"): 2}
    older = KeyCountsRequest(
        Tally(Compare("age", ">", 2), (), (CountRows(),)), "note", persons=True
    )
    assert keys_of(room, dataset, older) == {(0, "flu"): 1, (0, "gout"): 2}


def test_a_version_distinguishes_persons_without_identifying_them(room: Room) -> None:
    dataset = visits(room)
    written = version_path(room.home, dataset).read_bytes()
    assert b"ann" not in written
    assert b"bob" not in written
    numbers = [stored_row[-2] for stored_row in stored(room, dataset)]
    assert len(set(numbers)) == 3
    again = visits(room, version_id="again")
    assert sorted(stored(room, again), key=str) == sorted(stored(room, dataset), key=str)
    single = visits(room, rows_max=1, version_id="single")
    # note and age: nothing else is needed
    assert {len(stored_row) for stored_row in stored(room, single)} == {2}


def answerable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """All columns except the person number, which no question may use."""
    return [(*each[:-2], each[-1]) for each in rows]


def test_the_kept_rows_of_a_person_depend_on_their_own_texts_alone(
    room: Room,
) -> None:
    rows = [{"id": f"p{i % 5}", "note": f"{i}|~", "age": i % 5} for i in range(100)]
    write_csv(room.data / "all.csv", rows)
    write_csv(
        room.data / "fewer.csv", [kept_row for kept_row in rows[::-1] if kept_row["id"] != "p4"]
    )
    everyone = answerable(stored(room, room.prepared("all.csv", persons_card(4))))
    fewer = answerable(stored(room, room.prepared("fewer.csv", persons_card(4))))
    assert len(everyone) == 20
    assert sorted(kept_row for kept_row in everyone if kept_row[1] != 4) == sorted(fewer)


def test_a_changed_text_changes_the_fingerprint(room: Room) -> None:
    prints = set()
    for notes in (["a", "b"], ["b", "a"], ["a", "c"], ["a", None]):
        write_csv(room.data / "t.csv", [row(note) for note in notes])
        prints.add(room.engine.inspect(Source("duckdb", "t.csv"), CARD).content)
    assert len(prints) == 3


# Many keys, little memory, failures


def many(room: Room, count: int) -> Any:
    lines = "\n".join(f"key {i},5,Bern" for i in range(count))
    (room.data / "many.csv").write_text(f"note,age,city\n{lines}\n")
    return room.prepared("many.csv", CARD)


def test_as_many_keys_as_rows_come_in_batches_and_nothing_is_cached(room: Room) -> None:
    dataset = many(room, 3 * BATCH + 1)
    sizes, seen = [], 0
    for batch in room.engine.keys(dataset, ALL):
        sizes.append(len(batch))
        seen += sum(count for _, _, count in batch)
    assert seen == sum(sizes) == 3 * BATCH + 1
    assert max(sizes) <= BATCH
    assert len(room.engine._memo) == 0
    version_path(room.home, dataset).unlink()
    room.engine.close()
    with pytest.raises(EngineFailed):  # nothing was cached, so it would be read again
        list(room.engine.keys(dataset, ALL))


def test_a_reader_that_stops_early_releases_its_cursor(room: Room) -> None:
    dataset = many(room, 2 * BATCH)
    for _ in range(3):
        with closing(room.engine.keys(dataset, ALL)) as batches:
            next(batches)
    assert sum(len(batch) for batch in room.engine.keys(dataset, ALL)) == 2 * BATCH


def test_the_time_limit_covers_all_batches_together(room: Room, clock: WatchdogClock) -> None:
    dataset = many(room, 3 * BATCH)
    with closing(room.engine.keys(dataset, ALL)) as batches:
        assert next(batches)
        clock.end_the_time()
        with pytest.raises(EngineFailed):
            list(batches)


def test_an_error_message_reveals_nothing(room: Room) -> None:
    dataset = many(room, 10)
    wrong = KeyCountsRequest(Tally(Compare("absent", "==", 1), (), (CountRows(),)), "note")
    with pytest.raises(EngineFailed, match=r"^The question could not be answered\.$") as failed:
        list(room.engine.keys(dataset, wrong))
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert not re.search("key", str(failed.value))
