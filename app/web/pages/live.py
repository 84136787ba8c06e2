"""Live pages: the events of the interface, for a browser that has signed in."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app.web.site import Visit, problem_page, signed_in

DIGITS_MAX = 18  # of the id of an event


async def events(visit: Visit) -> Response:
    """`GET /v1/budgets/events` with the key of the cookie, which scripts cannot read."""
    last = visit.request.headers.get("last-event-id") or visit.query.text("since") or None
    if last is not None and not (last.isdecimal() and len(last) <= DIGITS_MAX):
        return problem_page(422, "since must be the id of an event of this stream.")
    headers = {} if last is None else {"last-event-id": last}

    async def parts() -> AsyncIterator[bytes]:
        async with AsyncExitStack() as stack:
            reply = await stack.enter_async_context(visit.api.stream("/v1/budgets/events", headers))
            async for part in reply.parts():
                yield part

    return StreamingResponse(parts(), media_type="text/event-stream")


ROUTES = [Route("/live", signed_in(events), methods=["GET"])]
