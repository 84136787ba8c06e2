"""A progress bar on standard error, for long questions. A pipe or a log gets none."""

import sys

from bursar.http.flow import Progress

WIDTH = 24


def show_progress(progress: Progress) -> None:
    """Draw the bar again. The last step removes it."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return
    if progress.share == 1.0:
        text = ""
    elif progress.share is None:
        text = f"answering: {progress.text[:50]} (Ctrl-C cancels)"
    else:
        full = round(WIDTH * progress.share)
        bar = "#" * full + "." * (WIDTH - full)
        text = f"[{bar}] {100 * progress.share:3.0f} % (Ctrl-C cancels)"
    sys.stderr.write(f"\r{text:<80}\r{text}")
    sys.stderr.flush()


def show_nothing(_: Progress) -> None:
    pass
