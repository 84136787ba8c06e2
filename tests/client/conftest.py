"""Fixtures of the client's tests: a card without a server, and questions that are only built."""

from typing import Any

import pytest

from app.demo.cards import CENSUS
from bursar import Dataset, Question
from bursar.ask.cards import Card
from bursar.http.progress import show_nothing
from bursar.http.rollback_check import SeenCharges
from bursar.http.transport import Transport
from tests.client.make_bodies import description

Json = dict[str, Any]


@pytest.fixture(scope="session")
def openapi() -> Json:
    return description()


@pytest.fixture
def census() -> Dataset:
    """A dataset that sends nothing: its server does not exist."""
    members = {**CENSUS, "status": "open", "version": 1}
    card = Card.read(members)
    seen = SeenCharges("http://127.0.0.1:1", "key", None)
    transport = Transport("http://127.0.0.1:1", "key", True, show_nothing)
    empty = Question(card, None, seen=seen, transport=transport)
    return Dataset(card, empty, None, None, transport=transport)
