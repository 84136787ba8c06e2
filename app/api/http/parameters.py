"""Refuse query parameters that a route does not take, with the nearest one, and repeated ones."""

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.errors import FieldError, Invalid
from app.nearest import did_you_mean

NAME_SHOWN_MAX = 60
UNKNOWN_MAX = 50


def check_parameters(request: Request) -> None:
    """Raise Invalid if the URL has a query parameter that the route does not take, or has twice."""
    if not request.scope.get("query_string"):
        return
    known = _known(request.scope.get("route"))
    broken = [
        FieldError(f"/{name[:NAME_SHOWN_MAX]}", _rule(name, known))
        for name in list(dict.fromkeys(request.query_params))[:UNKNOWN_MAX]
        if name not in known
    ]
    names = [name for name, _ in request.query_params.multi_items()]
    twice = [name for name in dict.fromkeys(names) if name in known and names.count(name) > 1]
    broken += [FieldError(f"/{name}", "a query parameter is given once only") for name in twice]
    if broken:
        raise Invalid(f"{broken[0].pointer}: {broken[0].rule}", *broken)


def _rule(name: str, known: tuple[str, ...]) -> str:
    near = did_you_mean(name, known)
    takes = f"; this path takes {', '.join(known) or 'none'}"
    return f"there is no such query parameter{near or takes}"


def _known(route: object) -> tuple[str, ...]:
    return tuple(_named(route.dependant)) if isinstance(route, APIRoute) else ()


def _named(dependant: Dependant) -> list[str]:
    own = [parameter.alias for parameter in dependant.query_params]
    return own + [name for below in dependant.dependencies for name in _named(below)]
