"""Worlds of the crash tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Template
from tests.server import World


@pytest.fixture
def embedded(peopled: Template, tmp_path: Path) -> Iterator[World]:
    """A world for a single test, on SQLite."""
    made = peopled("sqlite", tmp_path / "ledger")
    yield made
    made.ledger.stop()
