"""Start and stop of an ASGI application in this event loop, as a server does it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Message


@asynccontextmanager
async def running(application: ASGIApp) -> AsyncIterator[None]:
    said: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}

    async def live() -> None:
        await application(scope, said.get, heard.put)

    life = asyncio.create_task(live())
    try:
        for event in ("startup", "shutdown"):
            await said.put({"type": f"lifespan.{event}"})
            reply = await heard.get()
            assert reply["type"] == f"lifespan.{event}.complete", reply
            if event == "startup":
                yield
    finally:
        await life
