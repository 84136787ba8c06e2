"""An analyst who sends bad requests, and a ledger that they leave unchanged."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.http.bad_requests import PLANTED
from tests.server import Person, World


@pytest.fixture(scope="module")
def asker(live: World) -> Person:
    """An analyst with a budget on the dataset `target`."""
    person = live.person("asker")
    live.dataset(name="target")
    live.grant("target", "*", 1000)
    live.grant("target", "asker", 1000)
    return person


@pytest.fixture
def unchanged(live: World, asker: Person) -> Iterator[None]:
    """Check that a test leaves the ledger unchanged and the server running."""
    before = live.admin.get("/v1/ledger/export").text
    yield
    assert live.admin.get("/v1/ledger/export").text == before
    assert "unexpected" not in live.server.output()
    assert PLANTED not in live.server.output()
