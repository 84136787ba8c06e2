"""The first part of the service that sees a request: who the client is, and whether to stay.

Behind a trusted proxy all clients share the proxy's connections. So the limit of connections from
one address is kept there as a limit of open requests from one client.
"""

from collections import Counter
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.http.application import HEADERS
from app.api.http.connections.forwarded import TrustedProxies, scheme_of
from app.api.http.problems import problem
from app.errors import TooManyRunning

CROWDED = "Too many requests from your address are open. Try again when one has ended."


class Entrance:
    """In front of pages and interface. `is_draining` is true once this server is about to stop."""

    def __init__(
        self,
        app: ASGIApp,
        proxies: TrustedProxies,
        open_each: int,
        is_draining: Callable[[], bool],
    ) -> None:
        self._app = app
        self._proxies = proxies
        self._open_each = open_each
        self._is_draining = is_draining
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        leaving = _leaving(send) if self._is_draining() else send
        peer = scope.get("client")
        if peer is None or not self._proxies.include(peer[0]):
            await self._app(scope, receive, leaving)
            return
        client = self._proxies.client_of(peer[0], scope["headers"])
        scope["client"] = (client, 0)
        scope["scheme"] = scheme_of(scope["headers"]) or scope["scheme"]
        if self._open[client] >= self._open_each:
            refusal = problem(TooManyRunning(CROWDED))
            refusal.raw_headers.extend(HEADERS)
            await refusal(scope, receive, leaving)
            return
        self._open[client] += 1
        try:
            await self._app(scope, receive, leaving)
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]


def _leaving(send: Send) -> Send:
    """Close the connection after the reply: the caller's next one reaches another server."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
        await send(message)

    return send_and_close
