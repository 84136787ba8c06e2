"""CSV to Parquet: the same texts, the same fingerprint, and never half a file."""

import stat
from dataclasses import replace
from pathlib import Path
from threading import Thread

import duckdb
import pytest

from app.data.card import Source
from app.engines.files import convert
from app.engines.files.connect import Limits
from app.engines.files.convert import Conversion, read_schema
from app.engines.files.paths import SourceFiles
from app.engines.files.sources import SourceTable, open_table
from app.errors import EngineUnavailable, Invalid
from tests.bursard import wait_until
from tests.engines.clock import WatchdogClock
from tests.engines.remote.tables import Room, card_of

ODD = '"a ""b""",n,o\'c\r\n 007 ,1e3,"x, ""y""\r\nz"\r\nnull,,""\r\n"NaN",-0.0,ü\r\n'
CARD = card_of({"name": "n", "type": "number", "low": 0, "high": 1})


def conversion(room: Room, csv: Path, *, seconds: float = 60) -> Conversion:
    limits = Limits(room.home, "256MB", 1)
    return Conversion(csv, room.data / f"{csv.stem}.parquet", limits, seconds)


def test_every_field_keeps_its_text(room: Room) -> None:
    csv = room.data / "odd o'name.csv"
    csv.write_bytes(ODD.encode())
    csv.chmod(0o640)
    conversion(room, csv).run()
    made = csv.with_suffix(".parquet")
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT * FROM read_parquet(?)", [str(made)])
        assert [column[0] for column in rows.description or []] == ['a "b"', "n", "o'c"]
        assert rows.fetchall() == [
            (" 007 ", "1e3", 'x, "y"\r\nz'),
            ("null", None, None),
            ("NaN", "-0.0", "ü"),
        ]
    found = [room.engine.inspect(Source("duckdb", each.name), CARD) for each in (csv, made)]
    assert found[0].content == found[1].content
    assert stat.S_IMODE(made.stat().st_mode) == 0o640
    assert sorted(room.data.iterdir()) == [csv, made]


@pytest.mark.parametrize(
    "content",
    [b"x,y\n1\n", b"x,y\n1,2,SECRET\n", b"x\nSECRET\xff\n", b'x\n"SECRET\n', b""],
)
def test_an_unreadable_csv_leaves_nothing(room: Room, content: bytes) -> None:
    csv = room.data / "t.csv"
    csv.write_bytes(content)
    with pytest.raises(EngineUnavailable) as refused:
        conversion(room, csv).run()
    assert "SECRET" not in refused.value.detail
    assert refused.value.__context__ is None
    assert list(room.data.iterdir()) == [csv]


@pytest.mark.parametrize("header", ["x,x", "x,X", "x,"])
def test_columns_that_parquet_cannot_distinguish_are_refused(room: Room, header: str) -> None:
    (room.data / "t.csv").write_text(f"{header}\n1,2\n")
    with pytest.raises(Invalid, match="no two alike"):
        conversion(room, room.data / "t.csv").run()


def test_an_existing_file_is_neither_replaced_nor_removed(room: Room) -> None:
    (room.data / "t.csv").write_text("x\n1\n")
    (room.data / "t.parquet").write_text("precious")
    work = conversion(room, room.data / "t.csv")
    with pytest.raises(Invalid):
        work.run()
    work.undo()
    assert (room.data / "t.parquet").read_text() == "precious"
    with pytest.raises(Invalid):
        conversion(room, room.data / "t*.csv")


def endless(connection: duckdb.DuckDBPyConnection, source: SourceFiles) -> SourceTable:
    """The source, followed by endless rows that are read and never written."""
    table = open_table(connection, source)
    more = "SELECT NULL, NULL FROM range(1000000000000) WHERE range < 0"
    return replace(table, relation=f"(SELECT * FROM {table.relation} UNION ALL {more})")


def test_a_conversion_can_be_stopped_and_reports_its_progress(
    room: Room, clock: WatchdogClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "open_table", endless)
    csv = room.data / "t.csv"
    csv.write_text("x,y\n1,2\n")
    work = conversion(room, csv, seconds=3600)
    failures: list[EngineUnavailable] = []

    def run(work: Conversion) -> None:
        try:
            work.run()
        except EngineUnavailable as error:
            failures.append(error)

    thread = Thread(target=run, args=(work,))
    thread.start()
    try:
        wait_until(lambda: work.fraction() > 0, 60, "it does not report its progress")
        assert work.fraction() < 1
    finally:
        while thread.is_alive():
            work.stop()
            thread.join(0.01)
    assert failures
    assert list(room.data.iterdir()) == [csv]
    overdue = conversion(room, csv, seconds=3600)
    thread = Thread(target=run, args=(overdue,))
    thread.start()
    wait_until(lambda: overdue.fraction() > 0, 60, "it does not report its progress")
    clock.end_the_time()
    thread.join(60)
    assert "BURSAR_INGEST_TIMEOUT_SECONDS" in failures[-1].detail
    assert list(room.data.iterdir()) == [csv]


def test_a_schema_is_read_without_any_row(room: Room) -> None:
    """Unreadable rows do not matter."""
    csv = room.data / "t.csv"
    csv.write_bytes(b"x,y\n1\xff\n")
    table = read_schema(SourceFiles(csv, (csv,)), Limits(room.home, "256MB", 1))
    assert (table.names, table.types) == (("x", "y"), ("VARCHAR", "VARCHAR"))
