import pytest

from app.data.card import Source
from app.errors import Invalid
from tests.engines.remote.tables import Room, card_of, stored, write_parquet

BAD_FILES = {
    "too few fields": b"x,y\n1\n",
    "too many fields": b"x,y\n1,2,3\n",
    "an open quote": b'x,y\n1,"SECRET\n',
    "not UTF-8": b"x,y\n1,SECRET\xff\xfe\n",
    "empty": b"",
    "a broken header": b'x,"y\n',
    "a header that is not UTF-8": b"x,SECRET\xff\n1,2\n",
    "UTF-16": "x,y\n1,SECRET\n".encode("utf-16"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_malformed_csv_is_refused_at_registration(room: Room, name: str) -> None:
    (room.data / "t.csv").write_bytes(BAD_FILES[name])
    with pytest.raises(Invalid) as refused:
        room.register("t.csv", card_of({"name": "x", "type": "boolean"}))
    assert [field.pointer for field in refused.value.fields] == ["/source/path"]
    assert "SECRET" not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_malformed_line_far_down_is_refused_at_registration(room: Room) -> None:
    (room.data / "t.csv").write_bytes(b"x,y\n" + b"1,2\n" * 300_000 + b"1\n")
    with pytest.raises(Invalid, match="/source/path"):
        room.register("t.csv", card_of({"name": "x", "type": "boolean"}))


def test_a_file_that_is_not_parquet_is_refused(room: Room) -> None:
    (room.data / "t.parquet").write_bytes(b"x\n1\n")
    with pytest.raises(Invalid, match="/source/path"):
        room.register("t.parquet")


def test_csv_may_have_a_byte_order_mark_and_other_line_endings(room: Room) -> None:
    text = '\ufeff"x",y\r\n1,"a\r\n""b"""\r\n0,\r\n'
    (room.data / "t.csv").write_bytes(text.encode())
    columns = (
        {"name": "x", "type": "boolean"},
        {"name": "y", "type": "category", "values": ['a\r\n"b"']},
    )
    dataset = room.prepared("t.csv", card_of(*columns))
    assert sorted(stored(room, dataset)) == [(False, None), (True, 0)]


def test_an_unsuitable_card_gets_errors_for_all_columns_at_once(room: Room) -> None:
    types = {"whole": "DOUBLE", "day": "BIGINT", "list": "INTEGER[]", "part": "DECIMAL(9,2)"}
    write_parquet(room.data / "t.parquet", [], types)
    card = card_of(
        {"name": "whole", "type": "integer", "low": 0, "high": 1},
        {"name": "day", "type": "date", "low": "2000-01-01", "high": "2000-01-02"},
        {"name": "absent", "type": "boolean"},
        {"name": "part", "type": "integer", "low": 0, "high": 1},
        person={"kind": "column", "column": "list", "rows_max": 1},
    )  # fmt: skip
    with pytest.raises(Invalid) as refused:
        room.engine.inspect(Source("duckdb", "t.parquet"), card)
    assert [field.pointer for field in refused.value.fields] == [
        "/columns/0/type",
        "/columns/1/type",
        "/columns/2/name",
        "/columns/3/type",
        "/person/column",
    ]


def test_a_duplicate_column_name_is_refused(room: Room) -> None:
    (room.data / "t.csv").write_text("x,x\n1,2\n")
    with pytest.raises(Invalid):
        room.register("t.csv", card_of({"name": "x", "type": "boolean"}))
