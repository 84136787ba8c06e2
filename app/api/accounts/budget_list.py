"""List of budgets, with filters and an ETag."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from app.access import Principal, Role, holder_of
from app.api.budgets import BudgetResponse, shown_budget
from app.api.http.entity_tags import etag_of_text, has_seen_text
from app.api.http.openapi import documented
from app.api.http.principal import Anyone, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import CursorIn, Limit, cursor_place, cursor_text
from app.names import folded

router = APIRouter(tags=["budgets"])

CHUNK = 200  # budgets of one statement
READS_MAX = 10  # statements of one request
NameQuery = Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$")
BudgetDatasetIn = Annotated[
    str | None, NameQuery, Query(description="Only budgets on this dataset.")
]
BudgetHolderIn = Annotated[
    str | None,
    NameQuery,
    Query(description="Only budgets of this analyst, of `group:name`, or of `*`."),
]
UsedIn = Annotated[
    float | None,
    Query(
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Only budgets with a larger `used`.",
    ),
]


class BudgetsResponse(BaseModel):
    """Budgets in a fixed order. With `used_above` a page may be short, or even empty, and still
    have a `next_cursor`: one request looks at a limited number of budgets."""

    items: list[BudgetResponse]
    next_cursor: str | None


@router.get("/v1/budgets", **documented("list_budgets", "Budgets", BudgetsResponse, tagged=True))
def list_budgets(
    request: Request,
    deps: ServicesDep,
    principal: Anyone,
    dataset: BudgetDatasetIn = None,
    holder: BudgetHolderIn = None,
    used_above: UsedIn = None,
    limit: Limit = 50,
    cursor: CursorIn = None,
) -> Response:
    """Your own budgets and your groups'; viewers and administrators see all. A name that does not
    exist, or that you may not see, selects nothing. `If-None-Match` with the ETag gives 304 while
    this page is the same."""
    (after,) = cursor_place(cursor, str) or ("",)
    holders = _holders(principal, holder)
    items, following = page_of(deps, holders, dataset, used_above, after, limit)
    content = {"items": items, "next_cursor": following}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    tag = etag_of_text(text)
    if has_seen_text(tag, request.headers.getlist("if-none-match")):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(text, headers={"ETag": tag}, media_type="application/json")


def _holders(principal: Principal, holder: str | None) -> tuple[str, ...] | None:
    """Holders whose budgets are listed; None for everybody's."""
    visible = principal.holders if principal.role is Role.ANALYST else None
    if holder is None:
        return visible
    selected = holder_of(holder)
    return (selected,) if visible is None or selected in visible else ()


def page_of(
    deps: Services,
    holders: tuple[str, ...] | None,
    dataset: str | None,
    used_above: float | None,
    after: str,
    limit: int,
) -> tuple[list[dict[str, Any]], str | None]:
    name = None if dataset is None else folded(dataset)
    items: list[dict[str, Any]] = []
    for _ in range(READS_MAX):
        size = limit if used_above is None else CHUNK
        rows = deps.budgets.all(holders=holders, after=after, limit=size, dataset=name)
        for row_after, budget in rows:
            after = row_after
            if used_above is None or budget.account.used > used_above:
                items.append(shown_budget(budget))
            if len(items) == limit:
                return items, cursor_text(after)
        if len(rows) < size:
            return items, None
    return items, cursor_text(after)
