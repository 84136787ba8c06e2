"""Budgets: what needs attention first, then every budget that the person may see."""

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from app.web.charts import MUCH, NEARLY_ALL
from app.web.interface import Json
from app.web.numbers import percent, short
from app.web.site import Visit, segment, signed_in

ROWS_MAX = 200
ATTENTION_MAX = 8


async def show(visit: Visit) -> Response:
    names = ("dataset", "holder", "used_above")
    filters = {name: visit.query.text(name) for name in names}
    chosen = {name: value for name, value in filters.items() if value}
    budgets = await visit.api.items("/v1/budgets", parameters=chosen)
    budgets.sort(key=lambda budget: (-budget["frozen"], -budget["used"], budget["dataset"]))
    rows = [_row(budget) for budget in budgets[:ROWS_MAX]]
    return visit.page(
        "budgets.html",
        rows=rows,
        more=len(budgets) > ROWS_MAX,
        attention=[line for row in rows if (line := _attention(row))][:ATTENTION_MAX],
        filters=filters,
        datasets=sorted({budget["dataset"] for budget in budgets}),
        here=str(visit.request.url.path) + (f"?{visit.request.url.query}" if chosen else ""),
    )


def account_path(dataset: str, holder: str) -> str:
    return f"/datasets/{segment(dataset)}/budgets/{segment(holder)}"


def _row(budget: Json) -> dict[str, Any]:
    path = account_path(budget["dataset"], budget["holder"])
    dataset_path = f"/datasets/{segment(budget['dataset'])}"
    return {**budget, "path": path, "dataset_path": dataset_path}


def _attention(row: Json) -> dict[str, Any] | None:
    """A line about a budget that somebody should look at; None for the others."""
    if row["frozen"]:
        why = "is frozen: its limit is below what was spent."
    elif row["used"] >= 1 or row["questions_left"] == 0:
        why = f"is used up: {short(row['remaining']['epsilon'])} is left, no typical count fits."
    elif row["used"] >= NEARLY_ALL:
        why = f"has used {percent(row['used'])}."
    elif row["used"] >= MUCH and row["holder"] == "*":
        why = f"has used {percent(row['used'])}; nobody can ask when it is used up."
    else:
        return None
    return {**row, "why": why}


ROUTES = [Route("/", signed_in(show), methods=["GET"])]
