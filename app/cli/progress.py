"""Follow long work: a bar with rate and time left on a terminal, elsewhere an occasional line."""

import sys
import time
from threading import Event, Thread
from typing import Protocol

import typer

LOOK_SECONDS = 0.1
LINE_SECONDS = 5.0


class ProgressSource(Protocol):
    def run(self) -> None: ...
    def fraction(self) -> float: ...
    def stop(self) -> None: ...


def follow(work: ProgressSource, label: str, size: int) -> None:
    """Run work in a thread, and show its progress; `size` is the number of bytes it reads.

    Ctrl-C stops the work, and is raised when it has stopped.
    """
    failures: list[BaseException] = []
    # Wait for this event instead of the thread. Before Python 3.13, a `join` interrupted by a
    # signal marks the thread as ended although it goes on.
    ended = Event()

    def run() -> None:
        try:
            work.run()
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            failures.append(error)
        finally:
            ended.set()

    thread = Thread(target=run, name="work")
    show = _bar if sys.stderr.isatty() else _lines
    try:
        thread.start()
        show(ended, work, label, size)
    except KeyboardInterrupt:
        while thread.ident is not None and not ended.wait(LOOK_SECONDS):
            work.stop()
        raise
    if failures:
        raise failures[0]


def _bar(ended: Event, work: ProgressSource, label: str, size: int) -> None:
    started, shown = time.monotonic(), 0
    with typer.progressbar(length=size, label=label, file=sys.stderr, show_eta=True) as bar:
        while shown < size:
            done = ended.wait(LOOK_SECONDS)
            reached = size if done else max(shown, min(int(work.fraction() * size), size - 1))
            bar.label = f"{label}, {_rate(reached, started)}"
            bar.update(reached - shown)
            shown = reached


def _lines(ended: Event, work: ProgressSource, label: str, size: int) -> None:
    started = said = time.monotonic()
    while not ended.wait(LOOK_SECONDS):
        now = time.monotonic()
        if now - said >= LINE_SECONDS:
            said, part = now, work.fraction()
            left = f"{(now - started) * (1 - part) / part:.0f} s left" if part else "just begun"
            rate = _rate(int(part * size), started)
            typer.echo(f"{label}: {part:.0%}, {rate}, {left}", err=True)


def _rate(done: int, started: float) -> str:
    return f"{done / 1e6 / max(time.monotonic() - started, 1e-3):.1f} MB/s"
