"""Connections to databases that hold data, by name; their addresses are secret.

A request names a connection. Its address is in a file that only the operator writes. So no address
and no password is ever in a request, a reply, a log or the ledger.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.errors import Invalid

POINTER = "/source/connection"


@dataclass(frozen=True, slots=True)
class DataConnection:
    """An engine, and where its data are. `roots` are the folders in which Spark may read files."""

    engine: str
    url: str
    roots: tuple[str, ...] = ()


Connections = Mapping[str, DataConnection]


class Unusable(Exception):
    """The file of connections is invalid; the text explains why, and contains no secret."""


def read_connections(path: Path | None) -> Connections:
    """{"name": {"engine": "postgresql", "url": "..."}, ...}"""
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): _connection(each) for name, each in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        pass
    raise Unusable(
        "BURSAR_CONNECTIONS must name a JSON file of connections: "
        '{"name": {"engine": "postgresql" or "spark", "url": "...", "roots": [...]}}.'
    )


def _connection(said: dict[str, object]) -> DataConnection:
    roots = said.get("roots", [])
    url = said["url"]
    known = {"engine", "url", "roots"}
    if set(said) - known or not isinstance(url, str) or not isinstance(roots, list):
        raise ValueError
    if said["engine"] not in ("postgresql", "spark") or not all(
        isinstance(root, str) and root for root in roots
    ):
        raise ValueError
    return DataConnection(str(said["engine"]), url, tuple(roots))


def find_connection(connections: Connections, name: str | None, engine: str) -> DataConnection:
    """The connection. An unknown name and a connection of another engine are refused alike."""
    found = connections.get(name or "")
    if found is None or found.engine != engine:
        raise Invalid.field(POINTER, f"the name of a connection that was set up for {engine}")
    return found


class Interruption:
    """Ends a statement once, from a new thread: the watchdog must not wait for a network."""

    def __init__(self, end: object) -> None:
        assert callable(end)
        self._end = end
        self._begun = False

    def interrupt(self) -> None:
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._quietly, name="engine-interrupt", daemon=True).start()

    def _quietly(self) -> None:
        try:
            self._end()
        except Exception:  # noqa: BLE001  # the statement or its connection has ended
            return
