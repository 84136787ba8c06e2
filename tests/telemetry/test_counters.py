"""Counts of several workers: real processes share files, die, and are replaced."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.telemetry.counters import CELL, Counters, CountLayout, ServerFolder, WorkerFiles
from tests.bursard import CHECKOUT

LAYOUT = CountLayout(["beat"], [("charges", ""), ("answers", "")])
WORKER = """
import sys
from pathlib import Path
from app.telemetry.counters import CountLayout, WorkerFiles
files = WorkerFiles(Path(sys.argv[1]), CountLayout(["beat"], [("charges", ""), ("answers", "")]))
counters = files.claim()
counters.add(("charges", ""), int(sys.argv[2]))
counters.put_state({"beat": files.number * 10})
print(files.number, flush=True)
sys.stdin.read()
"""


class Worker:
    """A process that has claimed a file and counted some charges."""

    def __init__(self, folder: Path, charges: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder), str(charges)],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.number = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return ServerFolder(tmp_path).path


def test_the_sum_of_all_workers_never_falls_when_one_dies(folder: Path) -> None:
    first, second = Worker(folder, 5), Worker(folder, 7)
    try:
        assert {first.number, second.number} == {1, 2}
        reader = WorkerFiles(folder, LAYOUT)
        assert reader.read().counts["charges", ""] == 12
        assert reader.read().state == {1: {"beat": 10}, 2: {"beat": 20}}
        first.kill()
        after = reader.read()
        assert after.counts["charges", ""] == 12
        assert list(after.state) == [second.number], "a dead worker still shows its state"
    finally:
        first.kill()
        second.kill()


def test_the_next_worker_goes_on_in_the_file_of_a_dead_one(folder: Path) -> None:
    first, second = Worker(folder, 5), Worker(folder, 7)
    first.kill()
    third = Worker(folder, 100)
    try:
        assert third.number == first.number
        assert WorkerFiles(folder, LAYOUT).read().counts["charges", ""] == 112
        assert len(list(folder.glob("worker-*"))) == 2
    finally:
        second.kill()
        third.kill()


def test_a_count_that_was_not_declared_is_left_out(folder: Path) -> None:
    counters = WorkerFiles(folder, LAYOUT).claim()
    counters.add(("typed by somebody", ""))
    assert counters.read().counts == {("charges", ""): 0, ("answers", ""): 0}
    assert (folder / "worker-1").stat().st_size == LAYOUT.cells * CELL


def test_a_process_without_a_folder_counts_for_itself() -> None:
    counters = Counters(LAYOUT)
    counters.add(("answers", ""), 3)
    assert counters.read().counts["answers", ""] == 3


def test_folders_are_private_and_only_those_of_ended_servers_are_removed(tmp_path: Path) -> None:
    running = ServerFolder(tmp_path)
    ended = ServerFolder(tmp_path)
    os.close(ended._held)  # as when the process ends
    (ended.path / "worker-1").write_bytes(b"left behind")
    new = ServerFolder(tmp_path)
    assert running.path.exists()
    assert not ended.path.exists()
    assert new.path not in (running.path, ended.path)
    for path in (tmp_path / "telemetry", new.path):
        assert path.stat().st_mode & 0o777 == 0o700
    new.remove()
    running.remove()
    assert not running.path.exists()


def test_the_order_in_which_a_worker_lists_its_counts_does_not_matter() -> None:
    names = [("requests", "GET"), ("requests", "HEAD"), ("charges", "")]
    layouts = [CountLayout(["beat"], order) for order in (names, names[::-1], names * 2)]
    assert len({layout.counts for layout in layouts}) == 1
    assert layouts[0].places == layouts[1].places == layouts[2].places
