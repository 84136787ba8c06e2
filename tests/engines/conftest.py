from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.tables import Room, room_in


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with room_in(tmp_path) as made:
        yield made
