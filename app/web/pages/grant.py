"""Grant a budget: what it buys in each currency, the difference to before, and freezing."""

import asyncio
import sys
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from app.web.compose.problems import problems_in_words
from app.web.compose.question_from_form import number
from app.web.interface import Json, Refused
from app.web.pages.budgets import account_path
from app.web.site import Form, Visit, segment, signed_in

CURRENCIES = {
    "pure": "pure: one epsilon; losses add up",
    "approximate": "approximate: epsilon and delta; losses add up",
    "zcdp": "zcdp: epsilon and delta; many questions add up to less",
    "renyi": "renyi: epsilon and delta; tight for mixed questions",
    "gdp": "gdp: epsilon and delta; tight for Gaussian noise",
}
TYPICAL = ("0.01", "0.1", "0.5")
DELTA = "0.000001"
FREEZING_EPSILON = "0.000000001"  # below what any question costs


async def choose(visit: Visit) -> Response:
    """From the form on the page of a dataset to the form of one holder."""
    holder = visit.query.text("holder")
    if not holder:
        detail = "Name the holder of the budget: an analyst, group:name, or * for everybody."
        raise Refused(400, {"title": "No holder", "detail": detail})
    return visit.go(f"{account_path(visit.path['dataset'], holder)}/grant")


async def show(visit: Visit) -> Response:
    return await _page(visit, visit.query)


async def grant(visit: Visit) -> Response:
    """Change the budget, if it is still as the form has shown it."""
    dataset, holder = visit.path["dataset"], visit.path["holder"]
    tag = visit.form.text("tag")
    condition = {"if-match": tag} if tag else {"if-none-match": "*"}
    body = {**promise_of(visit.form), "reason": visit.form.text("reason") or None}
    try:
        await visit.api.call("PUT", f"/v1{account_path(dataset, holder)}", body, headers=condition)
    except Refused as refused:
        if refused.status == 401:
            raise
        if refused.status == 412 and await _is_granted(visit, body):
            return visit.go(account_path(dataset, holder))  # the same form was sent twice
        return await _page(visit, visit.form, refused)
    return visit.go(account_path(dataset, holder))


def promise_of(form: Form) -> Json:
    currency = form.text("currency", "pure")
    promise: Json = {"currency": currency, "epsilon": form.text("epsilon") or None}
    if currency != "pure":
        promise["delta"] = form.text("delta") or DELTA
    return promise


async def _is_granted(visit: Visit, body: Json) -> bool:
    """True if the budget is now what this form asks for."""
    now, _ = await _present(visit)
    if now is None or now["currency"] != body["currency"]:
        return False
    limit = now["limit"]
    same = number(body["epsilon"] or "0") == limit["epsilon"]
    return same and number(body.get("delta") or "0") == (limit["delta"] or 0)


async def _present(visit: Visit) -> tuple[Json | None, str]:
    """The present budget and its ETag; None if there is none."""
    path = f"/v1{account_path(visit.path['dataset'], visit.path['holder'])}"
    try:
        reply = await visit.api.call("GET", path)
    except Refused as refused:
        if refused.status == 404:
            return None, ""
        raise
    return reply.json(), reply.headers.get("etag", "")


async def _must_exist(visit: Visit, holder: str) -> None:
    """Raises Refused for a holder to whom the interface could grant nothing."""
    if holder == "*":
        return
    prefix, is_group, group = holder.partition(":")
    if is_group and prefix == "group":
        people = await visit.api.items("/v1/analysts")
        known = {name.casefold() for person in people for name in person["groups"]}
        if group.casefold() not in known:
            raise Refused(404, {"title": "Unknown group", "detail": f"Nobody is in {holder}."})
        return
    person = await visit.api.get(f"/v1/analysts/{segment(holder)}")
    if person["role"] != "analyst":
        detail = f"{holder} is no analyst, and asks nothing. A budget is for an analyst, for a "
        raise Refused(422, {"title": "No analyst", "detail": f"{detail}group, or for everybody."})


async def _page(visit: Visit, form: Form, refused: Refused | None = None) -> Response:
    dataset, holder = visit.path["dataset"], visit.path["holder"]
    card = await visit.api.get(f"/v1/datasets/{segment(dataset)}")
    present, tag = await _present(visit)
    if present is None:
        await _must_exist(visit, holder)
    fields = _fields(form, present)
    bought = await _bought(visit, card["name"], fields)
    return visit.page(
        "grant.html",
        status=200 if refused is None else refused.status,
        card=card,
        holder=holder,
        path=account_path(card["name"], holder),
        dataset_path=f"/datasets/{segment(card['name'])}",
        present=present,
        tag=tag,
        fields=fields,
        bought=bought,
        currencies=CURRENCIES,
        typical=TYPICAL,
        freezing_epsilon=FREEZING_EPSILON,
        problems=[] if refused is None else problems_in_words(refused),
        change=_change(present, fields),
    )


def _fields(form: Form, present: Json | None) -> dict[str, str]:
    """Values of the form: the typed ones, or else those of the present budget."""
    limit = {} if present is None else present["limit"]
    epsilon, delta = limit.get("epsilon"), limit.get("delta")
    return {
        "currency": form.text("currency") or ("pure" if present is None else present["currency"]),
        "epsilon": form.text("epsilon") or ("1" if epsilon is None else f"{epsilon:.15g}"),
        "delta": form.text("delta") or (f"{delta:.15g}" if delta else DELTA),
        "reason": form.text("reason"),
    }


async def _bought(visit: Visit, dataset: str, fields: dict[str, str]) -> list[dict[str, Any]]:
    """How many typical counts each currency would pay for, with nothing spent yet."""
    return list(
        await asyncio.gather(*(_row(visit, dataset, fields, currency) for currency in CURRENCIES))
    )


async def _row(visit: Visit, dataset: str, fields: dict[str, str], currency: str) -> dict[str, Any]:
    account: Json = {"currency": currency, "epsilon": fields["epsilon"]}
    if currency != "pure":
        account["delta"] = fields["delta"]
    counts: list[int | None] = []
    for epsilon in TYPICAL:
        body = {
            "dataset": dataset,
            "query": {"kind": "count"},
            "privacy": {"epsilon": epsilon},
            "account": account,
        }
        try:
            preview = await visit.api.post("/v1/queries/preview", body)
        except Refused as refused:
            if refused.status == 401:
                raise
            return {"currency": currency, "counts": [], "why": refused.detail}
        counts.append(preview["questions_left"])
    return {"currency": currency, "counts": counts, "why": ""}


def _change(present: Json | None, fields: dict[str, str]) -> dict[str, Any] | None:
    """The difference to the present budget, and whether the account would freeze."""
    if present is None:
        return None
    epsilon = number(fields["epsilon"])
    if epsilon is None or abs(epsilon) > sys.float_info.max:
        return None
    spent = present["spent"]["epsilon"] or 0.0
    same_currency = present["currency"] == fields["currency"]
    return {
        "before": present["limit"]["epsilon"],
        "after": epsilon,
        "difference": epsilon - (present["limit"]["epsilon"] or 0.0),
        "freezes": same_currency and epsilon < spent,
        "currency": None if same_currency else (present["currency"], fields["currency"]),
    }


ROUTES = [
    Route("/datasets/{dataset}/grant", signed_in(choose, "admin"), methods=["GET"]),
    Route("/datasets/{dataset}/budgets/{holder}/grant", signed_in(show, "admin"), methods=["GET"]),
    Route(
        "/datasets/{dataset}/budgets/{holder}/grant", signed_in(grant, "admin"), methods=["POST"]
    ),
]
