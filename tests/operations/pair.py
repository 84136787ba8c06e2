"""Two servers on one PostgreSQL behind the proxy of the documentation."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bursard import Server
from tests.conftest import Template
from tests.operations.caddy import Proxy, free_port
from tests.server import World

NUMBER = 2


class Pair:
    """The servers keep their ports and homes over a restart."""

    def __init__(self, world: World, folder: Path, **settings: Any) -> None:
        self.world = world
        self._folder = folder
        self._settings = {"BURSAR_TRUSTED_PROXIES": "127.0.0.1,::1", **settings}
        self._ports = [free_port() for _ in range(NUMBER)]
        self.servers = [self.start(number) for number in range(NUMBER)]
        world.use(self.servers[0])
        self.proxy = Proxy.start(folder / "proxy", [server.url for server in self.servers])

    def start(self, number: int) -> Server:
        """Start a server where the one with this number was."""
        return self.world.ledger.serve(
            BURSAR_PORT=str(self._ports[number]),
            BURSAR_HOME=str(self._folder / f"home-{number}"),
            **self._settings,
        )

    def stop(self) -> None:
        self.proxy.stop()
        for server in self.world.ledger.servers:
            server.kill()


@contextmanager
def served_pair(peopled: Template, folder: Path, **settings: Any) -> Iterator[Pair]:
    pair = Pair(peopled("postgresql", folder / "ledger"), folder, **settings)
    try:
        yield pair
    finally:
        pair.stop()
