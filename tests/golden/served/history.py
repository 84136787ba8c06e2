"""A scripted history through the whole application: one step is one request, in a fixed order."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.golden import fixed
from tests.golden.served import reach
from tests.golden.served.lifespan import running
from tests.golden.text import compact, digest, shortened
from tests.golden.wording import without_words

Json = dict[str, Any]
LONG = 1200
# Headers of every reply, or of its length.
COMMON_HEADERS = {
    *("cache-control", "x-content-type-options", "content-security-policy", "x-frame-options"),
    *("referrer-policy", "content-length", "bursar-request-id"),
}
ADMIN_KEY = "golden-administrator-key-of-the-history"


class History:
    """Sends requests and keeps replies by the name of their step."""

    def __init__(self, client: httpx.AsyncClient, folder: Path) -> None:
        self._client = client
        self.data = folder / "data"
        self.keys: dict[str, str] = {"admin": ADMIN_KEY}
        self.replies: dict[str, Json] = {}
        self.words: dict[str, Json] = {}

    async def step(
        self,
        name: str,
        request: str,
        body: Any = None,
        *,
        who: str | None = "admin",
        key: str | None = None,
        headers: Json | None = None,
    ) -> httpx.Response:
        """`request` is a method and a path. POSTs have the step's name as their key."""
        assert name not in self.replies, name
        fixed.begin(name)
        method, path = request.split(" ", 1)
        sent = {} if who is None else {"Authorization": f"Bearer {self.keys[who]}"}
        if method == "POST":
            sent["Idempotency-Key"] = key or name.replace(" ", "-")
        content = body if isinstance(body, str) or body is None else compact(body)
        reply = await self._client.request(
            method, path, content=content, headers={**sent, **(headers or {})}
        )
        asked = {} if content is None else {"asked": _short(content)}
        self.replies[name] = {
            "request": f"{request} by {who}",
            **asked,
            **self._recorded(name, reply),
        }
        return reply

    async def json(self, name: str, request: str, body: Any = None, **more: Any) -> Any:
        """The reply of a step that must succeed."""
        reply = await self.step(name, request, body, **more)
        assert reply.status_code < 300, (name, reply.status_code, reply.text)
        return reply.json()

    async def ask(
        self, name: str, dataset: str, query: Json, privacy: Json, *, who: str = "ann", **more: Any
    ) -> httpx.Response:
        options = {each: more.pop(each) for each in ("key", "headers") if each in more}
        body = {"dataset": dataset, "query": query, "privacy": privacy, **more}
        return await self.step(name, "POST /v1/queries", body, who=who, **options)

    def _recorded(self, name: str, reply: httpx.Response) -> Json:
        headers = {k: v for k, v in reply.headers.items() if k not in COMMON_HEADERS}
        recorded: Json = {"status": reply.status_code, "headers": headers}
        if "json" not in headers.get("content-type", "") or "ndjson" in headers["content-type"]:
            return recorded | {"text": _short(reply.text)}
        body = json.loads(reply.text)
        # Fields are shown one by one; `bytes` shows that they make up the whole body.
        shown, words = without_words(body)
        spelled = _spelling(body, reply.text, words)
        if words:
            self.words[name] = words
        members = shown.items() if isinstance(shown, dict) else [("list", shown)]
        return recorded | {"bytes": spelled} | {f"body.{k}": _shown(v) for k, v in members}


def _spelling(body: Any, text: str, words: dict[str, str]) -> str:
    """The way the bytes are made from the fields; for mixed ways, a digest without sentences."""
    ways = {"compact": compact(body), "spaced": json.dumps(body, ensure_ascii=False)}
    found = next((way for way, made in ways.items() if made == text), None)
    if found is not None:
        return found
    for sentence in words.values():
        text = text.replace(compact(sentence), '""')
    return f"digest {digest(text)}"


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:200]} ... digest {digest(text)}"


def _shown(value: Any) -> Any:
    """Long lists are shortened inside; other long values are cut after their beginning."""
    if isinstance(value, list) and len(compact(value)) > LONG:
        value = shortened(value)
    text = compact(value)
    return value if len(text) <= LONG else f"{text[:LONG]} ... digest {digest(value)}"


@asynccontextmanager
async def history_in(folder: Path) -> AsyncIterator[History]:
    (folder / "data").mkdir()
    fixed.begin("ledger")
    async with reach.served(folder, ADMIN_KEY) as application, running(application):
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://bursar") as client:
            yield History(client, folder)
