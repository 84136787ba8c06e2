"""Datasets: the list, one card with made-up rows and budgets, and changes by administrators."""

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from app.names import new_id
from app.web.interface import Json, Refused
from app.web.pages.budgets import account_path
from app.web.site import Visit, segment, signed_in

SAMPLE_ROWS = 8
VERSIONS_MAX = 50
# Kinds of entries that begin a version, in words.
BEGINNINGS = {
    "dataset_registered": "registered",
    "epoch_appended": "epoch appended",
    "version_declared": "new version declared, after its source had changed",
}
EVERYBODY = "*"


async def show_list(visit: Visit) -> Response:
    items = await visit.api.items("/v1/datasets")
    rows = [{**item, "path": _path(item["name"]), "person": person_of(item)} for item in items]
    return visit.page("datasets.html", items=rows)


async def show(visit: Visit) -> Response:
    return await _page(visit)


async def _page(visit: Visit, refused: Refused | None = None) -> Response:
    card = await visit.api.get(_twin(visit))
    sample = await visit.api.get(f"{_twin(visit)}/sample", rows=SAMPLE_ROWS)
    budgets = await visit.api.items("/v1/budgets", parameters={"dataset": card["name"]})
    for budget in budgets:
        budget["path"] = account_path(card["name"], budget["holder"])
    everybody = next((one for one in budgets if one["holder"] == EVERYBODY), None)
    return visit.page(
        "dataset.html",
        status=200 if refused is None else refused.status,
        card=card,
        path=_path(card["name"]),
        person_text=person_of(card),
        sample=sample["rows"],
        budgets=sorted(budgets, key=lambda one: (one["holder"] != EVERYBODY, one["holder"])),
        loss=everybody or next(iter(budgets), None),
        everybody=everybody,
        versions=await versions_of(visit, card["name"]) if visit.person.audits else None,
        versions_max=VERSIONS_MAX,
        refused=refused,
        request_key=new_id("page"),
    )


async def versions_of(visit: Visit, dataset: str) -> list[Json]:
    """The latest versions, newest first, as the ledger has recorded them."""
    versions = []
    for kind, words in BEGINNINGS.items():
        chosen = {"dataset": dataset, "kind": kind, "order": "newest"}
        for entry in await visit.api.items("/v1/ledger", most=VERSIONS_MAX, parameters=chosen):
            if entry["body"]["dataset"] == dataset:  # a book may hold several datasets
                epoch = entry["body"]["after"].get("epoch")
                versions.append({**entry, "words": words, "epoch": epoch})
    versions.sort(key=lambda entry: -entry["seq"])
    return versions[:VERSIONS_MAX]


async def change(visit: Visit) -> Response:
    """Describe, close, reopen, append or refresh; one deed for each button."""
    deed, reason = visit.form.text("deed"), visit.form.text("reason") or None
    bodies: dict[str, Json] = {
        "describe": {"description": visit.form.text("description")},
        "close": {"status": "closed"},
        "reopen": {"status": "open"},
        "refresh": {"refresh": True},
        "append": {"append": {"path": visit.form.text("path")}},
    }
    if deed not in bodies:
        raise Refused(400, {"title": "Malformed request", "detail": "There is no such change."})
    try:
        await visit.api.call("PATCH", _twin(visit), {**bodies[deed], "reason": reason})
    except Refused as refused:
        return await _page(visit, refused)
    return visit.go(_path(visit.path["dataset"]))


async def withdraw(visit: Visit) -> Response:
    """Remove the name while nothing was charged; otherwise close it."""
    headers = {"idempotency-key": visit.form.text("request_key")}
    parameters = {"reason": visit.form.text("reason") or None}
    try:
        reply = await visit.api.call("DELETE", _twin(visit), parameters=parameters, headers=headers)
    except Refused as refused:
        return await _page(visit, refused)
    outcome = reply.json()
    return visit.page("withdrawn.html", outcome=outcome, path=_path(outcome["dataset"]))


def person_of(card: Json) -> str:
    """The protected person and the neighbouring relation, in words."""
    person: dict[str, Any] = card["person"]
    if person["kind"] == "row":
        who = "Each row is one person."
    elif person["kind"] == "edge":
        who = "Each edge of the graph is one person."
    else:
        who = f"Rows with the same {person['column']} are one person, with at most "
        who += f"{person['rows_max']} rows."
    if card["neighbours"] == "replace_one":
        return f"{who} One person may be replaced; the number of rows, {card['rows']}, is public."
    return f"{who} One person may be there or not."


def _path(name: str) -> str:
    return f"/datasets/{segment(name)}"


def _twin(visit: Visit) -> str:
    return f"/v1/datasets/{segment(visit.path['dataset'])}"


ROUTES = [
    Route("/datasets", signed_in(show_list), methods=["GET"]),
    Route("/datasets/{dataset}", signed_in(show), methods=["GET"]),
    Route("/datasets/{dataset}", signed_in(change, "admin"), methods=["POST"]),
    Route("/datasets/{dataset}/withdraw", signed_in(withdraw, "admin"), methods=["POST"]),
]
