from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actions.service import Service, service_in


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with service_in(tmp_path) as made:
        yield made
