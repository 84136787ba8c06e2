"""Properties are checked however slow the machine is, and a failing example can be run again."""

import pytest
from hypothesis import settings

from tests.ledger.verification.books import Made

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")


@pytest.fixture
def made() -> Made:
    ledger = Made()
    for holder, cost in (("ann", 10), ("bob", 20), ("ann", 5), ("bob", 1)):
        assert ledger.charge(holder, cost)
    ledger.void("bob", 1)
    return ledger
