"""Copies that the tests of this folder put back."""

from pathlib import Path

import pytest

from tests.end_to_end.crashes.rollback.copies import Copies
from tests.server import World


@pytest.fixture
def copies(world: World, store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Copies:
    postgres = request.getfixturevalue("postgres") if store_kind == "postgresql" else None
    return Copies(world.ledger, postgres, tmp_path / "copies")
