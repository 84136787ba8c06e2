"""Ask: compose a question, see its price and its error for free, rehearse it, and pay for it."""

import json
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from app.names import new_id
from app.web.compose import question_from_form
from app.web.compose.answers import rows_of_answer
from app.web.compose.code import as_code
from app.web.compose.kinds import KindsOfQuestion
from app.web.compose.words import question_in_words
from app.web.interface import Interface, Json, Refused
from app.web.site import Form, Visit, segment, signed_in

CURVE = [f"{10 ** (k / 4 - 3):.3g}" for k in range(17)]  # epsilon 0.001 to 10
FILTER_ROWS = 3  # empty rows that a form offers
TABS = {"form": "Form", "sql": "SQL"}
_DESCRIPTIONS: dict[int, KindsOfQuestion] = {}


async def description_of(api: Interface) -> KindsOfQuestion:
    """Kinds and fields of the interface; read once in each process."""
    if 0 not in _DESCRIPTIONS:
        _DESCRIPTIONS[0] = KindsOfQuestion(await api.get("/openapi.json"))
    return _DESCRIPTIONS[0]


async def show(visit: Visit) -> Response:
    """The form, and for a question that is complete its price and its error."""
    form = visit.query
    card = await visit.api.get(f"/v1/datasets/{segment(visit.path['dataset'])}")
    description = await description_of(visit.api)
    composed = question_from_form.composed(description, card, form)
    body, missing = composed.body, composed.missing
    tab = "sql" if form.text("tab") == "sql" else "form"
    if tab == "sql":
        body, missing = question_from_form.composed_sql(card, form)
    shown: dict[str, Any] = {"body": None, "missing": missing if form else [], "refusal": None}
    if body is not None:
        shown |= await _priced(visit, body, form)
    return visit.page(
        "ask.html",
        card=card,
        dataset_path=f"/datasets/{segment(card['name'])}",
        form=form,
        tab=tab,
        tabs=TABS,
        tab_links={name: f"?{urlencode({**_plain(form), 'tab': name})}" for name in TABS},
        kind=composed.kind,
        families=list(description.families(_usable(card))),
        mechanisms=description.mechanisms,
        operators=question_from_form.OPERATORS,
        prices=question_from_form.PRICES,
        conditions=_conditions(form),
        groups=[c for c in card["columns"] if c["type"] != "text"],
        **shown,
    )


async def _priced(visit: Visit, body: Json, form: Form) -> dict[str, Any]:
    """Price, error and code of a question, and its rehearsal if the form asks for one."""
    assumed = question_from_form.assumed(form)
    shown: dict[str, Any] = {
        "body": body,
        "words": question_in_words(body),
        "codes": as_code(body),
        "sent": json.dumps(body, ensure_ascii=False),
        "request_key": new_id("page"),
        "preview": None,
        "curve": None,
        "rehearsal": None,
        "plan_query": urlencode([*(("q", q) for q in form.texts("plan")), ("q", json.dumps(body))]),
    }
    curve = {"epsilons": CURVE} if "sql" not in body else {}
    try:
        preview = await visit.api.post("/v1/queries/preview", {**body, **assumed, **curve})
        shown["preview"] = preview
        shown["curve"] = _curve(preview)
        if form.text("show") == "rehearsal":
            rehearsal = await visit.api.post("/v1/queries/rehearse", {**body, **assumed})
            shown["rehearsal"] = {**rehearsal, "table": rows_of_answer(rehearsal)}
    except Refused as refused:
        if refused.status in (401, 500):
            raise
        shown["refusal"] = refused
    return shown


def _curve(preview: Json) -> Json | None:
    """Points of the chart of error against price; None if there are too few."""
    points = [
        (point["epsilon"], point["expected_error"]["half_width"])
        for point in preview.get("curve") or ()
        if point["expected_error"]["half_width"]
    ]
    price = preview["price"]["epsilon"]
    half_width = preview["expected_error"]["half_width"]
    if price and half_width and price not in {epsilon for epsilon, _ in points}:
        points = sorted([*points, (price, half_width)])
    if len(points) < 2:
        return None
    error = preview["expected_error"]
    unit = error.get("column") if error["unit"].startswith("column") else error["unit"]
    epsilons, widths = [epsilon for epsilon, _ in points], [width for _, width in points]
    return {"epsilon": epsilons, "error": widths, "unit": unit or "error", "now": price}


def _conditions(form: Form) -> list[tuple[str, str, str]]:
    """The rows of the filter: those that are filled in, and some empty ones."""
    texts = (form.texts("w_column"), form.texts("w_op"), form.texts("w_value"))
    rows = [row for row in zip(*texts, strict=False) if row[0]]
    empty = max(1, FILTER_ROWS - len(rows))
    return [*rows, *[("", "==", "")] * empty][: question_from_form.FILTERS_MAX]


def _plain(form: Form) -> dict[str, str]:
    return {name: values[0] for name, values in form.items() if values}


def _usable(card: Json) -> dict[str, bool]:
    """Kinds that depend on the dataset, and whether this one can answer them."""
    is_graph = card["person"]["kind"] == "edge"
    types = {column["type"] for column in card["columns"]}
    return {
        "triangles": is_graph,
        "keys": "text" in types,
        "count_distinct": card["person"]["kind"] == "column",
        "trimmed_mean": card.get("rows") is not None,
        "logistic_regression": "boolean" in types,
    }


async def ask(visit: Visit) -> Response:
    """Pay for a question. The same form sent again shows the same answer, and costs nothing."""
    try:
        body = json.loads(visit.form.text("question"))
    except ValueError:
        raise Refused(
            400, {"title": "Malformed request", "detail": "There is no question."}
        ) from None
    key = visit.form.text("request_key") or new_id("page")
    reply = await visit.api.call(
        "POST",
        "/v1/queries",
        body,
        headers={"idempotency-key": key, "prefer": "wait=10"},
    )
    answer = reply.json()
    reused = "?reused=1" if "bursar-reused" in reply.headers else ""
    return visit.go(f"/questions/{segment(answer['id'])}{reused}")


ROUTES = [
    Route("/datasets/{dataset}/ask", signed_in(show, "analyst"), methods=["GET"]),
    Route("/questions", signed_in(ask, "analyst"), methods=["POST"]),
]
