"""Budgets as they change: server-sent events."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse

from app.access import Role
from app.actions.budgets.follow_balances import BalanceEvent
from app.api.budgets import shown_budget
from app.api.http.entity_tags import etag
from app.api.http.openapi import documented, problems
from app.api.http.principal import AnyoneHot, ServicesDep, token
from app.api.http.services import Services
from app.errors import AppError, Invalid

router = APIRouter(tags=["budgets"])

PAUSE_SECONDS = 15.0  # between signs of life
RETRY_MILLISECONDS = 1000  # how soon a browser connects again
DIGITS_MAX = 18
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="Id of the last event that you saw: begins with what has changed since.",
    ),
]


@router.get(
    "/v1/budgets/events",
    **documented("watch_budgets", "Budgets as they change", None, extra_problems=problems(422)),
    response_class=StreamingResponse,
)
async def watch_budgets(
    request: Request, deps: ServicesDep, principal: AnyoneHot, last_event_id: LastEventId = None
) -> Response:
    """Server-sent events (`text/event-stream`): a budget after each change, as `GET /v1/budgets`
    shows it, with its ETag. You see your own budgets and your groups'; viewers and administrators
    see all. Several changes in a moment may come as one. After a break, send `Last-Event-ID`: the
    first events are then the budgets that have changed since. Your rights are read again for every
    event. The stream ends when the key is revoked, and when the server stops."""
    since = _since(last_event_id)
    lines = _lines(deps, token(request), since)
    return StreamingResponse(lines, media_type="text/event-stream")


def _since(last_event_id: str | None) -> int | None:
    if last_event_id is None:
        return None
    if not last_event_id.isdecimal() or len(last_event_id) > DIGITS_MAX:
        raise Invalid.field("Last-Event-ID", "the id of an event of this stream")
    return int(last_event_id)


async def _lines(deps: Services, key: str | None, since: int | None) -> AsyncIterator[str]:
    async def visible_holders() -> tuple[str, ...] | None:
        """Raises when the key is revoked or has expired."""
        now = await deps.catalogue.principal(key)
        return now.holders if now.role is Role.ANALYST else None

    opening = f"retry: {RETRY_MILLISECONDS}\n\n"
    try:
        watched = deps.follow_balances.watch(visible_holders, since, PAUSE_SECONDS)
        async for events in watched:
            yield opening + "".join(map(_text, events)) or ": still here\n\n"
            opening = ""
    except AppError as error:
        yield f"event: end\ndata: {json.dumps({'detail': error.detail})}\n\n"


def _text(event: BalanceEvent) -> str:
    if not event.text:
        account = event.budget.account
        data = {**shown_budget(event.budget), "etag": etag(account)}
        body = json.dumps(data, ensure_ascii=False, allow_nan=False)
        event.text = f"id: {event.at}\nevent: budget\ndata: {body}\n\n"
    return event.text
