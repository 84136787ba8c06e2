"""The description of the interface, in Swagger UI."""

from starlette.responses import Response
from starlette.routing import Route

from app.web.site import Visit, signed_in


async def show(visit: Visit) -> Response:
    """Swagger UI. static/api.js allows requests that read or are free, and no others."""
    return visit.page("api.html")


ROUTES = [Route("/docs", signed_in(show), methods=["GET"])]
