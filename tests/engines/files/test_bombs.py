"""Small files that claim or expand to more than fits in space or time.

They are refused with a clear error, and nothing is left behind.
"""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from app.engines.files.duckdb import DuckDBEngine
from app.errors import EngineUnavailable, Invalid
from tests.engines.remote.tables import Room, card_of, room_in

WHOLE = card_of({"name": "n", "type": "integer", "low": 0, "high": 9})
TEXT = card_of({"name": "t", "type": "text"})


def write(path: Path, select: str, rows_per_group: int) -> Path:
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {rows_per_group}"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select}) TO '{path}' ({options})")
    assert path.stat().st_size < 10_000
    return path


def refusal(room: Room, name: str, card: Any) -> str:
    with pytest.raises((EngineUnavailable, Invalid)) as refused:
        room.engine.prepare(room.register(name, card))
    assert refused.value.__context__ is None
    assert not [each for each in room.home.rglob("*") if each.is_file()]
    return refused.value.detail


@pytest.fixture
def many_rows(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    text = "SELECT 1::BIGINT AS n, 'x' AS t FROM range(20_000_000)"
    return write(tmp_path / "data" / "rows.parquet", text, 10_000_000)


@pytest.mark.thorough
def test_endless_rows_are_read_for_the_allowed_time_only(tmp_path: Path, many_rows: Path) -> None:
    """Reading all of them would take a thousand times the allowed time."""
    folder = tmp_path / "data" / "folder"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(many_rows.read_bytes())
    with room_in(tmp_path, ingest_timeout_seconds=0.01) as room:
        for name in (many_rows.name, "folder"):
            assert "BURSAR_INGEST_TIMEOUT_SECONDS" in refusal(room, name, WHOLE)


def test_a_few_enormous_texts_do_not_exceed_the_memory_of_the_engine(tmp_path: Path) -> None:
    with room_in(tmp_path, memory_limit="64MB", threads=1) as room:
        text = "SELECT repeat('x', 50_000_000) AS t FROM range(4)"
        write(room.data / "texts.parquet", text, 2048)
        assert "BURSAR_ENGINE_MEMORY" in refusal(room, "texts.parquet", TEXT)


def test_a_version_cannot_exceed_its_size_limit(tmp_path: Path, room: Room) -> None:
    card = card_of({"name": "n", "type": "number", "low": 0, "high": 1e15})
    text = "SELECT (hash(i) % 1000000007)::BIGINT AS n FROM range(1_000_000) AS x(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({text}) TO '{room.data / 'random.parquet'}' (FORMAT parquet)")
    with room_in(tmp_path, prepared_bytes_max=1_000_000) as small:
        assert isinstance(small.engine, DuckDBEngine)
        assert "BURSAR_PREPARED_SIZE_MAX" in refusal(small, "random.parquet", card)
    with room_in(tmp_path, prepared_bytes_max=100_000_000) as large:
        assert not large.engine.is_missing(large.prepared("random.parquet", card))


def test_a_truncated_file_or_a_false_footer_is_refused(room: Room) -> None:
    whole = write(room.data / "whole.parquet", "SELECT 1::BIGINT AS n FROM range(1000)", 2048)
    content = whole.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    for name, bad in (
        ("cut.parquet", content[: len(content) // 2]),
        ("long.parquet", content[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1"),
        ("short.parquet", content[:-8] + (length // 2).to_bytes(4, "little") + b"PAR1"),
        ("zeros.parquet", b"PAR1" + bytes(len(content)) + content[-8:]),
    ):
        (room.data / name).write_bytes(bad)
        assert refusal(room, name, WHOLE).startswith("/source/path: a file that is what its name")
