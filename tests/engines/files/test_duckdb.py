import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from app.data.card import Dataset
from app.engines import ENGINES, load_engine
from app.engines.files.duckdb import DuckDBEngine
from app.engines.files.prepare import version_path
from app.engines.files.versions import OpenVersions
from app.errors import EngineFailed
from app.queries.tally import ByEdges, Compare, CountRows, Exact, SumSteps, Tally
from tests.effort import is_quick
from tests.engines.endless import ENDLESS, LIGHT, X_CARD, no_time
from tests.engines.remote.tables import ASKER, Room, room_in, write_csv

COUNT = Tally(None, (), (CountRows(),))


@pytest.fixture
def big(room: Room) -> tuple[Room, Dataset]:
    with duckdb.connect() as connection:
        query = "SELECT (i * 7919 % 1000003) / 1000.003 AS x FROM range(3000000) r(i)"
        connection.execute(f"COPY ({query}) TO '{room.data}/big.parquet'")
    return room, room.prepared("big.parquet", X_CARD)


def small(room: Room, name: str = "t.csv", rows: int = 3) -> Dataset:
    write_csv(room.data / name, [{"x": i} for i in range(rows)])
    return room.prepared(name, X_CARD)


def test_the_registry_makes_the_engine(tmp_path: Path) -> None:
    for name in ENGINES:
        engine = load_engine(name, home=tmp_path, data_roots=(tmp_path,), connections={})
        assert isinstance(engine, DuckDBEngine) == (name == "duckdb")


def test_an_overdue_question_is_interrupted_and_the_next_one_is_answered(
    endless: tuple[Room, Dataset],
) -> None:
    room, dataset = endless
    for number in range(3):
        with (
            no_time(room),
            pytest.raises(EngineFailed, match=r"^The question could not be answered\.$"),
        ):
            room.ask(dataset, ENDLESS)
        # a new question each time
        below = Tally(Compare("x", "<", 500.0 - number), (), (CountRows(),))
        assert room.ask(dataset, below) == ((500 - number,),)
    assert room.engine.cached(dataset, ENDLESS, ASKER) is None


def test_an_interruption_stops_no_other_question(endless: tuple[Room, Dataset]) -> None:
    """Another thread asks the same version before, during and after the interruption."""
    room, dataset = endless
    patient = DuckDBEngine(home=room.home, data_roots=(), timeout_seconds=60, memo_size=0)
    begun, over = threading.Barrier(5, timeout=60), threading.Event()

    def ask_on() -> set[Exact]:
        results = {patient.exact(dataset, LIGHT, ASKER)}
        begun.wait()
        while not over.is_set():
            results.add(patient.exact(dataset, LIGHT, ASKER))
        return results | {patient.exact(dataset, LIGHT, ASKER)}

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask_on) for _ in range(4)]
        try:
            begun.wait()
            with no_time(room), pytest.raises(EngineFailed):
                room.ask(dataset, ENDLESS)
        finally:
            over.set()
        assert [answer.result() for answer in answers] == [{((500,),)}] * 4
    patient.close()


def test_one_watchdog_serves_the_whole_process(endless: tuple[Room, Dataset]) -> None:
    room, dataset = endless
    room.ask(dataset, LIGHT)
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("engine-watchdog") == 1


@pytest.mark.thorough
def test_too_little_memory_fails_the_question_but_not_the_engine(
    big: tuple[Room, Dataset],
) -> None:
    room, dataset = big
    edges = tuple(i / 100 for i in range(100_000))
    large = Tally(None, (ByEdges("x", edges),), (CountRows(), SumSteps("x")))
    room.engine.close()
    poor = DuckDBEngine(home=room.home, data_roots=(), memory_limit="20MB", timeout_seconds=60)
    poor._versions = OpenVersions(replace(poor._limits, temporary_size_max="1MB"), 1)
    with pytest.raises(EngineFailed):
        poor.exact(dataset, large, ASKER)
    assert poor.exact(dataset, COUNT, ASKER) == ((3_000_000,),)
    poor.close()


def test_no_error_message_holds_a_cell(room: Room) -> None:
    dataset = small(room)
    path = version_path(room.home, dataset)
    path.unlink()
    with duckdb.connect(str(path)) as connection:
        # A version that the app would never write: the driver quotes the cell it cannot read.
        connection.execute("CREATE TABLE cells AS SELECT 'SECRET-4711' AS cell")
        connection.execute("CREATE VIEW rows AS SELECT CAST(cell AS DOUBLE) AS c0 FROM cells")
        with pytest.raises(duckdb.Error, match="SECRET-4711"):
            connection.execute("SELECT * FROM rows WHERE c0 < CAST(? AS DOUBLE)", [5.0])
    with pytest.raises(EngineFailed) as failed:
        room.ask(dataset, LIGHT)
    error = failed.value
    shown = "".join(traceback.format_exception(error)) + repr(error.members)
    assert "SECRET" not in shown
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("damage", ["gone", "garbage", "another table"])
def test_a_damaged_version_fails_with_the_same_message(room: Room, damage: str) -> None:
    dataset = small(room)
    path = version_path(room.home, dataset)
    path.unlink()
    if damage == "garbage":
        path.write_bytes(b"SECRET" * 5000)
    elif damage == "another table":
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE other AS SELECT 1 AS c0")
    with pytest.raises(EngineFailed, match=r"^The question could not be answered\.$") as failed:
        room.ask(dataset, COUNT)
    assert failed.value.__context__ is None


def test_a_question_about_an_unknown_column_fails_with_the_same_message(room: Room) -> None:
    dataset = small(room)
    with pytest.raises(EngineFailed, match=r"^The question could not be answered\.$"):
        room.ask(dataset, Tally(Compare("absent", "==", 1), (), (CountRows(),)))


def test_a_repeated_question_reads_no_data(room: Room) -> None:
    dataset = small(room)
    assert room.engine.cached(dataset, LIGHT, ASKER) is None
    result = room.ask(dataset, LIGHT)
    room.engine.close()
    version_path(room.home, dataset).unlink()
    again = Tally(Compare("x", "<", 500), (), (CountRows(),))
    assert (
        room.engine.cached(dataset, again, ASKER) == room.ask(dataset, again) == result == ((3,),)
    )
    with pytest.raises(EngineFailed):
        room.ask(dataset, COUNT)


def test_a_cached_result_of_another_analyst_is_not_used(room: Room) -> None:
    """A fast reply would reveal what the other analyst asked."""
    dataset = small(room, "a.csv", 2)
    assert room.ask(dataset, COUNT) == ((2,),)
    assert room.engine.cached(dataset, COUNT, ASKER) == ((2,),)
    assert room.engine.cached(dataset, COUNT, "somebody else") is None


def test_versions_do_not_share_results(room: Room) -> None:
    first, second = small(room, "a.csv", 2), small(room, "b.csv", 5)
    assert room.ask(first, COUNT) == ((2,),)
    assert room.engine.cached(second, COUNT, ASKER) is None
    assert room.ask(second, COUNT) == ((5,),)


def test_the_number_of_open_versions_is_limited(tmp_path: Path) -> None:
    with room_in(tmp_path, open_versions_max=2, memo_size=0) as room:
        datasets = [small(room, f"t{i}.csv", i + 1) for i in range(5)]
        for _ in range(2):
            for i, dataset in enumerate(datasets):
                assert room.ask(dataset, COUNT) == ((i + 1,),)
                assert len(room.engine._versions) <= 2


def test_a_version_in_use_is_not_closed(tmp_path: Path) -> None:
    with room_in(tmp_path, open_versions_max=1, memo_size=0) as room:
        datasets = [small(room, f"t{i}.csv", i + 1) for i in range(3)]
        with room.engine._versions.cursor(datasets[0]) as (cursor, _):
            for i, dataset in enumerate(datasets):
                assert room.ask(dataset, COUNT) == ((i + 1,),)
            assert cursor.execute("SELECT count(*) FROM rows").fetchall() == [(1,)]
        assert len(room.engine._versions) == 1


def test_many_threads_get_their_own_answers(tmp_path: Path) -> None:
    with room_in(tmp_path, open_versions_max=2, memo_size=10) as room:
        datasets = [small(room, f"t{i}.csv", 100 + i) for i in range(4)]

        def ask(number: int) -> bool:
            dataset, bound = datasets[number % 4], number % 90
            tally = Tally(Compare("x", "<", bound), (), (CountRows(), SumSteps("x")))
            rows, _ = room.ask(dataset, tally)
            return rows == (bound,)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(ask, range(40 if is_quick() else 400)))


def test_results_are_python_integers_beyond_64_bits(room: Room) -> None:
    write_csv(room.data / "t.csv", [{"x": 1000}] * 50_000)
    dataset = room.prepared("t.csv", X_CARD)
    ((total,),) = room.ask(dataset, Tally(None, (), (SumSteps("x"),)))
    column = X_CARD.columns[0]
    assert column.type == "number"
    assert total == 50_000 * column.steps[1]
    assert type(total) is int
