"""Prices, statements, replies and the ledger's bytes are unchanged: see `compare.NAMES`.

If a change is intended, `python -m tests.golden` writes the files anew. The commit then says which
lines changed and why.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.compare import FOLDER, NAMES, difference

CHECKOUT = FOLDER.parents[2]


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The current files, made in a separate process with fixed randomness and time."""
    folder = tmp_path_factory.mktemp("golden")
    command = [sys.executable, "-m", "tests.golden", "--to", str(folder)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_golden_files_are_unchanged(now: Path, name: str) -> None:
    found = difference(FOLDER / name, now / name)
    assert not found, f"\n{found}"
