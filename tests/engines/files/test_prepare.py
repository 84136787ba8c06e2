"""Prepared versions: the kept rows of a person, rebuilding, dropping and concurrent builds."""

import fcntl
import os
import pickle
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import pytest

from app.data.card import Card, Dataset
from app.engines.files.connect import Limits, connect_to_ask
from app.engines.files.prepare import _lock, _locked, version_path
from app.errors import EngineUnavailable, SourceChanged
from app.queries.tally import ByValues, Compare, CountPresent, CountRows, SumSteps, Tally
from tests.engines.remote.tables import Room, card_of, card_with, stored, write_csv, write_parquet

COUNT = Tally(None, (), (CountRows(),))


def answerable(room: Room, dataset: Dataset) -> list[tuple[Any, ...]]:
    """All columns except the person number, which no question may use."""
    return sorted((*row[:-2], row[-1]) for row in stored(room, dataset))


def persons_card(rows_max: int) -> Card:
    return card_of(
        {"name": "who", "type": "category", "values": [f"p{i}" for i in range(50)]},
        {"name": "x", "type": "number", "low": 0, "high": 1000},
        person={"kind": "column", "column": "id", "rows_max": rows_max},
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_every_person_keeps_as_many_rows_as_the_card_allows(room: Room, kind: str) -> None:
    counts = {f"p{i}": i % 7 for i in range(50)}
    rows: list[dict[str, Any]] = [
        {"id": who, "who": who, "x": float(n % 3)}
        for who, count in counts.items()
        for n in range(count)
    ]
    rows += [{"id": None, "who": "p0", "x": 1.0}] * 5
    if kind == "csv":
        write_csv(room.data / "t.csv", rows)
    else:
        types = {"id": "VARCHAR", "who": "VARCHAR", "x": "DOUBLE"}
        write_parquet(room.data / "t.parquet", rows, types)
    dataset = room.prepared(f"t.{kind}", persons_card(3))
    tally = Tally(None, (ByValues("who", tuple(counts)),), (CountRows(),))
    assert room.ask(dataset, tally) == (tuple(min(count, 3) for count in counts.values()),)


def test_the_kept_rows_depend_only_on_the_seed(room: Room) -> None:
    rows = [{"id": f"p{i % 5}", "who": f"p{i % 5}", "x": i / 3} for i in range(300)]
    write_csv(room.data / "a.csv", rows)
    write_csv(room.data / "b.csv", rows[::-1], ["x", "who", "id"])
    card = persons_card(4)
    first = room.prepared("a.csv", card, version_id="first")
    again = room.prepared("a.csv", card, version_id="again")
    turned = room.prepared("b.csv", card, version_id="turned")
    other = room.prepared("a.csv", card, version_id="other", seed="other")
    kept = [answerable(room, each) for each in (first, again, turned, other)]
    assert kept[0] == kept[1] == kept[2]
    assert kept[0] != kept[3]
    assert [len(rows) for rows in kept] == [20, 20, 20, 20]


def test_other_persons_do_not_change_which_rows_a_person_keeps(room: Room) -> None:
    rows = [{"id": f"p{i % 5}", "who": f"p{i % 5}", "x": i / 3} for i in range(300)]
    write_csv(room.data / "all.csv", rows)
    write_csv(room.data / "fewer.csv", [row for row in rows if row["id"] != "p4"])
    card = persons_card(4)
    everyone = answerable(room, room.prepared("all.csv", card))
    fewer = answerable(room, room.prepared("fewer.csv", card))
    assert [row for row in everyone if row[0] != 4] == fewer


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_of_a_person_share_one_number_that_no_other_person_has(room: Room, kind: str) -> None:
    rows = [{"id": f"p{i % 50}", "who": f"p{i % 50}", "x": float(i % 3)} for i in range(1000)]
    if kind == "csv":
        write_csv(room.data / "t.csv", rows)
    else:
        types = {"id": "VARCHAR", "who": "VARCHAR", "x": "DOUBLE"}
        write_parquet(room.data / "t.parquet", rows, types)
    kept = stored(room, room.prepared(f"t.{kind}", persons_card(7)))
    assert len(kept) == 350
    assert len({(row[0], row[-2]) for row in kept}) == 50
    assert len({row[-2] for row in kept}) == 50
    assert {(row[-2], row[-1]) for row in kept} == {
        (person, place) for person in {row[-2] for row in kept} for place in range(1, 8)
    }


def test_a_version_prepared_by_an_older_release_without_persons_is_rebuilt(room: Room) -> None:
    write_csv(room.data / "t.csv", [{"id": "ann", "who": "p1", "x": 2.0}] * 3)
    dataset = room.register("t.csv", persons_card(2))
    older = room.home / "versions" / f"{dataset.version.id}.duckdb"
    older.parent.mkdir(mode=0o700)
    with duckdb.connect(str(older)) as connection:
        connection.execute("CREATE TABLE rows AS SELECT 1 AS c0, 2.0 AS c1, 4294967296 AS s1")
    assert room.engine.is_missing(dataset)
    room.engine.prepare(dataset)
    assert not room.engine.is_missing(dataset)
    assert {row[-1] for row in stored(room, dataset)} == {1, 2}
    assert room.ask(dataset, COUNT) == ((2,),)
    assert room.engine.prepared() == [dataset.version.id]
    assert room.engine.drop(dataset.version.id)
    assert [*older.parent.glob("*.duckdb")] == [], "the versions of both servers"


def test_a_changed_source_is_refused(room: Room) -> None:
    write_csv(room.data / "t.csv", [{"x": 1}])
    dataset = room.register("t.csv", card_of({"name": "x", "type": "boolean"}))
    write_csv(room.data / "t.csv", [{"x": 0}])
    with pytest.raises(SourceChanged, match="not what was registered"):
        room.engine.prepare(dataset)
    (room.data / "t.csv").unlink()
    with pytest.raises(EngineUnavailable):
        room.engine.prepare(dataset)
    assert not list(room.home.glob("versions/*.duckdb"))
    assert not list(room.home.glob("versions/*.building*"))


def test_a_prepared_version_is_not_rebuilt(room: Room) -> None:
    write_csv(room.data / "t.csv", [{"x": 1}])
    dataset = room.prepared("t.csv", card_of({"name": "x", "type": "boolean"}))
    path = version_path(room.home, dataset)
    before = os.stat(path)
    room.engine.prepare(dataset)
    assert os.stat(path) == before
    assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700
    assert room.ask(dataset, COUNT) == ((1,),)


def test_the_remains_of_a_killed_build_are_replaced(room: Room) -> None:
    write_csv(room.data / "t.csv", [{"x": 1}])
    dataset = room.register("t.csv", card_of({"name": "x", "type": "boolean"}))
    path = version_path(room.home, dataset)
    path.parent.mkdir()
    path.with_suffix(".building").write_bytes(b"half a file")
    path.with_suffix(".building.wal").write_bytes(b"half a log")
    room.engine.prepare(dataset)
    assert room.ask(dataset, COUNT) == ((1,),)


def test_a_version_identifier_cannot_point_elsewhere(room: Room) -> None:
    write_csv(room.data / "t.csv", [{"x": 1}])
    dataset = room.register("t.csv", card_of({"name": "x", "type": "boolean"}))
    dataset = replace(dataset, version=replace(dataset.version, id="../elsewhere"))
    with pytest.raises(EngineUnavailable):
        room.engine.prepare(dataset)


SCRIPT = """
import pickle, sys
from pathlib import Path
from threading import Thread
from tests.engines.remote.tables import Room
room, dataset = Room(Path(sys.argv[1])), pickle.loads(bytes.fromhex(sys.argv[2]))
sys.stdin.readline()
room.engine.prepare(dataset)
"""


@pytest.mark.served
def test_two_processes_may_prepare_concurrently(room: Room, tmp_path: Path) -> None:
    write_csv(room.data / "t.csv", [{"x": i % 2} for i in range(200_000)])
    dataset = room.register("t.csv", card_of({"name": "x", "type": "boolean"}))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), pickle.dumps(dataset).hex()]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in started:
        process.communicate()
    assert [process.returncode for process in started] == [0, 0, 0]
    assert room.ask(dataset, Tally(Compare("x", "==", True), (), (CountRows(),))) == ((100_000,),)
    assert [path.suffix for path in sorted((room.home / "versions").iterdir())] == [
        ".duckdb",
        ".lock",
    ]


def test_an_empty_table_counts_zero(room: Room) -> None:
    write_parquet(room.data / "t.parquet", [])
    dataset = room.prepared("t.parquet", card_with())
    tally = Tally(None, (), (CountRows(), CountPresent("city"), SumSteps("income")))
    assert room.ask(dataset, tally) == ((0,), (0,), (0,))


def test_a_dropped_version_stays_readable_for_those_who_have_it_open(room: Room) -> None:
    write_csv(room.data / "a.csv", [{"age": 1}])
    dataset = room.prepared(
        "a.csv", card_of({"name": "age", "type": "integer", "low": 0, "high": 9})
    )
    path = version_path(room.home, dataset)
    with connect_to_ask(path, Limits(room.home, "256MB", 1)) as other:
        assert room.engine.prepared() == [dataset.version.id]
        assert room.engine.drop(dataset.version.id)
        assert other.execute("SELECT count(*) FROM rows").fetchall() == [(1,)]
    assert [*path.parent.iterdir()] == []
    assert room.engine.prepared() == []
    assert not room.engine.drop(dataset.version.id)
    room.engine.prepare(dataset)  # as a server with a stale catalogue does
    assert room.ask(dataset, COUNT) == ((1,),)


def test_a_version_under_construction_is_not_dropped(room: Room) -> None:
    write_csv(room.data / "a.csv", [{"age": 1}])
    dataset = room.prepared(
        "a.csv", card_of({"name": "age", "type": "integer", "low": 0, "high": 9})
    )
    path = version_path(room.home, dataset)
    with _locked(path.with_suffix(".lock")):
        assert not room.engine.drop(dataset.version.id)
    assert path.exists()
    assert room.engine.drop(dataset.version.id)


def test_a_lock_on_a_deleted_file_excludes_nobody_and_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.lock"
    descriptor, held = _lock(path, wait=True)
    assert held
    taken: list[bool] = []
    opened, flock = Event(), fcntl.flock

    def flock_of_an_open_file(descriptor: int, how: int) -> None:
        opened.set()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock_of_an_open_file)

    def take() -> None:
        with _locked(path) as mine:
            taken.append(mine)
            # It now holds the existing file, so another process is excluded.
            other, held = _lock(path, wait=False)
            os.close(other)
            taken.append(held)

    waiting = Thread(target=take)
    waiting.start()
    assert opened.wait(60)  # it has opened the file that will be deleted
    assert not taken
    path.unlink()
    path.touch()
    os.close(descriptor)
    waiting.join(60)
    assert taken == [True, False]


def test_the_build_of_a_killed_process_is_removed_unless_another_continues_it(room: Room) -> None:
    write_csv(room.data / "a.csv", [{"age": 1}])
    card = card_of({"name": "age", "type": "integer", "low": 0, "high": 9})
    path = version_path(room.home, room.prepared("a.csv", card))
    left = [path.parent / f"v_{name}.building" for name in ("killed.persons", "at-work")]
    for building in left:
        for suffix in ("", ".wal"):
            building.with_name(building.name + suffix).write_text("SECRET")
        building.with_suffix(".lock").touch()
    with _locked(left[1].with_suffix(".lock")):
        assert room.engine.prepared() == [path.stem]
        assert not left[0].exists()
        assert left[1].exists(), "another process is building it"
    room.engine.prepared()
    assert {each.suffix for each in path.parent.iterdir()} == {".duckdb", ".lock"}
    assert {each.stem for each in path.parent.iterdir()} == {path.stem}
