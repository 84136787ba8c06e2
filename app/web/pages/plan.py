"""A plan: questions in order, what they cost together, and where the budget stops.

The plan is in the address of the page. So it can be kept as a bookmark, and the server stores none.
"""

import json
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from app.names import new_id
from app.web.compose.json_text import read_json
from app.web.compose.prices import is_dearer, price_text, sum_of_prices
from app.web.compose.problems import problems_in_words
from app.web.compose.words import question_in_words
from app.web.interface import Json, Refused
from app.web.pages.budgets import account_path
from app.web.site import Form, Visit, segment, signed_in

QUESTIONS_MAX = 50


async def show(visit: Visit) -> Response:
    questions = _questions(visit.query)
    removed = visit.query.text("remove")
    if removed.isdecimal():
        kept = [one for place, one in enumerate(questions) if str(place) != removed]
        return visit.go(f"/plan?{_query(kept)}")
    return await _page(visit, questions)


async def _page(visit: Visit, questions: list[Json], dearer: bool = False) -> Response:
    priced: Json | None = None
    problems: list[str] = []
    if len(questions) > QUESTIONS_MAX:
        problems = [_too_long(len(questions))]
    elif questions:
        try:
            priced = await visit.api.post("/v1/queries/preview", questions)
        except Refused as error:
            if error.status == 401:
                raise
            problems = problems_in_words(error)
    datasets = await visit.api.items("/v1/datasets")
    return visit.page(
        "plan.html",
        status=409 if dearer else 200,
        dearer=dearer,
        rows=_rows(questions, priced),
        priced=priced,
        problems=problems,
        prices=[price_text(item) for item in priced["items"]] if priced else [],
        total=sum_of_prices(priced["items"]) if priced else None,
        stack=await _stack(visit, questions, priced),
        datasets=[
            {"name": one["name"], "ask": f"/datasets/{segment(one['name'])}/ask"}
            for one in datasets
        ],
        texts=[json.dumps(question, ensure_ascii=False) for question in questions],
        request_key=visit.form.text("request_key") or new_id("page"),
    )


async def ask_all(visit: Visit) -> Response:
    """Ask every question of the plan in order, if the budget pays for all of them now.

    Somebody else may spend meanwhile: then the first question that does not fit is refused, and
    the ones before it stay answered and charged. If a question costs more now than the form has
    shown, nothing is asked.
    """
    questions = _questions(visit.form)
    if not questions:
        return visit.go("/plan")
    if len(questions) > QUESTIONS_MAX:
        raise Refused(422, {"title": "Plan too long", "detail": _too_long(len(questions))})
    priced = await visit.api.post("/v1/queries/preview", questions)
    if not priced["fits"]:
        return visit.go(f"/plan?{_query(questions)}")
    shown = visit.form.texts("price")
    pairs = zip(priced["items"], shown, strict=False)
    if len(shown) != len(questions) or any(is_dearer(item, price) for item, price in pairs):
        return await _page(visit, questions, dearer=True)
    key = visit.form.text("request_key") or new_id("page")
    for number, question in enumerate(questions):
        headers = {"idempotency-key": f"{key}-{number}", "prefer": "wait=10"}
        await visit.api.call("POST", "/v1/queries", question, headers=headers)
    return visit.go("/questions")


def _too_long(length: int) -> str:
    most = f"A plan has at most {QUESTIONS_MAX} questions, and this one has {length}."
    return f"{most} Remove {length - QUESTIONS_MAX} to see what the others cost."


def _questions(form: Form) -> list[Json]:
    """The questions of an address (`q`), or of a form that changes the plan (`plan`)."""
    questions: list[Json] = []
    for text in [*form.texts("q"), *form.texts("plan")]:
        try:
            question = read_json(text)
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
        rows.append(
            {
                "words": question_in_words(question),
                "dataset": question.get("dataset", ""),
                "preview": priced["items"][index] if priced else None,
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


ROUTES = [
    Route("/plan", signed_in(show, "analyst"), methods=["GET"]),
    Route("/plan", signed_in(ask_all, "analyst"), methods=["POST"]),
]
