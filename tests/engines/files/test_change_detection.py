"""Source files are checked before every question: changed, missing, moved and restored."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.engines.files import change_detection
from app.errors import EngineUnavailable, SourceChanged
from tests.engines.files.changing_files import (
    CARD,
    COUNT,
    LONG_AGO,
    TICK,
    folder_of,
    nest,
    refused,
    some,
)
from tests.engines.remote.tables import Room, room_in, write_csv
from tests.engines.test_epochs import appended


def test_an_unchanged_file_is_read_once(room: Room, digests: list[str]) -> None:
    dataset = room.prepared(some(room), CARD)
    assert digests == ["t.csv"]
    for _ in range(3):
        assert room.engine.ready(dataset)
        room.engine.prepare(dataset)
    assert digests == ["t.csv"]


def test_another_server_reads_the_file_once_too(
    room: Room, tmp_path: Path, digests: list[str]
) -> None:
    dataset = room.prepared(some(room), CARD)
    with room_in(tmp_path) as other:  # the same folders
        assert not other.engine.ready(dataset)
        other.engine.prepare(dataset)
        assert other.engine.ready(dataset)
    assert digests == ["t.csv", "t.csv"]


def overwrite(file: Path) -> None:
    """Overwrite with equal length, and reset the modification time."""
    before = os.stat(file)
    file.write_bytes(file.read_bytes().replace(b"1", b"2"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def lengthen(file: Path) -> None:
    with file.open("a") as text:
        text.write("5\n")


def truncate(file: Path) -> None:
    os.truncate(file, 2)


def replace_it(file: Path) -> None:
    new = file.with_name("new.csv")
    write_csv(new, [{"x": 7}])
    os.replace(new, file)


def lead_elsewhere(file: Path) -> None:
    write_csv(file.with_name("other.csv"), [{"x": 7}])
    file.unlink()
    file.symlink_to("other.csv")


def lead_out(file: Path) -> None:
    outside = file.parent.parent / "outside.csv"
    shutil.move(file, outside)
    file.symlink_to(outside)


def remove(file: Path) -> None:
    file.unlink()


def make_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


SPOILERS = [
    overwrite, lengthen, truncate, replace_it, lead_elsewhere, lead_out, remove, make_a_folder,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILERS)
@pytest.mark.parametrize("settled", [True, False])
def test_a_changed_file_is_refused_until_it_is_restored(
    room: Room,
    spoil: Callable[[Path], None],
    settled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_detection, "SETTLED_NS", -1 if settled else 10**15)
    file = room.data / some(room)
    dataset = room.prepared("t.csv", CARD)
    assert not refused(room, dataset)
    kept = file.read_bytes()
    time.sleep(TICK)
    spoil(file)
    assert [refused(room, dataset) for _ in range(3)] == [True] * 3
    shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    time.sleep(TICK)
    file.write_bytes(kept)
    assert [refused(room, dataset) for _ in range(3)] == [False] * 3
    assert room.ask(dataset, COUNT) == ((1,),)


def test_a_changed_file_is_read_once_for_many_questions(room: Room, digests: list[str]) -> None:
    dataset = room.prepared(some(room), CARD)
    some(room, value=2)
    for _ in range(3):
        with pytest.raises(SourceChanged):
            room.engine.prepare(dataset)
    assert digests == ["t.csv"] * 2


def test_a_touched_file_is_read_again_and_accepted(room: Room, digests: list[str]) -> None:
    dataset = room.prepared(some(room), CARD)
    os.utime(room.data / "t.csv", ns=(LONG_AGO, LONG_AGO))
    assert not room.engine.ready(dataset)
    room.engine.prepare(dataset)
    assert room.engine.ready(dataset)
    assert digests == ["t.csv"] * 2


@pytest.mark.parametrize(("seconds", "settled"), [(0.0, False), (1.9, False), (2.1, True)])
def test_a_recently_written_file_is_read_every_time(
    room: Room, monkeypatch: pytest.MonkeyPatch, seconds: float, settled: bool
) -> None:
    """Another write within the same clock step would leave no trace."""
    some(room)
    later = os.stat(room.data / "t.csv").st_ctime_ns + int(seconds * 1e9)
    monkeypatch.setattr(change_detection, "time", SimpleNamespace(time_ns=lambda: later))
    dataset = room.prepared("t.csv", CARD)
    assert room.engine.ready(dataset) == settled
    room.engine.prepare(dataset)
    assert room.engine.ready(dataset) == settled


def test_a_file_in_an_earlier_root_is_another_file(tmp_path: Path, digests: list[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with room_in(tmp_path) as room:
        room.engine = type(room.engine)(home=room.home, data_roots=(first, second))
        write_csv(second / "t.csv", [{"x": 1}])
        dataset = room.register("t.csv", CARD)
        assert not refused(room, dataset)
        write_csv(first / "t.csv", [{"x": 2}])
        assert refused(room, dataset)
        (first / "t.csv").unlink()
        assert not refused(room, dataset)


def lead_to(link: Path, name: str) -> None:
    aside = link.with_name("aside")
    aside.symlink_to(name)
    os.replace(aside, link)


@pytest.mark.parametrize("then", ["a.csv", "b.csv"])
@pytest.mark.parametrize("first", ["a.csv", "b.csv"])
def test_a_link_that_points_elsewhere_for_a_moment_is_not_mistaken_for_the_file_read(
    room: Room, monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    """The link is checked while it points to one file, and read while it points to the other.

    Nothing is remembered about either file, neither that it matches nor that it does not.
    """
    other = {"a.csv": "b.csv", "b.csv": "a.csv"}[first]
    some(room, "a.csv")
    some(room, "b.csv", value=2)
    link = room.data / "t.csv"
    link.symlink_to("a.csv")
    dataset = room.prepared("t.csv", CARD)
    monkeypatch.setattr(change_detection, "SETTLED_NS", -1)
    for hooked in ("registered_sources", "digest_and_states"):
        real = getattr(change_detection, hooked)
        for before in (True, False):

            def flipped(*arguments: Any, real: Any = real, before: bool = before) -> Any:
                """Point the link elsewhere during the call, or from the call on."""
                lead_to(link, other if before else first)
                result = real(*arguments)
                lead_to(link, first if before else other)
                return result

            lead_to(link, first)
            room.engine._unchanged.forget(dataset.version.id)
            with monkeypatch.context() as hook:
                hook.setattr(change_detection, hooked, flipped)
                refused(room, dataset)
            lead_to(link, then)
            assert refused(room, dataset) == (then == "b.csv")


@pytest.mark.parametrize("name", ["t.csv/", "t.csv/.", "t.csv//", "./t.csv", "sub//t.csv"])
def test_a_change_is_noticed_under_every_name_of_the_file(
    room: Room, digests: list[str], name: str
) -> None:
    (room.data / "sub").mkdir()
    written = "sub/t.csv" if name.startswith("sub") else "t.csv"
    some(room, written)
    dataset = room.prepared(name, CARD, version_id="v")
    assert room.engine.ready(dataset)
    some(room, written, value=2)
    assert refused(room, dataset)
    (room.data / written).unlink()
    assert refused(room, dataset)


def test_something_else_at_the_path_of_a_source_counts_as_a_change(
    room: Room, digests: list[str]
) -> None:
    folder = folder_of(room, 3)
    dataset = room.prepared("parts", CARD)
    for spoil in (nest, lambda folder: (folder / "c[1].parquet").write_text("")):
        time.sleep(TICK)
        spoil(folder)
        with pytest.raises(SourceChanged):
            room.engine.prepare(dataset)
    shutil.rmtree(folder)
    with pytest.raises(EngineUnavailable) as gone:
        room.engine.prepare(dataset)
    assert not isinstance(gone.value, SourceChanged)


def test_a_failed_build_leaves_nothing(room: Room) -> None:
    dataset = room.register(some(room), CARD)
    some(room, value=2)
    with pytest.raises(SourceChanged):
        room.engine.prepare(dataset)
    assert not [each for each in room.home.rglob("*") if each.is_file()]


def test_a_change_of_any_epoch_is_noticed(room: Room, digests: list[str]) -> None:
    first = room.prepared(some(room, "a.csv"), CARD)
    second = appended(room, first, some(room, "b.csv", value=2))
    third = appended(room, second, some(room, "c.csv", value=3))
    assert not refused(room, third)
    kept = (room.data / "b.csv").read_bytes()
    some(room, "b.csv", value=4)
    assert refused(room, third)
    assert not refused(room, first)
    some(room, "d.csv", value=5)
    with pytest.raises(SourceChanged):
        room.engine.inspect_epoch(third, "d.csv")
    time.sleep(TICK)
    (room.data / "b.csv").write_bytes(kept)
    assert not refused(room, third)
