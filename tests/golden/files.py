"""Writer of the golden files; `fixed.py` has fixed randomness and time before."""

from pathlib import Path

from tests.golden.compare import NAMES
from tests.golden.served.service import files_of_history
from tests.golden.statements import statements
from tests.golden.units import units


def write(folder: Path) -> None:
    made = {"units.json": units(), "statements.txt": statements(), **files_of_history()}
    assert sorted(made) == list(NAMES), "every file must be compared"
    for name, text in made.items():
        (folder / name).write_text(text)
