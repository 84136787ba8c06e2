"""Each type of problem, its meaning and what to do, as JSON, for everybody.

Who prefers HTML gets a page: `app/web` draws it from this JSON, at the same address.
"""

from difflib import get_close_matches
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from app.api.http.openapi import documented, problems, with_page
from app.api.http.problem_texts import PROBLEM_TYPES, ProblemType
from app.api.http.wire import json_response
from app.errors import NotFound
from app.nearest import CUTOFF, NAME_LENGTH_MAX

router = APIRouter(tags=["problems"])

VARY = {"Vary": "Accept"}
NEAREST_MAX = 3


class ProblemTypeResponse(BaseModel):
    """`status` is null where it varies."""

    type: str
    title: str
    status: int | None
    meaning: str
    what_to_do: str


class ProblemTypesResponse(BaseModel):
    items: list[ProblemTypeResponse]


@router.get(
    "/problems",
    **with_page(
        documented(
            "list_problems",
            "Every type of problem",
            ProblemTypesResponse,
            public=True,
            extra_problems=problems(422),
        )
    ),
)
async def list_problems() -> Response:
    """A page if `Accept` prefers `text/html`, otherwise JSON."""
    items = [_shown(kind) for kind in PROBLEM_TYPES.values()]
    return json_response({"items": items}, headers=VARY)


@router.get(
    "/problems/{type}",
    **with_page(
        documented(
            "get_problem",
            "One type of problem",
            ProblemTypeResponse,
            public=True,
            extra_problems=problems(404, 422),
        )
    ),
)
async def get_problem(type: str) -> Response:  # noqa: A002  # in the path
    """The meaning of a problem, and what to do. A page if `Accept` prefers `text/html`, otherwise
    JSON."""
    kind = PROBLEM_TYPES.get(type)
    if kind is None:
        raise _unknown(type)
    return json_response(_shown(kind), headers=VARY)


def _unknown(name: str) -> NotFound:
    """The nearest names; the caller's own text is not repeated."""
    near: list[str] = []
    if len(name) <= NAME_LENGTH_MAX:
        near = get_close_matches(name.casefold(), PROBLEM_TYPES, n=NEAREST_MAX, cutoff=CUTOFF)
    detail = "There is no problem of this type"
    if near:
        detail += f"; did you mean {' or '.join(near)}?"
    else:
        detail += ": GET /problems lists all of them."
    return NotFound(detail, nearest=near)


def _shown(kind: ProblemType) -> dict[str, Any]:
    return {
        "type": f"/problems/{kind.name}",
        "title": kind.title,
        "status": kind.status,
        "meaning": kind.text.meaning,
        "what_to_do": kind.text.what_to_do,
    }
