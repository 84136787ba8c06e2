"""One question with its answer, and the list of questions that were asked."""

import json
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from app.web.compose.answers import dot_plot, rows_of_answer
from app.web.compose.code import as_code
from app.web.compose.words import question_in_words
from app.web.interface import Json
from app.web.pages.ask import description_of
from app.web.site import Visit, segment, signed_in

PAGE_SIZE = 50
FILTERS = ("holder", "kind", "status", "since")


async def show(visit: Visit) -> Response:
    item = await visit.api.get(f"/v1/queries/{segment(visit.path['id'])}")
    answer = item["answer"] or {}
    table = rows_of_answer(answer)
    words = question_in_words(item["question"])
    return visit.page(
        "question.html",
        item=item,
        words=words,
        table=table,
        plot=dot_plot(table, words),
        codes=_codes(item),
        reused="reused" in visit.query,
        dataset_path=f"/datasets/{segment(item['dataset'])}",
    )


def _codes(item: Json) -> dict[str, str]:
    question = item["question"] or {}
    is_question = "query" in question and "privacy" in question
    return as_code(question) if is_question or "sql" in question else {}


async def answer_file(visit: Visit) -> Response:
    """The stored answer as a file, for an offline check of its receipt."""
    item = await visit.api.get(f"/v1/queries/{segment(visit.path['id'])}")
    headers = {"content-disposition": 'attachment; filename="answer.json"'}
    text = json.dumps(item["answer"], ensure_ascii=False)
    return Response(text, media_type="application/json", headers=headers)


async def cancel(visit: Visit) -> Response:
    path = f"/questions/{segment(visit.path['id'])}"
    await visit.api.call("DELETE", f"/v1/queries/{segment(visit.path['id'])}")
    return visit.go(path)


async def show_list(visit: Visit) -> Response:
    filters = {name: visit.query.text(name) for name in FILTERS}
    chosen = {name: value for name, value in filters.items() if value}
    sent = {**chosen, "limit": PAGE_SIZE, "cursor": visit.query.text("cursor") or None}
    if "since" in chosen:
        sent["since"] = f"{chosen['since']}T00:00:00Z"
    page = await visit.api.get("/v1/queries", **sent)
    items = [{**item, "words": question_in_words(item["question"])} for item in page["items"]]
    following = {**chosen, "cursor": page["next_cursor"]}
    return visit.page(
        "questions.html",
        items=items,
        filters=filters,
        kinds=sorted((await description_of(visit.api)).kinds),
        next=urlencode(following) if page["next_cursor"] else None,
    )


ROUTES = [
    Route("/questions", signed_in(show_list, "analyst", "admin"), methods=["GET"]),
    Route("/questions/{id}", signed_in(show, "analyst", "admin"), methods=["GET"]),
    Route(
        "/questions/{id}/answer.json", signed_in(answer_file, "analyst", "admin"), methods=["GET"]
    ),
    Route("/questions/{id}/cancel", signed_in(cancel, "analyst"), methods=["POST"]),
]
