"""All pages as one ASGI application in front of the interface.

Addresses of the interface go straight through. Everything else is a page: it has the headers of
pages, asks for a sign-in where one is needed, and shows a problem of the interface in words.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web import rendering
from app.web.accept import prefers_html
from app.web.interface import Interface, Refused
from app.web.session import Sessions

INTERFACE = ("/v1/", "/healthz", "/readyz", "/metrics", "/openapi.json")
PROBLEMS = "/problems"  # pages for people, and JSON for programs, at the same addresses
FORM_BYTES_MAX = 256 << 10
FIELDS_MAX = 2_000
SIGN_IN = "/sign-in"
# Changes of the last seconds are sent to a page that was just drawn: it may have missed them.
DRAWN_MICROSECONDS = 5_000_000
_log = logging.getLogger("bursar.web")


class Form(dict[str, list[str]]):
    """The fields of a form, each with all its values."""

    def text(self, name: str, default: str = "") -> str:
        """The first value of a field, without spaces around it."""
        return self.get(name, [default])[0].strip()

    def texts(self, name: str) -> list[str]:
        return [value.strip() for value in self.get(name, [])]


@dataclass(frozen=True)
class SignedIn:
    """Who has signed in."""

    name: str
    role: str
    groups: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        return self.role == "analyst"

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"

    @property
    def audits(self) -> bool:
        return self.role in ("admin", "viewer")


@dataclass(frozen=True)
class Visit:
    """One request of a person who has signed in."""

    request: Request
    api: Interface
    person: SignedIn
    form: Form = field(default_factory=Form)

    @property
    def path(self) -> dict[str, str]:
        """The parts of the address that have names."""
        return self.request.path_params

    @property
    def query(self) -> Form:
        return _fields(self.request.url.query)

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        shown = {"person": self.person, "address": encoded_path(self.request), **values}
        shown["since"] = time.time_ns() // 1000 - DRAWN_MICROSECONDS
        return rendering.page(template, shown, status)

    def go(self, path: str) -> Response:
        """Go to another page after a form, so that loading again sends nothing again."""
        return RedirectResponse(path, status_code=303)


Page = Callable[[Visit], Awaitable[Response]]


class Site:
    """Pages in front of the interface."""

    def __init__(self, interface: ASGIApp, routes: list[Route], sessions: Sessions) -> None:
        self._interface = interface
        self._routes = routes
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(INTERFACE):
            await self._interface(scope, receive, send)
            return
        request = Request(scope, receive)
        if scope["path"].startswith(PROBLEMS):
            is_page = prefers_html(request.headers.getlist("accept"))
        else:
            is_page = _wants_page(request) or self._is_page(request)
        if not is_page:
            await self._interface(scope, receive, send)
            return
        scope["site"] = self
        response = await self._respond(request)
        for name, value in rendering.HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, _without_body(send) if request.method == "HEAD" else send)

    @property
    def sessions(self) -> Sessions:
        return self._sessions

    def interface_for(self, request: Request, key: str) -> Interface:
        client = None if request.client is None else (request.client.host, request.client.port)
        return Interface(self._interface, key, client)

    async def person_of(self, request: Request, key: str) -> SignedIn:
        """The person who has this key. Raises Refused for a key that is not valid now."""
        me = await self.interface_for(request, key).get("/v1/me")
        person = SignedIn(me["name"], me["role"], tuple(me["groups"]))
        request.scope["person"] = person
        return person

    async def _respond(self, request: Request) -> Response:
        try:
            if request.method == "POST" and not self._sessions.is_own_form(request):
                return problem_page(403, "This form was sent from another site, and was ignored.")
            return await self._route(request)
        except Refused as refused:
            if refused.status == 401:
                return self._sign_in_again(request)
            return refused_page(refused, request.scope.get("person"))
        except HTTPException as error:
            return problem_page(error.status_code, str(error.detail))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001  # its text may contain a value
            _log.error("unexpected error on a page: %s", type(error).__name__)
            return problem_page(500, "Something went wrong on this page. Nothing more is known.")

    def _is_page(self, request: Request) -> bool:
        """True if a page has this address."""
        return any(route.matches(request.scope)[0] is not Match.NONE for route in self._routes)

    async def _route(self, request: Request) -> Response:
        allowed: set[str] = set()
        for route in self._routes:
            match, child = route.matches(request.scope)
            if match is Match.FULL:
                request.scope.update(child, route=route)
                response: Response = await route.endpoint(request)
                return response
            if match is Match.PARTIAL:
                allowed |= set(route.methods or ())
        if allowed:
            return problem_page(405, f"This address takes {' and '.join(sorted(allowed))}.")
        return problem_page(404, "There is no page at this address.")

    def _sign_in_again(self, request: Request) -> Response:
        """Ask for the key, and come back. A form is not sent again by itself."""
        part = request.headers.get("hx-request") == "true"  # of a page: leave the whole page
        # A part has no page of its own: come back to the page that it stands on.
        seen = urlsplit(request.headers.get("hx-current-url", "/")) if part else None
        path, query = (
            (seen.path, seen.query) if seen else (encoded_path(request), request.url.query)
        )
        back = path if request.method == "GET" else "/"
        if request.method == "GET" and query:
            back += f"?{query}"
        expired = {"expired": "1"} if self._sessions.name_for(request) in request.cookies else {}
        address = f"{SIGN_IN}?{urlencode({'next': back, **expired})}"
        if part:
            return Response(status_code=204, headers={"HX-Redirect": address})
        return RedirectResponse(address, status_code=303)


def signed_in(page: Page, *roles: str) -> Callable[[Request], Awaitable[Response]]:
    """A page for people who have signed in; with `roles`, for these roles only."""

    async def endpoint(request: Request) -> Response:
        site: Site = request.scope["site"]
        key = site.sessions.key_of(request)
        if key is None:
            raise Refused(401, {"title": "Not signed in"})
        api = site.interface_for(request, key)
        person = await site.person_of(request, key)
        if roles and person.role not in roles:
            only = " and ".join(f"{role}s" for role in roles)
            return problem_page(403, f"This page is for {only}.", person=person)
        form = await read_form(request) if request.method == "POST" else Form()
        return await page(Visit(request, api, person, form))

    return endpoint


async def read_form(request: Request) -> Form:
    """The fields of a form that was posted."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > FORM_BYTES_MAX:
            raise HTTPException(413, f"A form has at most {FORM_BYTES_MAX >> 10} KB.")
    if raw and kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "A form is sent as application/x-www-form-urlencoded.")
    try:
        return _fields(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise HTTPException(400, "The form is not UTF-8.") from None


def _fields(text: str) -> Form:
    fields = Form()
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise HTTPException(400, "The form cannot be read.") from None
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return fields


def encoded_path(request: Request) -> str:
    """The path of a request, percent-encoded again, so that it can stand in a link."""
    return quote(request.scope["path"], safe="/*:")


def segment(text: str) -> str:
    """A name as one part of an address."""
    return quote(text, safe="*:")


def problem_page(status: int, detail: str, **more: Any) -> Response:
    values = {"status": status, "detail": detail, "title": "", "kind": "", "fields": [], **more}
    return rendering.page("problem.html", {"person": None, "address": "", **values}, status)


def refused_page(refused: Refused, person: SignedIn | None = None) -> Response:
    shown = {"title": str(refused.problem.get("title", "")), "kind": refused.type}
    return problem_page(
        refused.status, refused.detail, fields=refused.fields, person=person, **shown
    )


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
