"""What is stopped is really interrupted, wherever its thread is, and nothing else is."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

from app.actions.engine_data import EngineData
from app.actions.long_run import LongRun
from app.datasets import Dataset
from app.errors import EngineFailed
from tests.engines.tables import ASKER, Room, room_in
from tests.engines.test_duckdb import CARD, COUNT, HEAVY


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Room, Dataset]]:
    """Rows for which HEAVY takes seconds, and an engine that would wait for it for a minute."""
    with room_in(tmp_path_factory.mktemp("stopped"), timeout_seconds=60.0) as room:
        with duckdb.connect() as connection:
            query = "SELECT (i * 7919 % 1000003) / 1000.003 AS x FROM range(6000000) r(i)"
            connection.execute(f"COPY ({query}) TO '{room.data}/big.parquet'")
        yield room, room.prepared("big.parquet", CARD)


def read(room: Room, dataset: Dataset, run: LongRun) -> float:
    """Reads what takes seconds; how long after the run's end it failed."""
    with room.engine.stoppable(run), EngineData(room.engine, dataset, ASKER, run) as data:
        try:
            data.exact(HEAVY)
        except EngineFailed:
            return time.monotonic()
    raise AssertionError("it was not stopped")


@pytest.mark.parametrize("after_seconds", [0.0, 0.01, 0.3])
def test_what_is_being_read_is_interrupted(
    patient: tuple[Room, Dataset], after_seconds: float
) -> None:
    room, dataset = patient
    run = LongRun(None, 60, quiet_seconds=60)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, room, dataset, run)
        time.sleep(after_seconds)
        run.end()
        ended = time.monotonic()
        assert reading.result() - ended < 1.5
        with pytest.raises(EngineFailed):  # nothing more is read for it
            pool.submit(read_count, room, dataset, run).result()
        fresh = LongRun(None, 60)  # of the same thread
        assert pool.submit(read_count, room, dataset, fresh).result() == ((6_000_000,),)


def read_count(room: Room, dataset: Dataset, run: LongRun) -> object:
    with room.engine.stoppable(run), EngineData(room.engine, dataset, ASKER, run) as data:
        return data.exact(COUNT)


def test_the_question_beside_it_is_not_hit(patient: tuple[Room, Dataset]) -> None:
    room, dataset = patient
    stopped, other = LongRun(None, 60), LongRun(None, 60)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(read, room, dataset, stopped)
        second = pool.submit(read, room, dataset, other)
        time.sleep(0.3)
        stopped.end()
        ended = first.result()
        time.sleep(0.2)
        assert not second.done()
        other.end()
        assert second.result() > ended


def test_a_run_that_is_over_wakes_nobody() -> None:
    """Every question ends its run; the watchdog need not hear of those that are done."""
    heard = threading.Event()
    run = LongRun(None, 60)
    with run.telling(heard.set):
        assert not heard.is_set()
    run.end()
    assert not heard.is_set()
    with run.telling(heard.set):
        assert heard.is_set()
