"""Ledgers for the operator's commands."""

from pathlib import Path

import pytest

from tests.bursard import Ledger


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger in SQLite that does not exist yet."""
    (tmp_path / "data").mkdir()
    made = Ledger(tmp_path / "ledger", tmp_path / "data", "k" * 40)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made
