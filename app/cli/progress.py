"""Follow long work: a bar with rate and time left on a terminal, elsewhere a line now and then."""

import sys
import time
from threading import Thread
from typing import Protocol

import typer

LOOK_SECONDS = 0.1
LINE_SECONDS = 5.0


class Work(Protocol):
    def run(self) -> None: ...
    def fraction(self) -> float: ...
    def stop(self) -> None: ...


def follow(work: Work, label: str, size: int) -> None:
    """Run it in a thread; `size` is how many bytes it reads. Ctrl-C stops it, and is raised when it
    has stopped."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work.run()
        except BaseException as error:  # noqa: BLE001  # told to the caller's thread
            failures.append(error)

    thread = Thread(target=run, name="work")
    thread.start()
    show = _bar if sys.stderr.isatty() else _lines
    try:
        show(thread, work, label, size)
    except KeyboardInterrupt:
        while thread.is_alive():
            work.stop()
            thread.join(LOOK_SECONDS)
        raise
    if failures:
        raise failures[0]


def _bar(thread: Thread, work: Work, label: str, size: int) -> None:
    started, shown = time.monotonic(), 0
    with typer.progressbar(length=size, label=label, file=sys.stderr, show_eta=True) as bar:
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
            reached = size if not thread.is_alive() else max(shown, int(work.fraction() * size))
            bar.label = f"{label}, {_rate(reached, started)}"
            bar.update(reached - shown)
            shown = reached


def _lines(thread: Thread, work: Work, label: str, size: int) -> None:
    started = said = time.monotonic()
    while thread.is_alive():
        thread.join(LOOK_SECONDS)
        now = time.monotonic()
        if thread.is_alive() and now - said >= LINE_SECONDS:
            said, part = now, work.fraction()
            left = f"{(now - started) * (1 - part) / part:.0f} s left" if part else "just begun"
            rate = _rate(int(part * size), started)
            typer.echo(f"{label}: {part:.0%}, {rate}, {left}", err=True)


def _rate(done: int, started: float) -> str:
    return f"{done / 1e6 / max(time.monotonic() - started, 1e-3):.1f} MB/s"
