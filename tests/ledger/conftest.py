"""A small ledger that the tests share."""

import pytest

from tests.ledger.verification.books import Made


@pytest.fixture
def made() -> Made:
    ledger = Made()
    for holder, cost in (("ann", 10), ("bob", 20), ("ann", 5), ("bob", 1)):
        assert ledger.charge(holder, cost)
    ledger.void("bob", 1)
    return ledger
