"""Help: every problem in words, and the description of the interface."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.web import rendering
from app.web.interface import Interface
from app.web.site import Site, Visit, signed_in


def _anybody(request: Request) -> Interface:
    """The interface without a key, for pages that everybody may read."""
    site: Site = request.scope["site"]
    return site.interface_for(request, "")


async def problems(request: Request) -> Response:
    listed = await _anybody(request).get("/problems")
    return rendering.page(
        "problems.html", {"person": None, "address": "/problems", "items": listed["items"]}
    )


async def problem(request: Request) -> Response:
    kind = await _anybody(request).get(f"/problems/{request.path_params['type']}")
    return rendering.page(
        "problem_type.html", {"person": None, "address": "/problems", "kind": kind}
    )


async def viewer(visit: Visit) -> Response:
    """Swagger UI. Asking is switched off in it, because it would spend real budget."""
    return visit.page("api.html")


ROUTES = [
    Route("/problems", problems, methods=["GET"]),
    Route("/problems/{type}", problem, methods=["GET"]),
    Route("/docs", signed_in(viewer), methods=["GET"]),
]
