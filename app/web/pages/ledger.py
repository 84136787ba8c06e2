"""The ledger: its entries, filters, and verification."""

import json
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from app.web.interface import Json
from app.web.pages.ask import description_of
from app.web.site import Visit, signed_in

PAGE_SIZE = 50
FILTERS = ("dataset", "holder", "kind", "since")
NEWEST, OLDEST = "newest", "oldest"


async def show(visit: Visit) -> Response:
    filters = {name: visit.query.text(name) for name in FILTERS}
    chosen = {name: value for name, value in filters.items() if value}
    order = OLDEST if visit.query.text("order") == OLDEST else NEWEST
    sent: dict[str, Any] = {**chosen, "limit": PAGE_SIZE, "order": order}
    if "since" in chosen:
        sent["since"] = f"{chosen['since']}T00:00:00Z"
    cursor = visit.query.text("cursor") or None
    page = await visit.api.get("/v1/ledger", **sent, cursor=cursor)
    following = {**chosen, "order": order, "cursor": page["next_cursor"]}
    return visit.page(
        "ledger.html",
        items=[_shown(entry) for entry in page["items"]],
        filters=filters,
        order=order,
        kinds=(await description_of(visit.api)).entry_kinds,
        next=urlencode(following) if page["next_cursor"] else None,
        verified=None,
    )


async def verify(visit: Visit) -> Response:
    """Recompute chains and totals, and show what disagrees."""
    verified = await visit.api.get("/v1/ledger/verify")
    return visit.page("verified.html", verified=verified)


def _shown(entry: Json) -> Json:
    body = entry["body"]
    about = body.get("holder") or body.get("name") or ", ".join(body.get("accounts") or ())
    whole = json.dumps(body, indent=1, ensure_ascii=False)
    return {**entry, "about": about, "whole": whole}


ROUTES = [
    Route("/ledger", signed_in(show, "admin", "viewer"), methods=["GET"]),
    Route("/ledger/verify", signed_in(verify, "admin"), methods=["POST"]),
]
