"""Every request: its id, its count, its line in the log if asked for, and its span.

The route is the template with the names of its parameters, never the path that was typed. The
duration is rounded up to the time grid.
"""

import logging
import math
import re
from collections.abc import Awaitable, Collection
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.names import new_request_id
from app.ports.telemetry import REQUEST, RequestNotes
from app.telemetry.counters import Counters
from app.telemetry.observer import OTHER, STATUS_CLASSES, UNMATCHED
from app.telemetry.traces import Traces, finish

HEADER = b"bursar-request-id"
# Shorter than a key of this service, so that no key can become the id of a request.
ACCEPTED = re.compile(rb"[A-Za-z0-9._:-]{1,40}")
GRID_SECONDS = 0.1  # for durations where the time grid is off
_log = logging.getLogger("bursar.requests")


class Observed:
    """The application, observed."""

    def __init__(
        self,
        application: ASGIApp,
        counters: Counters,
        routes: Collection[tuple[str, str]],
        grid_seconds: float,
        traces: Traces | None = None,
    ) -> None:
        self._application = application
        self._counters = counters
        self._routes = frozenset(routes)
        # Some paths are handled before any route: these are templates without parameters.
        self._literal = frozenset(path for path, _ in routes if "{" not in path)
        self._grid_seconds = grid_seconds or GRID_SECONDS
        self._traces = traces
        self._logs = _log.isEnabledFor(logging.DEBUG)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        if self._traces is not None:
            await self._trace(self._traces, scope, receive, send)
            return
        seen = _Seen(_request_id(scope), send)
        REQUEST.set(seen)
        try:
            await self._application(scope, receive, seen.send_with_id)
        finally:
            self._count(scope, seen)

    async def _trace(self, traces: Traces, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _Seen(_request_id(scope), send)
        REQUEST.set(seen)
        method = scope["method"] if scope["method"] in METHODS else OTHER
        with traces.request(method, seen.id) as span:
            try:
                await self._application(scope, receive, seen.send_with_id)
            finally:
                self._count(scope, seen)
                finish(span, method, self._route_of(scope)[0], seen.status)

    def _count(self, scope: Scope, seen: "_Seen") -> None:
        route, method = self._route_of(scope)
        self._counters.add(("requests", route, method, STATUS_CLASSES[seen.status // 100 - 1]))
        if seen.problem is not None and seen.status >= 400:
            self._counters.add(("refusals", seen.problem))
        if self._logs:
            self._log(route, method, seen.status, monotonic() - seen.began)

    def _log(self, route: str, method: str, status: int, seconds: float) -> None:
        taken = math.ceil(seconds / self._grid_seconds) * self._grid_seconds
        facts = {"route": route, "method": method, "status": status}
        _log.debug("request", extra={**facts, "duration_ms": round(taken * 1000)})

    def _route_of(self, scope: Scope) -> tuple[str, str]:
        """Template and method, both from the routes of this application."""
        matched = scope.get("route")
        if matched is not None:
            route, method = str(matched.path), scope["method"]
        elif scope["path"] in self._literal:
            route, method = scope["path"], scope["method"]
        else:
            return UNMATCHED, OTHER
        return (route, method) if (route, method) in self._routes else (route, OTHER)


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class _Seen(RequestNotes):
    """A request while it is handled."""

    __slots__ = ("_send", "began", "status")

    def __init__(self, request_id: str, send: Send) -> None:
        self.id = request_id
        self.analyst_id = None
        self.problem = None
        self.began = monotonic()
        self.status = 500
        self._send = send

    def send_with_id(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (HEADER, self.id.encode())]
        return self._send(message)


def _request_id(scope: Scope) -> str:
    """The caller's id if it is short and plain; otherwise a new one."""
    for name, value in scope["headers"]:
        if name == HEADER and ACCEPTED.fullmatch(value):
            return str(value, "ascii")
    return new_request_id()
