"""Past questions: list them, show one, answered or still running, and cancel one."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from app.access import UNKNOWN_ANALYST, Principal, Role
from app.actions.asking.ask_query import status_of
from app.api.accounts.balance_headers import on_dataset
from app.api.http.openapi import documented, problems, with_balance
from app.api.http.principal import Anyone, AnyoneHot, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import (
    CursorIn,
    HolderIn,
    Limit,
    LossResponse,
    SinceIn,
    cursor_place,
    cursor_text,
    iso,
    json_response,
    known_kind,
    price_of,
    since_microseconds,
)
from app.api.queries import RETRY_SECONDS, Receipt
from app.errors import NotFound
from app.ledger.orders import State
from app.ledger.records import QuestionRecord, Search
from app.mechanisms.streams import above_threshold, tree_counter
from app.names import folded
from app.queries import QUERIES

router = APIRouter(tags=["queries"])

LISTED_TEXT_MAX = 20_000
Status = Literal["running", "answered", "withheld", "forfeited", "voided"]
KINDS = (*QUERIES, above_threshold.KIND, tree_counter.KIND)
StatusIn = Annotated[Status | None, Query(description="Only questions with this status.")]
QuestionKindIn = Annotated[
    str | None,
    Query(
        max_length=100,
        description="Only questions, or openings of streams, of this kind.",
        json_schema_extra={"enum": [*KINDS]},
    ),
]

SETTLED_BEFORE = "It was settled before it was cancelled, and nothing was changed."
CANCELLED = {
    "running": "It will be cancelled when the server that answers it next checks.",
    "voided": "It was cancelled before any data were read, and the charge was given back.",
    "forfeited": "It was cancelled. Data may have been read, so what was charged stays charged.",
}


class ProgressResponse(BaseModel):
    """Progress of a run with many steps; their number is public."""

    step: int
    steps: int


class HistoryItem(BaseModel):
    id: str
    analyst: str
    dataset: str
    status: Status
    progress: ProgressResponse | None
    question: dict[str, Any] | None
    price: LossResponse
    reused_from: str | None
    asked_at: str
    settled_at: str | None
    cancel_asked_at: str | None
    left_out: bool
    receipt: Receipt
    answer: dict[str, Any] | None


class HistoryResponse(BaseModel):
    items: list[HistoryItem]
    next_cursor: str | None


class CancelResponse(BaseModel):
    """Outcome of a cancellation; `detail` explains it in a sentence."""

    id: str
    status: Status
    detail: str


@router.get(
    "/v1/queries",
    **documented("list_queries", "Questions asked", HistoryResponse, extra_problems=problems(404)),
)
def list_queries(
    deps: ServicesDep,
    principal: Anyone,
    holder: HolderIn = None,
    kind: QuestionKindIn = None,
    status: StatusIn = None,
    since: SinceIn = None,
    limit: Limit = 50,
    cursor: CursorIn = None,
) -> Response:
    """Your questions, newest first; an administrator sees everybody's. `holder` is the name of the
    analyst who asked."""
    principal.must_be(Role.ANALYST, Role.ADMIN)
    search = Search(kind=known_kind(kind, KINDS), status=status, since=since_microseconds(since))
    (after,) = cursor_place(cursor, str) or (None,)
    whose = _whose(deps, principal, holder)
    rows = deps.history.asked(analyst_id=whose, after=after, limit=limit, search=search)
    following = cursor_text(rows[-1].id) if len(rows) == limit else None
    items = ", ".join(_item(row, text_max=LISTED_TEXT_MAX) for row in rows)
    return _sent(f'{{"items": [{items}], "next_cursor": {json.dumps(following)}}}')


@router.get(
    "/v1/queries/{id}",
    **with_balance(
        documented("get_query", "One question", HistoryItem, extra_problems=problems(404))
    ),
)
def get_query(deps: ServicesDep, principal: Anyone, id: str) -> Response:  # noqa: A002  # in the path
    """The question, and its stored answer, byte for byte, as soon as it may be shown."""
    principal.must_be(Role.ANALYST, Role.ADMIN)
    own = principal.analyst_id if principal.role is Role.ANALYST else None
    record = deps.history.one(id, analyst_id=own)
    running = record.state is State.CHARGED
    headers = on_dataset(deps, principal, record.dataset)
    if running:
        headers["Retry-After"] = str(RETRY_SECONDS)
    return _sent(_item(record), headers)


@router.delete(
    "/v1/queries/{id}",
    **documented("cancel_query", "Cancel", CancelResponse, also=202, extra_problems=problems(404)),
)
async def cancel_query(
    deps: ServicesDep,
    principal: AnyoneHot,
    id: str,  # noqa: A002  # in the path
) -> Response:
    """Ends your question, on any server that answers it. The charge is given back only if no data
    were read for it; otherwise it stays charged, without an answer. A settled question does not
    change, and cancelling again changes nothing. A 202 means that it still runs; look at it
    later."""
    record = await deps.cancel_query(principal, id)
    status = _status(record)
    detail = SETTLED_BEFORE
    if record.cancel_asked_at is not None:
        detail = CANCELLED.get(status, SETTLED_BEFORE)
    code = 202 if status == "running" else 200
    return json_response({"id": record.id, "status": status, "detail": detail}, status=code)


def _whose(deps: Services, principal: Principal, holder: str | None) -> str | None:
    """Id of the analyst whose questions are listed; None for everybody's.

    To an analyst, another analyst's name looks like an unknown one.
    """
    if principal.role is not Role.ANALYST:
        return None if holder is None else deps.people.find(holder).id
    if holder is not None and folded(holder) != folded(principal.name):
        raise NotFound(UNKNOWN_ANALYST)
    return principal.analyst_id


def _sent(text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(text, headers=headers, media_type="application/json")


def _item(record: QuestionRecord, text_max: int | None = None) -> str:
    """JSON of one question, with its answer as stored.

    In a list, long texts are left out; a request for the one question returns them.
    """
    charged = json.loads(record.charged)
    answer = record.answer
    left_out = text_max is not None and len(record.question) + len(answer or "") > text_max
    progress = record.progress if record.state is State.CHARGED else None
    item = {
        "id": record.id,
        "analyst": record.analyst,
        "dataset": record.dataset,
        "status": _status(record),
        "progress": None if progress is None else {"step": progress[0], "steps": progress[1]},
        "question": None if left_out else json.loads(record.question),
        "price": price_of(charged["charged"])
        if record.reused_from is None
        else {"epsilon": 0.0, "delta": 0.0},
        "reused_from": record.reused_from,
        "asked_at": iso(record.created_at),
        "settled_at": iso(record.settled_at),
        "cancel_asked_at": iso(record.cancel_asked_at),
        "left_out": left_out,
        "receipt": charged["receipt"],
    }
    text = json.dumps(item, ensure_ascii=False, allow_nan=False)
    return f'{text[:-1]}, "answer": {"null" if answer is None or left_out else answer}}}'


def _status(record: QuestionRecord) -> str:
    if record.state is State.CHARGED:
        return "running"
    return record.state.value if record.answer is None else status_of(record.answer)
