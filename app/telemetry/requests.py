"""Every request: its id, its count, its line in the log if asked for, and its span.

The route is the template with the names of its parameters, never the path that was typed. The
duration is rounded up to the time grid.
"""

import logging
import math
import re
from collections.abc import Collection
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.names import new_request_id
from app.ports.telemetry import REQUEST, RequestNotes
from app.telemetry.counters import Counters
from app.telemetry.observer import OTHER, UNMATCHED
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        notes = RequestNotes(_request_id(scope))
        REQUEST.set(notes)
        if self._traces is None:
            await self._observe(scope, receive, send, notes)
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER
        with self._traces.request(method, notes.id) as span:
            route, _, status = await self._observe(scope, receive, send, notes)
            finish(span, method, route, status)

    async def _observe(
        self, scope: Scope, receive: Receive, send: Send, notes: RequestNotes
    ) -> tuple[str, str, int]:
        began, status = monotonic(), 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (HEADER, notes.id.encode())]
            await send(message)

        try:
            await self._application(scope, receive, send_with_id)
        finally:
            route, method = self._route_of(scope)
            self._counters.add(("requests", route, method, f"{status // 100}xx"))
            if notes.problem is not None and status >= 400:
                self._counters.add(("refusals", notes.problem))
            if _log.isEnabledFor(logging.DEBUG):
                taken = math.ceil((monotonic() - began) / self._grid_seconds) * self._grid_seconds
                facts = {"route": route, "method": method, "status": status}
                _log.debug("request", extra={**facts, "duration_ms": round(taken * 1000)})
        return route, method, status

    def _route_of(self, scope: Scope) -> tuple[str, str]:
        """Template and method, both from the routes of this application."""
        found, path, method = scope.get("route"), scope["path"], scope["method"]
        route = path if found is None and path in self._literal else getattr(found, "path", None)
        if route is None:
            return UNMATCHED, OTHER
        return (route, method) if (route, method) in self._routes else (route, OTHER)


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


def _request_id(scope: Scope) -> str:
    """The caller's id if it is short and plain; otherwise a new one."""
    for name, value in scope["headers"]:
        if name == HEADER and ACCEPTED.fullmatch(value):
            return str(value, "ascii")
    return new_request_id()
