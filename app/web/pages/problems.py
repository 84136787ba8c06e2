"""Types of problems, their meaning and a remedy; for everybody, signed in or not."""

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.web import rendering
from app.web.interface import Interface, Refused
from app.web.site import PROBLEMS, SignedIn, Site, segment

VARY = {"vary": "Accept"}


async def show_list(request: Request) -> Response:
    person = await _person(request)
    listed = await _twin(request).get(PROBLEMS, **request.query_params)
    return _page(request, person, "problems.html", items=listed["items"])


async def show(request: Request) -> Response:
    person = await _person(request)  # before a refusal, whose page has the navigation too
    path = f"{PROBLEMS}/{segment(request.path_params['type'])}"
    kind = await _twin(request).get(path, **request.query_params)
    return _page(request, person, "problem_type.html", kind=kind)


def prose(text: str) -> Markup:
    """Text with `code` in backquotes, as HTML."""
    parts = map(escape, text.split("`"))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if i % 2 else part for i, part in enumerate(parts))


def _twin(request: Request) -> Interface:
    """The interface without a key: these addresses need none."""
    site: Site = request.scope["site"]
    return site.interface_for(request, "")


def _page(request: Request, person: SignedIn | None, template: str, **values: object) -> Response:
    shown = {"person": person, "address": request.url.path, "prose": prose, **values}
    response = rendering.page(template, shown)
    response.headers.update(VARY)
    return response


async def _person(request: Request) -> SignedIn | None:
    """Who has signed in, for the navigation; None for everybody else."""
    site: Site = request.scope["site"]
    key = site.sessions.key_of(request)
    if key is None:
        return None
    try:
        return await site.person_of(request, key)
    except Refused:
        return None


ROUTES = [
    Route(PROBLEMS, show_list, methods=["GET"]),
    Route(PROBLEMS + "/{type}", show, methods=["GET"]),
]
