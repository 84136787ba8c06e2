"""The connection of one command."""

from bursar import Client, connect

_clients: list[Client] = []


def client() -> Client:
    """Connect once; BURSAR_URL and BURSAR_KEY come before the stored login."""
    if not _clients:
        _clients.append(connect())
    return _clients[0]
