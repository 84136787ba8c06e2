"""From the Authorization header to a Principal; keys are accepted nowhere else, never in a URL."""

from typing import Annotated

from fastapi import Depends, Request

from app.access import Principal, Role
from app.api.http.parameters import check_parameters
from app.api.http.services import Services, services
from app.errors import NotAuthenticated
from app.ports.telemetry import note_analyst

TOKEN_MAX = 500
MESSAGE = "Send a valid key: `Authorization: Bearer <key>`."

ServicesDep = Annotated[Services, Depends(services)]


def token(request: Request) -> str | None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    value = value.strip()
    if scheme.lower() != "bearer" or not 0 < len(value) <= TOKEN_MAX:
        return None
    return value


def current(request: Request, deps: ServicesDep) -> Principal:
    """The caller, read from the ledger; for routes that run in a thread."""
    shown = token(request)
    principal = None if shown is None else deps.people.principal(shown)
    if principal is None:
        raise NotAuthenticated(MESSAGE)
    note_analyst(principal.analyst_id)
    check_parameters(request)
    return principal


async def current_hot(request: Request) -> Principal:
    """The caller, from the cache if it is current; for hot routes that only read."""
    catalogue = services(request).catalogue
    await catalogue.check()
    principal = await catalogue.principal(token(request))
    note_analyst(principal.analyst_id)
    check_parameters(request)
    return principal


def current_admin(principal: Annotated[Principal, Depends(current)]) -> Principal:
    principal.must_be(Role.ADMIN)
    return principal


def current_auditor(principal: Annotated[Principal, Depends(current)]) -> Principal:
    principal.must_be(Role.ADMIN, Role.VIEWER)
    return principal


Anyone = Annotated[Principal, Depends(current)]
AnyoneHot = Annotated[Principal, Depends(current_hot)]
Admin = Annotated[Principal, Depends(current_admin)]
Auditor = Annotated[Principal, Depends(current_auditor)]
