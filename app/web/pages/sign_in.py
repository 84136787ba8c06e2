"""Sign in with a key, and sign out."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from app.errors import SecretUnavailable
from app.web import rendering
from app.web.interface import Refused
from app.web.session import HOURS
from app.web.site import SIGN_IN, Site, read_form

KEY_MAX = 500
WRONG = "This key is unknown, expired or revoked. Look for a missing letter, or ask for a new key."
CANNOT_SEAL = (
    "This server cannot keep you signed in: its operator must set BURSAR_SECRET_KEY, the same for "
    "every server of this ledger."
)


async def show(request: Request) -> Response:
    sent = request.query_params
    return _page(sent.get("next", "/"), expired="expired" in sent, ended="ended" in sent)


async def begin(request: Request) -> Response:
    """Check the key with the interface, and set the cookie."""
    site: Site = request.scope["site"]
    form = await read_form(request)
    key, back = form.text("key"), form.text("next", "/")
    if not 0 < len(key) <= KEY_MAX or not key.isascii() or not key.isprintable():
        return _page(back, WRONG, 403)
    try:
        await site.interface_for(request, key).get("/v1/me")
    except Refused as refused:
        if refused.status != 401:
            raise
        return _page(back, WRONG, 403)
    response = RedirectResponse(_inside(back), status_code=303)
    try:
        site.sessions.begin(request, response, key)
    except SecretUnavailable:
        return _page(back, CANNOT_SEAL, 503)
    return response


async def end(request: Request) -> Response:
    """Remove the cookie from this browser, and say what that does not do."""
    response = RedirectResponse(f"{SIGN_IN}?ended=1", status_code=303)
    site: Site = request.scope["site"]
    site.sessions.end(request, response)
    return response


def _page(
    back: str,
    detail: str = "",
    status: int = 200,
    *,
    expired: bool = False,
    ended: bool = False,
) -> Response:
    values = {"next": _inside(back), "detail": detail, "hours": HOURS}
    values |= {"expired": expired, "ended": ended}
    return rendering.page("sign_in.html", {"person": None, "address": SIGN_IN, **values}, status)


def _inside(path: str) -> str:
    """The path if it leads to one of our own pages, and `/` otherwise."""
    own = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if own and path.isprintable() and "\\" not in path else "/"


ROUTES = [
    Route(SIGN_IN, show, methods=["GET"]),
    Route(SIGN_IN, begin, methods=["POST"]),
    Route("/sign-out", end, methods=["POST"]),
]
