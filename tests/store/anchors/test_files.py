"""Anchor files: which points survive when a file is compacted, torn, shared or left behind."""

import asyncio
import errno
import itertools
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.ledger.chain import Book
from app.ledger.stamp import StampChain
from app.store.anchors import files as anchor_files
from app.store.anchors.anchor_content import thinned
from app.store.anchors.files import AnchorFiles
from app.store.anchors.lines import Anchor, BookEnd, marks_line, read_anchor
from tests.store.ledgers import Ledger

IDENTITY = "0" * 32


def end(book: str, seq: int, spent: int = 0, cells: dict[int, int] | None = None) -> BookEnd:
    place = f"{book}/ann"
    by_cell = [(place, cell, units, 0, "[]") for cell, units in (cells or {}).items()]
    return BookEnd(book, seq, f"{seq:064x}", [(place, "pure", spent, 0, "[]")], by_cell)


def only(files: AnchorFiles) -> Anchor:
    (anchor,) = files.read()
    return anchor


def spent(anchor: Anchor, book: str) -> int:
    """Ann's common spend in the last anchor line of a book."""
    spends = [p.accounts for p in anchor.points if p.book == book and p.accounts]
    return spends[-1][f"{book}/ann"].common[0]


def test_appended_points_are_read_back(tmp_path: Path) -> None:
    files = AnchorFiles([tmp_path / "one", tmp_path / "two"], IDENTITY)
    chain = StampChain("c", b"k" * 32)
    chain.stamp("q_1", "answered", 1, "answer")
    files.append([end("b_1", 1, 10), end("b_2", 1, 20, {3: 4})], chain, [marks_line("b_1", ["m"])])
    for anchor in files.read():
        assert [(p.book, p.seq) for p in anchor.points] == [("b_1", 1), ("b_2", 1)]
        assert anchor.points[1].accounts["b_2/ann"].cells == {3: (4, 0)}
        assert anchor.stamps["c"][0].link == chain.link
        assert anchor.stamps["c"][1] == "q_1"
        assert anchor.marks == {"b_1": {"m"}}
        assert anchor.unreadable == 0
    assert len(files.read()) == 2
    files.close()


def test_a_compacted_file_still_holds_every_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchor_files, "BYTES_MAX", 20_000)
    files = AnchorFiles([tmp_path], IDENTITY)
    files.append([end("b_quiet", 1, 77, {0: 5})], None, [marks_line("b_quiet", ["mark"])])
    for number in range(1, 400):
        files.append([end("b_busy", number, number)])
    anchor = only(files)
    assert os.path.getsize(next(files.folders[0].glob("*.anchor"))) < 100_000
    assert spent(anchor, "b_busy") == 399
    assert spent(anchor, "b_quiet") == 77
    (quiet,) = [p.accounts for p in anchor.points if p.book == "b_quiet" and p.accounts]
    assert quiet["b_quiet/ann"].cells == {0: (5, 0)}
    assert anchor.marks == {"b_quiet": {"mark"}}
    points = [p.seq for p in anchor.points if p.book == "b_busy"]
    assert set(range(1, 400)) <= set(points), (
        "a copy of the ledger may date from any of these points"
    )
    files.close()


def test_a_torn_write_is_repeated_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = AnchorFiles([tmp_path], IDENTITY)
    files.append([end("b_1", 1, 1)])
    real = os.write

    def full(descriptor: int, raw: bytes) -> int:
        real(descriptor, raw[:20])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    files.append([end("b_1", 2, 2)])
    files.append([end("b_2", 1, 5)])
    assert "No space left" in caplog.text
    monkeypatch.setattr(os, "write", real)
    files.append([end("b_1", 3, 3)])
    anchor = only(files)
    assert spent(anchor, "b_1") == 3
    assert spent(anchor, "b_2") == 5, "the points whose first write failed"
    assert anchor.unreadable > 0
    files.close()


def test_malformed_lines_are_skipped() -> None:
    good = '{"book":"b","seq":1,"head":"h","accounts":[],"cells":[]}'
    bad = [
        "",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        '{"book":"b","seq":-1,"head":"h","accounts":[],"cells":[]}',
        '{"book":"b","seq":true,"head":"h","accounts":[],"cells":[]}',
        '{"book":"b","seq":1,"head":"h","accounts":[["b/a","gold",1,0,[]]],"cells":[]}',
        '{"book":"b","seq":1,"head":"h","accounts":[["b/a","pure",1,0,[1]]],"cells":[]}',
        '{"book":"b","seq":1,"head":"h","accounts":[["b/a","pure",-1,0,[]]],"cells":[]}',
        '{"book":"b","seq":1,"head":"h","accounts":[],"cells":[["b/a",1,1,0,[]]]}',
        '{"stamp":"c","seq":"1","link":"l","row":"q"}',
        '{"marks":"b","fingerprints":"x"}',
    ]
    anchor = read_anchor("a", [*bad, good])
    assert len(anchor.points) == 1
    assert anchor.unreadable == len(bad)


def test_files_of_ended_processes_are_replaced_and_files_in_use_stay(tmp_path: Path) -> None:
    ended, living, new = (AnchorFiles([tmp_path], IDENTITY) for _ in range(3))
    ended.append([end("b_1", 1, 1)])
    ended.close()
    living.append([end("b_1", 2, 2)])
    chain = StampChain("c", b"k")
    chain.stamp("q_1", "forfeited", 1)
    living.append([], chain)
    new.replace_ended(0, new.read(), [end("b_1", 2, 2)], [])
    assert len(new.read()) == 2
    (own,) = [anchor for anchor in new.read() if anchor.name != living.read()[0].name]
    assert {p.seq for p in own.points} == {1, 2}, "points of replaced files are kept"
    assert own.stamps["c"][1] == "q_1"
    living.append([end("b_1", 3, 3)])
    assert max(p.seq for anchor in new.read() for p in anchor.points) == 3
    living.close()
    new.close()


def test_a_folder_of_another_ledger_is_recognized_and_not_read(tmp_path: Path) -> None:
    other = AnchorFiles([tmp_path], "1" * 32)
    other.append([end("b_1", 9, 9)])
    ours = AnchorFiles([tmp_path], IDENTITY)
    assert ours.read() == []
    assert ours.others() == ["1" * 32]
    other.close()


def test_batches_committed_close_together_share_a_write_that_holds_every_point(
    tmp_path: Path,
) -> None:
    files = AnchorFiles([tmp_path], IDENTITY)

    async def commit() -> None:
        for number in range(1, 6):
            files.append_soon(partial(list, [end("b_1", number, number)]), None)
        files.append_soon(lambda: [end("b_2", 1, 50)], None)
        assert files.read() == []
        await asyncio.sleep(anchor_files.DELAY_SECONDS * 3)

    asyncio.run(commit())
    anchor = only(files)
    assert [p.seq for p in anchor.points if p.book == "b_1"] == [1, 2, 3, 4, 5]
    assert (spent(anchor, "b_1"), spent(anchor, "b_2")) == (5, 50)
    files.close()


def test_pending_points_are_written_at_shutdown(tmp_path: Path) -> None:
    files = AnchorFiles([tmp_path], IDENTITY)

    async def commit() -> None:
        files.append_soon(lambda: [end("b_1", 1, 1)], None)

    asyncio.run(commit())
    files.close()
    assert spent(only(files), "b_1") == 1


def test_a_book_behind_its_anchor_is_reported(tmp_path: Path) -> None:
    files = AnchorFiles([tmp_path], IDENTITY)
    files.append([end("b_1", 5)])
    head = f"{5:064x}"
    assert not files.has_lost(0, [Book("b_1", 5, head, 0), Book("b_2", 1, "x", 0)])
    assert not files.has_lost(0, [Book("b_1", 7, "later", 0)])
    assert files.has_lost(0, [Book("b_1", 4, "x", 0)])
    assert files.has_lost(0, [Book("b_1", 5, "x", 0)])
    assert not files.has_lost(2, [Book("b_1", 4, "x", 0)]), "the missing spend was booked"
    files.close()


def test_a_charge_succeeds_although_its_anchor_cannot_be_written(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = AnchorFiles([tmp_path], IDENTITY)
    ledger.database.anchors = files

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    ledger.grant(ledger.analysts[0].name, tenths=5)
    assert ledger.account(ledger.analysts[0].name).terms.epsilon == 5 * 10**11


def test_compaction_keeps_old_points_with_gaps_of_a_tenth_of_their_age() -> None:
    points = {seq: str(seq) for seq in range(1, 100_001)}
    kept = thinned(points)
    assert len(kept) < 4 * 2000
    assert set(range(98_001, 100_001)) <= set(kept)
    places = sorted(kept)
    for older, newer in itertools.pairwise(places):
        assert newer - older <= max(1, (100_000 - older) / 10)
    assert thinned(kept).keys() <= kept.keys()
