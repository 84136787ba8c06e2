"""Ask: compose a question, see its price and its error for free, rehearse it, and pay for it."""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response
from starlette.routing import Route

from app.names import new_id
from app.web.compose import question_from_form
from app.web.compose.answers import rows_of_answer
from app.web.compose.code import as_code
from app.web.compose.json_text import read_json
from app.web.compose.kinds import KindsOfQuestion
from app.web.compose.prices import is_dearer, price_text
from app.web.compose.problems import problems_in_words
from app.web.compose.words import question_in_words
from app.web.interface import Interface, Json, Refused
from app.web.site import Form, Visit, segment, signed_in

CURVE = [f"{10 ** (k / 4 - 3):.3g}" for k in range(17)]  # epsilon 0.001 to 10
CARRIED = {"plan", "tab"}  # fields that other pages put into an address
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
    card = await visit.api.get(f"/v1/datasets/{segment(visit.path['dataset'])}")
    return await _page(visit, card, visit.query)


async def _page(visit: Visit, card: Json, form: Form, dearer: Json | None = None) -> Response:
    """The page of a form. `dearer` is a question that was sent, and costs more than was shown."""
    description = await description_of(visit.api)
    composed = question_from_form.composed(description, card, form)
    body, missing = composed.body, composed.missing
    tab = "sql" if form.text("tab") == "sql" else "form"
    if tab == "sql":
        body, missing = question_from_form.composed_sql(card, form)
    if not form.keys() - CARRIED:  # nobody has filled in anything
        body, missing = None, []
    body = dearer or body
    shown: dict[str, Any] = {"body": None, "missing": missing, "problems": [], "refusal": None}
    if body is not None:
        shown |= await _priced(visit, body, form)
    dataset_path = f"/datasets/{segment(card['name'])}"
    path = f"{dataset_path}/ask"
    return visit.page(
        "ask.html",
        status=200 if dearer is None else 409,
        address=path,
        dearer=dearer is not None,
        card=card,
        dataset_path=dataset_path,
        form=form,
        form_text=urlencode([(name, one) for name, values in form.items() for one in values]),
        tab=tab,
        tabs=TABS,
        tab_links={name: f"{path}?{urlencode({**_plain(form), 'tab': name})}" for name in TABS},
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
        "request_key": visit.form.text("request_key") or new_id("page"),
        "price": "",
        "preview": None,
        "curve": None,
        "rehearsal": None,
        "plan_query": urlencode([*(("q", q) for q in form.texts("plan")), ("q", json.dumps(body))]),
    }
    curve = {"epsilons": CURVE} if _names_epsilon(body) else {}
    try:
        preview = await visit.api.post("/v1/queries/preview", {**body, **assumed, **curve})
        shown["preview"] = preview
        shown["price"] = price_text(preview)
        shown["curve"] = _curve(preview)
        if form.text("show") == "rehearsal":
            rehearsal = await visit.api.post("/v1/queries/rehearse", {**body, **assumed})
            shown["rehearsal"] = {**rehearsal, "table": rows_of_answer(rehearsal)}
    except Refused as refused:
        if refused.status in (401, 500):
            raise
        shown |= {"refusal": refused, "problems": problems_in_words(refused)}
    return shown


def _names_epsilon(body: Json) -> bool:
    """True for a question that the interface can price at other epsilons too."""
    privacy = body.get("privacy")
    return "sql" not in body and isinstance(privacy, dict) and "epsilon" in privacy


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


def _form_of(text: str) -> Form:
    """The fields with which a question was composed, as the page has sent them along."""
    form = Form()
    for name, value in parse_qsl(text, keep_blank_values=True):
        form.setdefault(name, []).append(value)
    return form


async def ask(visit: Visit) -> Response:
    """Pay for a question. The same form sent again shows the same answer, and costs nothing.

    The form carries the price that it has shown. If the question costs more now, nothing is asked.
    """
    try:
        body = read_json(visit.form.text("question"))
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refused(400, {"title": "Malformed request", "detail": "There is no question."})
    preview = await visit.api.post("/v1/queries/preview", body)
    if is_dearer(preview, visit.form.text("price")):
        card = await visit.api.get(f"/v1/datasets/{segment(preview['dataset'])}")
        return await _page(visit, card, _form_of(visit.form.text("form")), body)
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
