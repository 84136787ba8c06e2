"""Stopping a run interrupts its statements in every thread, and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.actions.asking.engine_data import EngineData
from app.actions.asking.leased_run import LeasedRun
from app.data.card import Dataset
from app.engines.watchdog import AGAIN_SECONDS
from app.errors import EngineFailed
from app.queries.tally import Exact, Tally
from tests.bursard import wait_until
from tests.engines.endless import ENDLESS, LIGHT
from tests.engines.remote.tables import ASKER, Room

WAIT_SECONDS = 30  # less than the engine's time limit, which would end a run that was not stopped


def read(room: Room, dataset: Dataset, run: LeasedRun, tally: Tally = ENDLESS) -> Exact:
    with room.engine.stoppable(run), EngineData(room.engine, dataset, ASKER, run) as data:
        return data.exact(tally)


def are_reading(room: Room, number: int) -> None:
    """Wait until this many questions have a cursor."""
    wait_until(
        lambda: (
            sum(version.users for version in list(room.engine._versions._open.values())) == number
        ),
        WAIT_SECONDS,
        f"{number} questions are not reading yet",
    )


@pytest.mark.parametrize("moment", ["before it reads", "as it begins", "while it reads"])
def test_a_running_statement_is_interrupted(endless: tuple[Room, Dataset], moment: str) -> None:
    room, dataset = endless
    run = LeasedRun(None, 60, quiet_seconds=60)
    if moment == "before it reads":
        run.end()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, room, dataset, run)
        if moment == "while it reads":
            are_reading(room, 1)
        run.end()
        with pytest.raises(EngineFailed):
            reading.result(WAIT_SECONDS)
        with pytest.raises(EngineFailed):  # the stopped run may read nothing more
            pool.submit(read, room, dataset, run, LIGHT).result()
        fresh = LeasedRun(None, 60)  # in the same thread
        assert pool.submit(read, room, dataset, fresh, LIGHT).result() == ((500,),)


def test_a_concurrent_question_is_not_interrupted(endless: tuple[Room, Dataset]) -> None:
    room, dataset = endless
    stopped, other = LeasedRun(None, 60), LeasedRun(None, 60)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(read, room, dataset, stopped)
        second = pool.submit(read, room, dataset, other)
        are_reading(room, 2)
        stopped.end()
        with pytest.raises(EngineFailed):
            first.result(WAIT_SECONDS)
        with pytest.raises(TimeoutError):
            second.result(5 * AGAIN_SECONDS)
        other.end()
        with pytest.raises(EngineFailed):
            second.result(WAIT_SECONDS)


def test_a_finished_run_does_not_wake_the_watchdog() -> None:
    """Every question ends its run, and the watchdog ignores finished ones."""
    heard = threading.Event()
    run = LeasedRun(None, 60)
    with run.notifying(heard.set):
        assert not heard.is_set()
    run.end()
    assert not heard.is_set()
    with run.notifying(heard.set):
        assert heard.is_set()
