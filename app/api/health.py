"""Health checks: is the process alive, and could it take a charge now?"""

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from app.api.http.openapi import documented, problems
from app.api.http.principal import ServicesDep
from app.errors import StoreUnavailable

router = APIRouter(tags=["health"])


class HealthResponse(BaseModel):
    status: Literal["ok"]


@router.get(
    "/healthz",
    **documented(
        "healthz",
        "The process is alive",
        HealthResponse,
        public=True,
        extra_problems=problems(422),
    ),
)
async def healthz() -> Response:
    return Response('{"status":"ok"}', media_type="application/json")


@router.get(
    "/readyz",
    **documented(
        "readyz",
        "The ledger is there, current and writable",
        HealthResponse,
        public=True,
        extra_problems=problems(422, 503),
    ),
)
def readyz(deps: ServicesDep) -> Response:
    if deps.is_draining():
        raise StoreUnavailable("This server is about to stop: send requests to another one.")
    deps.readiness.check()
    return Response('{"status":"ok"}', media_type="application/json")
