"""Whether a connection answers, for the operator. Nothing is read there, and no error text leaves.

A Spark Connect server is only connected to: a session would be a change on it.
"""

import socket
from importlib.util import find_spec
from threading import Thread
from urllib.parse import urlsplit

import psycopg

from app.engines.remote.connections import Connections, DataConnection

ANSWER_SECONDS = 5
SPARK_PORT = 15002  # of a Spark Connect server, unless its URL states another


def silent(connections: Connections) -> set[str]:
    """Names of the connections that do not answer in time; all are tried at once."""
    answered: set[str] = set()

    def ask(name: str, connection: DataConnection) -> None:
        try:
            _ask(connection)
        except Exception:  # noqa: BLE001  # driver text names the address, which is secret
            return
        answered.add(name)

    threads = [Thread(target=ask, args=item, daemon=True) for item in connections.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ANSWER_SECONDS + 1)
    return set(connections) - answered


def has_spark() -> bool:
    """Whether the package that Spark connections need is installed."""
    return find_spec("pyspark") is not None


def _ask(connection: DataConnection) -> None:
    if connection.engine == "postgresql":
        with psycopg.connect(connection.url, connect_timeout=ANSWER_SECONDS) as opened:
            opened.execute("SELECT 1")
        return
    address = urlsplit(connection.url)
    port = address.port or SPARK_PORT
    with socket.create_connection((address.hostname or "", port), timeout=ANSWER_SECONDS):
        pass
