import time

import pytest

from app.cli import progress


class Slow:
    """Work that is done in steps, and fails at the end if it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.steps, self.failure = 0, failure

    def run(self) -> None:
        while self.steps < 10:
            time.sleep(0.01)
            self.steps += 1
        if self.failure is not None:
            raise self.failure

    def fraction(self) -> float:
        return self.steps / 10

    def stop(self) -> None:
        self.steps = 10


def test_without_a_terminal_a_line_now_and_then_tells_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.005)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    progress.follow(Slow(), "Converting", 10_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 10
    assert all(line.startswith("Converting: ") and " MB/s, " in line for line in lines)
    assert any(line.endswith(" s left") for line in lines)


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(OSError, match="no room"):
        progress.follow(Slow(OSError("no room")), "Converting", 1)
