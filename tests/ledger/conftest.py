"""Hypothesis settings: no deadline on slow machines, and failing examples that can be rerun."""

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
