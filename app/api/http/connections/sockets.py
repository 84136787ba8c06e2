"""Deadlines and limits of connections, below HTTP: half-sent requests are closed.

A request's headers and its body must each arrive within a time limit. One address has a limited
number of connections, unless it is a trusted proxy: entrance.py limits its clients. A sweep once a
second closes overdue connections; a timer for each request would cost more than the limits
themselves.
"""

from asyncio import BaseTransport
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.http.connections.forwarded import TrustedProxies

SWEEP_SECONDS = 1.0
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class SocketLimits:
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    connections_each: int = 512
    proxies: TrustedProxies = field(default_factory=TrustedProxies)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with deadlines. `limits` is set once, before the server listens."""

    limits: ClassVar[SocketLimits] = SocketLimits()
    _open: ClassVar[Counter[str]] = Counter()
    _sweeping: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._due = NEVER
        self._address = ""

    @override
    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._address = self.client[0] if self.client else ""
        self._due = self.loop.time() + self.limits.header_seconds
        self._open[self._address] += 1
        crowded = self._open[self._address] > self.limits.connections_each
        if crowded and not self.limits.proxies.include(self._address):
            self.transport.close()
        elif not GuardedProtocol._sweeping:
            GuardedProtocol._sweeping = True
            self._sweep()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._open[self._address] -= 1
        if not self._open[self._address]:
            del self._open[self._address]
        super().connection_lost(exc)

    @override
    def on_message_begin(self) -> None:
        self._due = self.loop.time() + self.limits.header_seconds
        super().on_message_begin()

    @override
    def on_headers_complete(self) -> None:
        self._due = self.loop.time() + self.limits.body_seconds
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._due = NEVER
        super().on_message_complete()

    def _sweep(self) -> None:
        """Close overdue connections; repeat every second while there are connections."""
        now = self.loop.time()
        for connection in list(self.connections):
            if isinstance(connection, GuardedProtocol) and connection._due < now:
                connection.transport.close()
        if self.connections:
            self.loop.call_later(SWEEP_SECONDS, self._sweep)
        else:
            GuardedProtocol._sweeping = False
