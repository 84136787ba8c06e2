"""Each value of a file is stored as the card declares it, or as missing."""

from typing import Any

from app.engines.files.prepare import version_path
from app.queries.tally import Compare, CountRows, Tally
from tests.engines.remote.tables import Room, card_of, stored, write_csv, write_parquet


def stored_texts(room: Room, column: dict[str, Any], texts: list[str]) -> list[Any]:
    rows = [{"x": text, "i": i} for i, text in enumerate(texts)]
    write_csv(room.data / "texts.csv", rows)
    order = {"name": "i", "type": "integer", "low": 0, "high": 10_000}
    dataset = room.prepared("texts.csv", card_of(order, {"name": "x"} | column))
    return [row[1] for row in sorted(stored(room, dataset))]


def test_text_becomes_an_integer_only_if_it_is_one(room: Room) -> None:
    texts = ["3", " 4 ", "+5", "-5", "3.0", "3.7", "1e3", "x", "", "9" * 30, "9" * 60, "0x1", "1_0"]
    found = stored_texts(room, {"type": "integer", "low": -2, "high": 50}, texts)
    assert found == [3, 4, 5, -2, 3, None, None, None, None, 50, None, None, None]


def test_nan_is_missing_and_infinities_are_clamped(room: Room) -> None:
    texts = ["nan", "NaN", "inf", "-inf", "-Infinity", "1e999", "2.5", "x", "", "-1e-320"]
    found = stored_texts(room, {"type": "number", "low": -1, "high": 3}, texts)
    assert found == [None, None, 3.0, -1.0, -1.0, 3.0, 2.5, None, None, -1e-320]


def test_booleans_are_read_from_their_usual_texts(room: Room) -> None:
    texts = ["true", "FALSE", "t", "F", "1", "0", "Yes", "no", "2", "ja", ""]
    found = stored_texts(room, {"type": "boolean"}, texts)
    assert found == [True, False, True, False, True, False, True, False, None, None, None]


def test_dates_are_read_from_days_and_timestamps_and_clamped(room: Room) -> None:
    texts = [
        "2020-05-05",
        "2020-05-05 23:59:59",
        "1900-01-01",
        "2999-01-01",
        "05/05/2020",
        "infinity",
    ]
    column = {"type": "date", "low": "2000-01-01", "high": "2030-12-31"}
    found = stored_texts(room, column, texts)
    days = [None if day is None else day.isoformat() for day in found]
    expected = ["2020-05-05", "2020-05-05", "2000-01-01", "2030-12-31", None, "2030-12-31"]
    assert days == expected


def test_a_category_is_compared_exactly_and_stored_as_its_index(room: Room) -> None:
    column = {"type": "category", "values": ["b", "a", "Ä", "1"]}
    found = stored_texts(room, column, ["a", "A", " a", "Ä", "A\u0308", "1", "1.0", "b", ""])
    assert found == [1, None, None, 2, None, 3, None, 0, None]


def test_parquet_numbers_and_booleans_may_be_categories(room: Room) -> None:
    rows: list[dict[str, Any]] = [
        {"code": 1, "flag": True},
        {"code": 22, "flag": False},
        {"code": 3, "flag": None},
    ]
    write_parquet(room.data / "t.parquet", rows, {"code": "SMALLINT", "flag": "BOOLEAN"})
    card = card_of(
        {"name": "code", "type": "category", "values": ["22", "1"]},
        {"name": "flag", "type": "category", "values": ["false", "true"]},
    )
    assert sorted(stored(room, room.prepared("t.parquet", card)), key=str) == [
        (0, 0), (1, 1), (None, None),
    ]  # fmt: skip


def test_declared_names_that_look_like_stored_ones_do_not_collide(room: Room) -> None:
    names = ["c1", "c0", "s0", "rows", "person", "k0", "v0", 'q"; DROP TABLE rows; --']
    write_csv(room.data / "t.csv", [{name: i for i, name in enumerate(names)}])
    columns = [{"name": name, "type": "number", "low": 0, "high": 100} for name in names]
    dataset = room.prepared("t.csv", card_of(*columns))
    for i, name in enumerate(names):
        assert room.ask(dataset, Tally(Compare(name, "==", i), (), (CountRows(),))) == ((1,),)


def test_undeclared_columns_and_the_person_column_are_not_stored(room: Room) -> None:
    write_csv(room.data / "t.csv", [{"id": "ann", "x": 1, "diary": "secret"}])
    person = {"kind": "column", "column": "id", "rows_max": 1}
    card = card_of({"name": "x", "type": "integer", "low": 0, "high": 9}, person=person)
    dataset = room.prepared("t.csv", card)
    assert stored(room, dataset) == [(1,)]
    written = version_path(room.home, dataset).read_bytes()
    assert b"ann" not in written
    assert b"secret" not in written
