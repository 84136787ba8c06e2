"""Comparison of golden files with the current output of the app; imports nothing of the app."""

import difflib
from pathlib import Path

FOLDER = Path(__file__).parent / "expected"
NAMES = (
    "entries.txt",
    "export.txt",
    "messages.json",
    "openapi.json",
    "openapi_words.json",
    "previews.json",
    "responses.json",
    "statements.txt",
    "units.json",
)
LINES_MAX = 60  # shown of one file
WIDTH = 400


def difference(kept: Path, new: Path) -> str:
    """A readable difference of two versions of one file; empty if they are equal."""
    before, after = (path.read_text().splitlines() if path.exists() else [] for path in (kept, new))
    names = f"{kept.name}, kept", f"{kept.name}, now"
    found = difflib.unified_diff(before, after, *names, n=1, lineterm="")
    lines = [line if len(line) <= WIDTH else f"{line[:WIDTH]} ..." for line in found]
    if len(lines) > LINES_MAX:
        lines = [*lines[:LINES_MAX], f"... and {len(lines) - LINES_MAX} more lines"]
    return "\n".join(lines)
