"""The JSON interface, called in the same process with the key of the person who signed in.

A page calls its JSON twin and nothing else. So a page can show and do nothing that the key cannot,
and every rule, limit and refusal of the interface holds for pages too.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

import anyio
from starlette.types import ASGIApp, Message, Scope

Json = dict[str, Any]
ITEMS_MAX = 5_000  # of one list on a page
PAGE_SIZE = 200


@dataclass(frozen=True)
class InterfaceReply:
    """A reply of the interface."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Refused(Exception):
    """The interface has answered with a problem."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(problem.get("title", ""))
        self.status = status
        self.problem = problem

    @property
    def type(self) -> str:
        return str(self.problem.get("type", "")).removeprefix("/problems/")

    @property
    def detail(self) -> str:
        return str(self.problem.get("detail") or self.problem.get("title") or "")

    @property
    def fields(self) -> list[Json]:
        """Fields that are wrong, each with its pointer and its rule."""
        return list(self.problem.get("errors") or ())


@dataclass(frozen=True)
class Interface:
    """Calls of one person. `client` is the address that asks, as the server sees it.

    Paths are percent-encoded, as in a request.
    """

    app: ASGIApp
    key: str
    client: tuple[str, int] | None = None

    async def get(self, path: str, **parameters: Any) -> Any:
        """The JSON at this path. Raises Refused for a problem."""
        return (await self.call("GET", path, parameters=parameters)).json()

    async def post(self, path: str, body: Any, *, key: str | None = None) -> Any:
        """Post a body; `key` is the Idempotency-Key of a form that changes something."""
        headers = {} if key is None else {"idempotency-key": key}
        return (await self.call("POST", path, body, headers=headers)).json()

    async def items(
        self,
        path: str,
        *,
        most: int = ITEMS_MAX,
        parameters: Mapping[str, str | None] | None = None,
    ) -> list[Json]:
        """The items of a list, page after page."""
        items: list[Json] = []
        cursor = None
        while True:
            page = await self.get(path, **(parameters or {}), limit=PAGE_SIZE, cursor=cursor)
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None or len(items) >= most:
                return items[:most]

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> InterfaceReply:
        """One request, and its whole reply. Raises Refused for a problem."""
        sent = b"" if body is None else json.dumps(body).encode()
        collected = _Collected()
        scope = self._scope(method, path, parameters or {}, headers or {}, len(sent))
        await self.app(scope, _body_once(sent), collected.send)
        reply = InterfaceReply(collected.status, collected.headers, b"".join(collected.parts))
        if reply.status >= 400:
            raise Refused(reply.status, _problem(reply))
        return reply

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator["LiveReply"]:
        """A reply that goes on, such as events. It ends when the caller leaves the context."""
        sending, receiving = anyio.create_memory_object_stream[Message](16)
        scope = self._scope("GET", path, {}, headers, 0)
        gone = anyio.Event()

        async def receive() -> Message:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def run() -> None:
            async with sending:
                await self.app(scope, receive, sending.send)

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            start = await receiving.receive()
            yield LiveReply(start["status"], _headers(start), receiving)
            gone.set()
            group.cancel_scope.cancel()

    def _scope(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any],
        headers: Mapping[str, str],
        length: int,
    ) -> Scope:
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        sent = {"authorization": f"Bearer {self.key}", "content-length": str(length), **headers}
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": self.client,
            "server": None,
            "state": {},
        }


@dataclass(frozen=True)
class LiveReply:
    """The start of a reply that goes on, and its parts as they come."""

    status: int
    headers: Mapping[str, str]
    messages: Any

    async def parts(self) -> AsyncIterator[bytes]:
        async for message in self.messages:
            if message["type"] == "http.response.body":
                yield message.get("body", b"")
                if not message.get("more_body", False):
                    return


@dataclass
class _Collected:
    """Collects the messages of a reply."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = _headers(message)
        elif message["type"] == "http.response.body":
            self.parts.append(message.get("body", b""))


def _headers(message: Message) -> dict[str, str]:
    pairs = message.get("headers", ())
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def _body_once(sent: bytes) -> Any:
    """An ASGI `receive` that yields one whole body, and then waits: the caller is still there."""
    messages = [{"type": "http.request", "body": sent, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await anyio.sleep_forever()
        raise AssertionError("never reached")

    return receive


def _problem(reply: InterfaceReply) -> Json:
    try:
        problem = reply.json()
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"title": "Unexpected error"}
