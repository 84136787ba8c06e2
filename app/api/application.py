"""The ASGI application: routes, problems, headers, and the interface description."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import analysts, budgets, datasets, health, ledger, queries
from app.api.openapi import install_openapi
from app.api.problems import install_problems, problem, unexpected
from app.api.services import Services
from app.errors import AppError, NotFound

DESCRIPTION = (
    "Bursar holds private datasets and a ledger. Every question is priced from public facts, "
    "charged to the ledger, and only then answered, with noise."
)
HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
]


class SafeHeaders:
    """Adds the headers that every response carries."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await self._app(scope, receive, send_safely if scope["type"] == "http" else send)


class HotRoute:
    """Hands `POST /v1/queries` to its endpoint past the framework's layers, which cost more than
    the charge; every other request goes through them."""

    def __init__(self, api: FastAPI) -> None:
        self._api = api
        self._others = NoNul(api)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["path"], scope["method"]) != ("/v1/queries", "POST"):
            await self._others(scope, receive, send)
            return
        scope["app"] = self._api
        try:
            response = await queries.ask(Request(scope, receive))
        except AppError as error:
            response = problem(error)
        await response(scope, receive, send)


class NoNul:
    """Refuses a NUL in the path: no name has one, and databases do not agree what it means."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "\0" in scope["path"]:
            await problem(NotFound("There is nothing at this path."))(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class Guard:
    """Where every mistake of ours ends: a constant problem, and its kind, never its text, in the
    log. Outermost, because the framework and the server would both print the exception."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def note_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, note_start)
        except Exception as error:  # noqa: BLE001  # whatever it is, its text may hold anything
            if not started:  # the framework answers by itself, and then raises all the same
                await unexpected(error)(scope, receive, send)


def make_application(
    open_services: Callable[[], AbstractAsyncContextManager[Services]], *, body_bytes_max: int
) -> ASGIApp:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_services() as services:
            app.state.services = services
            yield

    options: dict[str, Any] = {"telemetry": {"logs": False}}
    app = FastAPI(
        title="Bursar",
        version="0.1.0",
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # the framework's page loads a script from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a redirect would be built from what the caller calls us
        **options,
    )
    app.state.body_bytes_max = body_bytes_max
    for resource in (queries, datasets, analysts, budgets, ledger, health):
        app.include_router(resource.router)
    install_problems(app)
    install_openapi(app)
    return SafeHeaders(Guard(HotRoute(app)))
