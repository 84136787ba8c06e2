"""Makes the golden files; chance and time are fixed by then (`fixed.py`)."""

from pathlib import Path

from tests.golden.compare import NAMES
from tests.golden.served.service import files_of_history
from tests.golden.statements import statements
from tests.golden.units import units


def write(folder: Path) -> None:
    made = {"units.json": units(), "statements.txt": statements(), **files_of_history()}
    assert sorted(made) == list(NAMES), "every file is compared"
    for name, text in made.items():
        (folder / name).write_text(text)
