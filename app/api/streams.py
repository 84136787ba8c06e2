"""Streams: open, ask, show, close."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from app.access import Role
from app.actions.asking.ask_stream import StreamAskRequest
from app.actions.asking.charge import QueryRequest
from app.api.accounts.balance_headers import (
    DECIDED,
    after_decision,
    in_book,
    on_dataset,
    on_granted,
    refused,
)
from app.api.http.json_body import (
    Parsed,
    StrictAdapter,
    body,
    parse,
    read_body,
    request_key,
)
from app.api.http.openapi import documented, problems, with_balance
from app.api.http.parameters import check_parameters
from app.api.http.principal import Anyone, AnyoneHot, ServicesDep, current_hot, token
from app.api.http.services import services
from app.api.http.wire import (
    CursorIn,
    Limit,
    LossResponse,
    cursor_place,
    cursor_text,
    iso,
    json_response,
)
from app.api.previews.models import ExpectedErrorResponse
from app.api.queries import (
    ChargedResponse,
    Receipt,
    StoredResponse,
    reply_headers,
)
from app.errors import AccessError, Invalid, NotFound
from app.ledger.stream_orders import CloseOrder, Stream
from app.names import new_id
from app.planning.stream_ask import Ask
from app.planning.stream_request import Opening

router = APIRouter(tags=["streams"])

OPENING: StrictAdapter[Opening] = StrictAdapter(Opening)
ASK: StrictAdapter[Ask] = StrictAdapter(Ask)
EXAMPLE = {
    "dataset": "census",
    "stream": {"kind": "above_threshold", "threshold": 1000, "crossings": 3, "asks_max": 500},
    "privacy": {"epsilon": 1.0},
}
ASK_EXAMPLE = {
    "query": {"kind": "count", "where": {"column": "region", "op": "==", "value": "north"}}
}


class OpenedResponse(BaseModel):
    """An opened stream; the same bytes for every delivery."""

    id: str
    status: str
    dataset: str
    stream: dict[str, Any]
    mechanism: dict[str, Any]
    crossings_left: int | None
    asks_left: int | None
    query: str
    charged: ChargedResponse
    theorem: str
    receipt: Receipt


class StreamPreviewResponse(BaseModel):
    dataset: str
    stream: dict[str, Any]
    price: LossResponse
    account_price: dict[str, Any] | None
    mechanism: dict[str, Any]
    expected_error: ExpectedErrorResponse
    theorem: str
    cells: list[Any] | None
    fits: bool
    refusal: dict[str, Any] | None


class StreamResponse(BaseModel):
    """The present state of a stream: `open`, `ended` or `closed`."""

    id: str
    status: str
    analyst: str
    dataset: str
    stream: dict[str, Any]
    mechanism: dict[str, Any]
    crossings_left: int | None
    asks_left: int | None
    query: str
    opened_at: str
    closed_at: str | None
    receipt: Receipt


class StreamsResponse(BaseModel):
    items: list[StreamResponse]
    next_cursor: str | None


class AskResponse(BaseModel):
    """An answer; the same bytes for every delivery. `above` belongs to an `above_threshold` stream,
    `value` and `interval` to a `running_count`."""

    id: str
    stream: str
    status: str
    epoch: int
    above: bool | None = None
    crossings_left: int | None = None
    asks_left: int | None = None
    value: int | None = None
    interval: dict[str, Any] | None = None


@router.post(
    "/v1/streams",
    **with_balance(
        documented(
            "open_stream",
            "Plan, charge, open",
            OpenedResponse,
            status=201,
            request=Opening,
            example=EXAMPLE,
            extra_problems=problems(402, 403, 409, 423, 503),
            idempotent=True,
        )
    ),
)
async def open_stream(request: Request) -> Response:
    """Open a stream. All its future answers are charged now, to your account and to everybody's
    together, exactly like a question. The same `Idempotency-Key` with the same body gives the same
    stream; another key opens and charges another."""
    deps = services(request)
    shown = token(request)
    principal = await deps.catalogue.principal(shown)  # before the body is read
    try:
        check_parameters(request)
        key = request_key(request) or new_id("auto")
        parsed = await read_body(request, lambda raw: parse(raw, OPENING, None))
        query_request = QueryRequest(shown, parsed.value, parsed.text, parsed.hash, key)
        try:
            reply = await deps.open_stream(query_request)
        except DECIDED as error:
            return await refused(deps, principal, parsed.value.dataset, error)
    except (Invalid, AccessError):
        await current_hot(request)  # errors are described only to a key that is still valid
        raise
    headers = reply_headers(reply, key)
    headers["location"] = f"/v1/streams/{json.loads(reply.text)['id']}"
    balance = await after_decision(deps, principal, parsed.value.dataset)
    return StoredResponse(reply.text, headers, 201, balance)


@router.post(
    "/v1/streams/preview",
    **with_balance(
        documented(
            "preview_stream",
            "Price a stream, for free",
            StreamPreviewResponse,
            request=Opening,
            example=EXAMPLE,
            extra_problems=problems(403, 503),
        )
    ),
)
async def preview_stream(
    deps: ServicesDep,
    principal: AnyoneHot,
    parsed: Annotated[Parsed[Opening], Depends(body(Opening))],
) -> Response:
    """The price of a stream, and how far its answers may be off; reads no data, charges
    nothing."""
    preview = await deps.preview_stream(principal, parsed.value)
    balance = await on_granted(deps, principal, parsed.value.dataset)
    return json_response(preview, headers=balance)


@router.post(
    "/v1/streams/{id}/ask",
    **with_balance(
        documented(
            "ask_stream",
            "Claim, answer",
            AskResponse,
            request=Ask,
            example=ASK_EXAMPLE,
            extra_problems=problems(404, 409, 503),
            idempotent=True,
        )
    ),
)
async def ask_stream(request: Request, id: str) -> Response:  # noqa: A002  # in the path
    """Ask one of your streams. Nothing is charged, but one of its asks is used. The same
    `Idempotency-Key` with the same body gives the same bytes again and uses nothing."""
    deps = services(request)
    shown = token(request)
    principal = await deps.catalogue.principal(shown)
    principal.must_be(Role.ANALYST)
    try:
        check_parameters(request)
        key = request_key(request) or new_id("auto")
        parsed = await read_body(request, lambda raw: parse(raw, ASK, None))
        ask_request = StreamAskRequest(shown, id, parsed.value, parsed.text, parsed.hash, key)
        reply = await deps.ask_stream(ask_request)
    except (Invalid, AccessError, NotFound):
        await current_hot(request)
        raise
    assert reply.book_id is not None
    balance = await in_book(deps, principal, reply.book_id)
    return StoredResponse(reply.text, reply_headers(reply, key), balance=balance)


@router.get("/v1/streams", **documented("list_streams", "Streams", StreamsResponse))
def list_streams(
    deps: ServicesDep, principal: Anyone, limit: Limit = 50, cursor: CursorIn = None
) -> Response:
    """Your streams, newest first; an administrator sees everybody's."""
    principal.must_be(Role.ANALYST, Role.ADMIN)
    own = principal.analyst_id if principal.role is Role.ANALYST else None
    (after,) = cursor_place(cursor, str) or (None,)
    found = deps.streams.all(analyst_id=own, after=after, limit=limit)
    following = cursor_text(found[-1].id) if len(found) == limit else None
    return json_response({"items": [_shown(each) for each in found], "next_cursor": following})


@router.get(
    "/v1/streams/{id}",
    **with_balance(
        documented("get_stream", "One stream", StreamResponse, extra_problems=problems(404))
    ),
)
def get_stream(deps: ServicesDep, principal: Anyone, id: str) -> Response:  # noqa: A002  # in the path
    """The remaining crossings and asks of the stream; never its secret."""
    principal.must_be(Role.ANALYST, Role.ADMIN)
    own = principal.analyst_id if principal.role is Role.ANALYST else None
    stream = deps.streams.one(id, analyst_id=own)
    return json_response(_shown(stream), headers=on_dataset(deps, principal, stream.dataset))


@router.delete(
    "/v1/streams/{id}",
    **documented("close_stream", "Close early", None, status=204, extra_problems=problems(404)),
)
async def close_stream(
    deps: ServicesDep,
    principal: AnyoneHot,
    id: str,  # noqa: A002  # in the path
) -> Response:
    """The stream gives no more answers, and nothing is refunded. Closing again changes nothing."""
    principal.must_be(Role.ANALYST)
    await deps.ledger.submit(CloseOrder(id, principal.analyst_id))
    return Response(status_code=204)


def _shown(stream: Stream) -> dict[str, Any]:
    status = "closed" if stream.closed_at is not None else "ended" if stream.ended else "open"
    return {
        "id": stream.id,
        "status": status,
        "analyst": stream.analyst,
        "dataset": stream.dataset,
        "stream": json.loads(stream.opening)["stream"],
        "mechanism": json.loads(stream.parameters),
        "crossings_left": stream.crossings_left,
        "asks_left": stream.asks_left,
        "query": stream.charge_id,
        "opened_at": iso(stream.created_at),
        "closed_at": iso(stream.closed_at),
        "receipt": json.loads(stream.charged)["receipt"],
    }
