"""Servers with snapshots that keep guessing."""

from collections.abc import Iterator

import pytest

from app.ledger.orders import Charged
from app.store.writer import snapshot as known_module
from tests.store.ledgers import Ledger
from tests.store.writer.snapshot.snapshot_server import Server


@pytest.fixture(autouse=True)
def never_doubting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep guessing after a wrong guess, so that the tests exercise guesses."""
    monkeypatch.setattr(known_module, "DOUBTED", 0)


@pytest.fixture
def servers(ledger: Ledger) -> Iterator[tuple[Server, Server]]:
    """Two servers that have each made a charge, so their snapshots are filled."""
    made = Server(ledger), Server(ledger)
    for server in made:
        (charge,) = server.settle(ledger.order())
        assert isinstance(charge, Charged)
    yield made
    for server in made:
        server.close()
