import time
from threading import Event

import pytest

from app.cli import progress


class Watched:
    """Work that advances a step with each check, and is done after some checks.

    It fails at the end if there is a failure.
    """

    def __init__(self, looks: int, failure: Exception | None = None) -> None:
        self.step, self.looks, self.failure = 0, looks, failure
        self._done = Event()
        if not looks:
            self._done.set()

    def run(self) -> None:
        assert self._done.wait(60), "nobody checks the progress"
        if self.failure is not None:
            raise self.failure

    def fraction(self) -> float:
        part = self.step / self.looks
        self.step += 1
        if self.step == self.looks:
            self._done.set()
        return part

    def stop(self) -> None:
        self._done.set()


def test_without_a_terminal_occasional_lines_show_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.005)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    started = time.monotonic()
    progress.follow(Watched(3), "Converting", 10_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 3
    assert time.monotonic() - started >= len(lines) * 0.02
    assert lines[0].startswith("Converting: 0%, 0.0 MB/s, just begun")
    for line, part in zip(lines[1:], ("33%", "67%"), strict=False):
        assert line.startswith(f"Converting: {part}, ")
        assert " MB/s, " in line
        assert line.endswith(" s left")


def test_an_exception_of_the_work_is_raised() -> None:
    with pytest.raises(OSError, match="no room"):
        progress.follow(Watched(0, OSError("no room")), "Converting", 1)
