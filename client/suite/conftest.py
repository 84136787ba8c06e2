"""Fixtures of the client's own suite. It needs pytest, the client, and a demo server.

`BURSAR_URL` is the address of a fresh demo, and `BURSAR_DEMO_KEYS` the file with its keys. The
service's tests start one and run this suite, with the newest and with the oldest packages.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import bursar
from bursar import Client, Dataset, Question
from bursar.ask.cards import Card
from bursar.http.progress import show_nothing
from bursar.http.rollback_check import SeenCharges
from bursar.http.transport import Transport

Json = dict[str, Any]
GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "expected" / "responses.json"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Logins and seen charges of a test stay in its own folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def keys() -> dict[str, str]:
    names: dict[str, str] = json.loads(Path(os.environ["BURSAR_DEMO_KEYS"]).read_text())
    return names


@pytest.fixture
def b(keys: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client of the first analyst, connected by the environment."""
    monkeypatch.setenv("BURSAR_KEY", keys["analyst-1"])
    return bursar.connect()


@pytest.fixture
def census() -> Dataset:
    """A dataset that sends nothing: its server does not exist."""
    members: Json = {
        "name": "census",
        "description": "made up",
        "status": "open",
        "person": {"kind": "row"},
        "columns": [
            {"name": "age", "type": "integer", "low": 0, "high": 120},
            {"name": "region", "type": "category", "values": ["north", "south", "east", "west"]},
            {"name": "income", "type": "number", "low": 0, "high": 200_000},
        ],
    }
    card = Card.read(members)
    seen = SeenCharges("http://127.0.0.1:1", "key", None)
    transport = Transport("http://127.0.0.1:1", "key", True, show_nothing)
    empty = Question(card, None, seen=seen, transport=transport)
    return Dataset(card, empty, None, None, transport=transport)


@pytest.fixture(scope="session")
def replies() -> dict[str, Json]:
    """Golden answers of every kind: the value and the interval."""
    answers = {}
    for name, reply in json.loads(GOLDEN.read_text()).items():
        if reply.get("status") == 200 and "body.value" in reply and "body.mechanism" in reply:
            value = reply["body.value"]
            if not (isinstance(value, str) and value.startswith(("[", "{"))):  # shortened there
                answers[name] = {"value": value, "interval": reply.get("body.interval")}
    return answers
