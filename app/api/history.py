"""Questions that were asked: all of them, or one, answered or still running."""

import json
from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from app.access import Role
from app.actions.answer_query import status_of
from app.api.openapi import documented, problems
from app.api.principal import Anyone, Given
from app.api.queries import Receipt
from app.api.wire import (
    CursorIn,
    Limit,
    LossResponse,
    cursor_place,
    cursor_text,
    iso,
    json_response,
)
from app.ledger.protocol import State
from app.ledger.records import Asked

router = APIRouter(tags=["queries"])

LISTED_TEXT_MAX = 20_000


class ProgressResponse(BaseModel):
    """How far a run is that takes many steps; how many there are is public."""

    step: int
    steps: int


class HistoryItem(BaseModel):
    id: str
    analyst: str
    dataset: str
    status: Literal["running", "answered", "withheld", "forfeited", "voided"]
    progress: ProgressResponse | None
    question: dict[str, Any] | None
    price: LossResponse
    reused_from: str | None
    asked_at: str
    settled_at: str | None
    answer: dict[str, Any] | None
    left_out: bool
    receipt: Receipt


class HistoryResponse(BaseModel):
    items: list[HistoryItem]
    next_cursor: str | None


@router.get("/v1/queries", **documented("list_queries", "Questions asked", HistoryResponse))
def list_queries(
    given: Given, principal: Anyone, limit: Limit = 50, cursor: CursorIn = None
) -> Response:
    """Your questions, newest first; an administrator sees everybody's."""
    principal.must_be(Role.ANALYST, Role.ADMIN)
    own = principal.analyst_id if principal.role is Role.ANALYST else None
    (after,) = cursor_place(cursor, str) or (None,)
    rows = given.history.asked(analyst_id=own, after=after, limit=limit)
    following = cursor_text(rows[-1].id) if len(rows) == limit else None
    items = [_item(row, text_max=LISTED_TEXT_MAX) for row in rows]
    return json_response({"items": items, "next_cursor": following})


@router.get(
    "/v1/queries/{id}",
    **documented("get_query", "One question", HistoryItem, extra_problems=problems(404)),
)
def get_query(given: Given, principal: Anyone, id: str) -> Response:  # noqa: A002  # in the path
    principal.must_be(Role.ANALYST, Role.ADMIN)
    own = principal.analyst_id if principal.role is Role.ANALYST else None
    return json_response(_item(given.history.one(id, analyst_id=own)))


def _item(asked: Asked, text_max: int | None = None) -> dict[str, Any]:
    """A list leaves out what is long; asking for the one question brings it."""
    charged = json.loads(asked.charged)
    answer = asked.answer
    left_out = text_max is not None and len(asked.question) + len(answer or "") > text_max
    progress = asked.progress if asked.state is State.CHARGED else None
    return {
        "id": asked.id,
        "analyst": asked.analyst,
        "dataset": asked.dataset,
        "status": _status(asked),
        "progress": None if progress is None else {"step": progress[0], "steps": progress[1]},
        "question": None if left_out else json.loads(asked.question),
        "price": {
            k: v for k, v in charged["charged"].items() if k.startswith(("epsilon", "delta", "rho"))
        }
        if asked.reused_from is None
        else {"epsilon": 0.0, "delta": 0.0},
        "reused_from": asked.reused_from,
        "asked_at": iso(asked.created_at),
        "settled_at": iso(asked.settled_at),
        "answer": None if answer is None or left_out else json.loads(answer),
        "left_out": left_out,
        "receipt": charged["receipt"],
    }


def _status(asked: Asked) -> str:
    if asked.state is State.CHARGED:
        return "running"
    return asked.state.value if asked.answer is None else status_of(asked.answer)
