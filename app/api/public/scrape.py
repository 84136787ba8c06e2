"""Metrics for Prometheus: for administrators, viewers, and holders of the scrape token."""

import hmac
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from app.access import Role
from app.api.http.openapi import documented, problems
from app.api.http.parameters import check_parameters
from app.api.http.principal import ServicesDep, current_hot, token

router = APIRouter(tags=["health"])
SCRAPER = "scraper"  # owner of the work of a scrape by token


async def scraper(request: Request, deps: ServicesDep) -> str:
    """Who scrapes. The token is compared first, so that a scrape needs no ledger."""
    shown, secret = token(request), deps.scrape_token
    if shown is not None and secret is not None:
        same = hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), secret.encode())
        if same:
            check_parameters(request)
            return SCRAPER
    principal = await current_hot(request)
    principal.must_be(Role.ADMIN, Role.VIEWER)
    return principal.analyst_id


@router.get(
    "/metrics",
    **documented("metrics", "Metrics for Prometheus", str, extra_problems=problems(429)),
    response_class=PlainTextResponse,
)
async def metrics(who: Annotated[str, Depends(scraper)], deps: ServicesDep) -> Response:
    """Counts and gauges of all workers of this server, and budgets of the ledger, in the text
    format of Prometheus. Send an administrator's or a viewer's key, or the scrape token, as a
    bearer. Nothing in it depends on the rows of a dataset, except public times."""
    deps.metrics.beat()
    text = await deps.reading.run(who, deps.metrics.text)
    return Response(text, media_type=deps.metrics.media_type)
