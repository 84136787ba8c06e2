"""A plan: questions in order, what they cost together, and where the budget stops.

The plan is in the address of the page. So it can be kept as a bookmark, and the server stores none.
"""

import json
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from app.names import new_id
from app.web.compose.words import question_in_words
from app.web.interface import Json, Refused
from app.web.pages.budgets import account_path
from app.web.site import Visit, segment, signed_in

QUESTIONS_MAX = 50


async def show(visit: Visit) -> Response:
    questions = _questions(visit)
    priced, refused = None, None
    if questions:
        try:
            priced = await visit.api.post("/v1/queries/preview", questions)
        except Refused as error:
            if error.status == 401:
                raise
            refused = error
    datasets = await visit.api.items("/v1/datasets")
    return visit.page(
        "plan.html",
        rows=_rows(questions, priced),
        priced=priced,
        refused=refused,
        stack=await _stack(visit, questions, priced),
        datasets=[
            {
                "name": one["name"],
                "ask": f"/datasets/{segment(one['name'])}/ask?{_carried(questions)}",
            }
            for one in datasets
        ],
        texts=[json.dumps(question, ensure_ascii=False) for question in questions],
        request_key=new_id("page"),
    )


async def ask_all(visit: Visit) -> Response:
    """Ask every question of the plan in order, if the budget pays for all of them now.

    Somebody else may spend meanwhile: then the first question that does not fit is refused, and
    the ones before it stay answered and charged.
    """
    questions = _questions(visit, visit.form.texts("q"))
    if not questions:
        return visit.go("/plan")
    priced = await visit.api.post("/v1/queries/preview", questions)
    if not priced["fits"]:
        return visit.go(f"/plan?{_query(questions)}")
    key = visit.form.text("request_key") or new_id("page")
    for number, question in enumerate(questions):
        headers = {"idempotency-key": f"{key}-{number}", "prefer": "wait=10"}
        await visit.api.call("POST", "/v1/queries", question, headers=headers)
    return visit.go("/questions")


def _questions(visit: Visit, texts: list[str] | None = None) -> list[Json]:
    sent = visit.query.texts("q") if texts is None else texts
    questions: list[Json] = []
    for text in sent[:QUESTIONS_MAX]:
        try:
            question = json.loads(text)
        except ValueError:
            question = None
        if not isinstance(question, dict):
            detail = "A question of this plan is not JSON. Start the plan again."
            raise Refused(400, {"title": "Malformed request", "detail": detail})
        questions.append(question)
    return questions


def _rows(questions: list[Json], priced: Json | None) -> list[dict[str, Any]]:
    rows = []
    for index, question in enumerate(questions):
        others = [one for place, one in enumerate(questions) if place != index]
        rows.append(
            {
                "words": question_in_words(question),
                "dataset": question.get("dataset", ""),
                "preview": priced["items"][index] if priced else None,
                "without": f"/plan?{_query(others)}",
            }
        )
    return rows


async def _stack(visit: Visit, questions: list[Json], priced: Json | None) -> list[Json]:
    """The bar of each dataset: what is used now, and what each question adds."""
    if priced is None:
        return []
    bars = []
    for dataset in dict.fromkeys(item["dataset"] for item in priced["items"]):
        path = f"/v1{account_path(dataset, visit.person.name)}"
        try:
            budget = await visit.api.get(path)
        except Refused:
            continue
        limit = budget["limit"]["epsilon"] or 1.0
        parts = [
            (item["price"]["epsilon"] or 0.0) / limit
            for item in priced["items"]
            if item["dataset"] == dataset and not item["reused"]
        ]
        bars.append({"dataset": dataset, "used": budget["used"], "parts": parts})
    return bars


def _query(questions: list[Json]) -> str:
    return urlencode([("q", json.dumps(one, ensure_ascii=False)) for one in questions])


def _carried(questions: list[Json]) -> str:
    return urlencode([("plan", json.dumps(one, ensure_ascii=False)) for one in questions])


ROUTES = [
    Route("/plan", signed_in(show, "analyst"), methods=["GET"]),
    Route("/plan", signed_in(ask_all, "analyst"), methods=["POST"]),
]
