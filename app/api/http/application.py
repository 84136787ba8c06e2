"""The ASGI application: routes, problems, headers, and the interface description."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from starlette.types import Message, Receive, Scope, Send

from app.api import (
    analysts,
    budgets,
    calculator,
    datasets,
    health,
    history,
    ledger,
    losses,
    queries,
    streams,
    tradeoff,
)
from app.api.accounts import account_history, budget_events, budget_list
from app.api.http.openapi import InterfaceDescription, install_openapi
from app.api.http.parameters import check_parameters
from app.api.http.problems import install_problems, problem, unexpected
from app.api.http.services import Services
from app.api.previews import routes as previews
from app.api.public import problem_pages, scrape
from app.errors import AppError, Invalid, NotFound

VERSION = "0.1.0"
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


class Front:
    """Entry point of every request, and the whole path of `POST /v1/queries`.

    Queries go straight to their endpoint, because the framework's layers cost more than the charge.
    Every reply gets the safe headers. A NUL in the path is refused: no name has one, and databases
    disagree about its meaning. Every unexpected error becomes a constant problem here. Only its
    type is logged, never its text, which the framework and the server would print.
    """

    def __init__(self, api: FastAPI, routes: list[tuple[str, str]]) -> None:
        self._api = api
        self.routes = routes  # template and method of each
        self._description = InterfaceDescription(api)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._api(scope, receive, send)
            return
        started = False

        async def send_safely(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            if scope["path"] == "/v1/queries" and scope["method"] == "POST":
                scope["app"] = self._api
                response = await self._ask(Request(scope, receive))
                await response(scope, receive, send_safely)
            elif "\0" in scope["path"]:
                nothing = problem(NotFound("There is nothing at this path."))
                await nothing(scope, receive, send_safely)
            elif scope["path"] == self._api.openapi_url and scope["method"] in ("GET", "HEAD"):
                description = await self._described(scope)
                await description(scope, receive, send_safely)
            else:
                await self._api(scope, receive, send_safely)
        except Exception as error:  # noqa: BLE001  # its text may contain a value
            if not started:  # the framework sends its own reply first, and then raises anyway
                await unexpected(error)(scope, receive, send_safely)

    async def _described(self, scope: Scope) -> Response:
        """The interface description. The framework would write it anew for each request."""
        try:
            check_parameters(Request(scope))
        except Invalid as error:
            return problem(error)
        return Response(await self._description.text(), media_type="application/json")

    async def _ask(self, request: Request) -> Response:
        try:
            return await queries.ask(request)
        except AppError as error:
            return problem(error)


def make_application(
    open_services: Callable[[], AbstractAsyncContextManager[Services]], *, body_bytes_max: int
) -> Front:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_services() as services:
            app.state.services = services
            yield

    # The framework's own telemetry would record the paths that were typed.
    options: dict[str, Any] = {"telemetry": {"logs": False, "metrics": False, "tracing": False}}
    app = FastAPI(
        title="Bursar",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # the framework's page loads a script from another site
        redoc_url=None,
        redirect_slashes=False,  # a redirect would use the host name that the caller sent
        **options,
    )
    app.state.body_bytes_max = body_bytes_max
    asking = (queries, previews, history, streams)
    accounts = (budgets, budget_list, budget_events, account_history, tradeoff, losses)
    # All of these authenticate before they check parameters.
    known = (*asking, datasets, analysts, *accounts, ledger, calculator, scrape)
    for resource in known:
        app.include_router(resource.router)
    public = (health, problem_pages)
    for resource in public:
        app.include_router(resource.router, dependencies=[Depends(check_parameters)])
    install_problems(app)
    install_openapi(app)
    return Front(app, [*_routes(known + public), ("/openapi.json", "GET")])


def _routes(resources: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    for resource in resources:
        for route in resource.router.routes:
            for method in sorted(route.methods):
                yield route.path, method
