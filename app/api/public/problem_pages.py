"""Pages about each type of problem, its meaning and what to do, in HTML or JSON, for everybody."""

from difflib import get_close_matches
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from app.api.http.openapi import documented, problems, with_page
from app.api.http.problem_texts import PROBLEM_TYPES, ProblemType
from app.api.http.wire import json_response
from app.api.public.accept import prefers_html
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
async def list_problems(request: Request) -> Response:
    """A page if `Accept` prefers `text/html`, otherwise JSON."""
    if prefers_html(request.headers.getlist("accept")):
        links = "".join(
            f'<li><a href="/problems/{kind.name}">{kind.name}</a>: {_prose(kind.text.meaning)}</li>'
            for kind in PROBLEM_TYPES.values()
        )
        return _page("Problems", f"<ul>{links}</ul>")
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
async def get_problem(request: Request, type: str) -> Response:  # noqa: A002  # in the path
    """The meaning of a problem, and what to do. A page if `Accept` prefers `text/html`, otherwise
    JSON."""
    kind = PROBLEM_TYPES.get(type)
    if kind is None:
        raise _unknown(type)
    if not prefers_html(request.headers.getlist("accept")):
        return json_response(_shown(kind), headers=VARY)
    status = "" if kind.status is None else f"<p>Status {kind.status}: {escape(kind.title)}</p>"
    meaning, what_to_do = _prose(kind.text.meaning), _prose(kind.text.what_to_do)
    back = '<p><a href="/problems">All problems</a></p>'
    text = f"{status}<h2>Meaning</h2><p>{meaning}</p><h2>What to do</h2><p>{what_to_do}</p>{back}"
    return _page(kind.name, text)


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


def _page(title: str, text: str) -> Response:
    """Plain HTML: no script and no style, so the policy of every reply fits it too."""
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    head += '<meta name="viewport" content="width=device-width">'
    title = escape(title)
    whole = f"{head}<title>{title}: Bursar</title></head><body><h1>{title}</h1>{text}</body></html>"
    return HTMLResponse(whole, headers=VARY)


def _prose(text: str) -> str:
    """Text with `code` in backquotes, as HTML."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
