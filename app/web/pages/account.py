"""One account: what is left, how it was spent, how long it lasts, and what an attacker learns."""

import datetime
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from app.web import rendering
from app.web.interface import PAGE_SIZE, Json, Refused
from app.web.pages.budgets import account_path
from app.web.site import Visit, segment, signed_in

ROWS_MAX = 50  # entries in the table
POINTS_MAX = 200  # entries in the chart
# Requests for the history that one page makes; each looks through 200,000 entries at most.
READS_MAX = 2
SPARK_READS_MAX = 1
SPARK_POINTS = 40
FORECAST_DAYS = 30
DAY = 86_400.0
ALPHA = 0.05  # rate of wrong accusations in the attacker's sentence
YEARS_MAX = 10


class Latest(NamedTuple):
    """The newest entries of an account, newest first."""

    steps: list[Json]
    complete: bool  # there is no earlier entry


async def show(visit: Visit) -> Response:
    dataset, holder = visit.path["dataset"], visit.path["holder"]
    twin = f"/v1{account_path(dataset, holder)}"
    budget = await visit.api.get(twin)
    latest = await _latest(visit, twin, POINTS_MAX)
    tradeoff = await visit.api.get(f"{twin}/tradeoff")
    return visit.page(
        "account.html",
        budget=budget,
        path=account_path(budget["dataset"], budget["holder"]),
        dataset_path=f"/datasets/{segment(budget['dataset'])}",
        steps=latest.steps[:ROWS_MAX],
        more=len(latest.steps) > ROWS_MAX or not latest.complete,
        charges=[step for step in latest.steps if step["entry"] == "charge"],
        burn_down=burn_down(latest, budget),
        forecast=forecast(latest, budget["used"]),
        tradeoff={name: tradeoff[name] for name in ("alpha", "beta", "promised_beta")},
        sentence=sentence(tradeoff),
        alpha=ALPHA,
        may_ask=visit.person.asks,
    )


async def sparkline(visit: Visit) -> Response:
    """The balance after each of the latest charges, as a part of the page of budgets."""
    path = account_path(visit.path["dataset"], visit.path["holder"])
    try:
        latest = await _latest(visit, f"/v1{path}", SPARK_POINTS, reads_max=SPARK_READS_MAX)
    except Refused:
        latest = Latest([], complete=False)
    left = [1 - min(1.0, step["used"]) for step in reversed(latest.steps)]
    return rendering.page("sparkline.html", {"left": left})


async def _latest(visit: Visit, twin: str, most: int, reads_max: int = READS_MAX) -> Latest:
    """The newest entries of an account, `most` at most."""
    items: list[Json] = []
    cursor = None
    for _ in range(reads_max):
        limit = min(PAGE_SIZE, most - len(items))
        page = await visit.api.get(f"{twin}/history", order="newest", limit=limit, cursor=cursor)
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None or len(items) >= most:
            break
    return Latest(items, complete=cursor is None)


def burn_down(latest: Latest, budget: Json) -> Json:
    """Points of the chart: seconds since 1970, the share that is left, and the forecast."""
    points = [(_seconds(step["at"]), 1 - step["used"]) for step in reversed(latest.steps)]
    now = datetime.datetime.now(datetime.UTC).timestamp()
    points.append((now, 1 - budget["used"]))
    until = forecast(latest, budget["used"])["until"]
    end = None if until is None else (_seconds(until), 0.0)
    return {"left": points, "forecast": None if end is None else [points[-1], end]}


def forecast(latest: Latest, used: float) -> dict[str, Any]:
    """When the budget will be used up at the pace of the last days, by the stop rule."""
    if used >= 1:
        return {"until": None, "text": "It is used up."}
    now = datetime.datetime.now(datetime.UTC)
    start = now - datetime.timedelta(days=FORECAST_DAYS)
    recent = [step for step in latest.steps if _moment(step["at"]) >= start]
    if not recent:
        when = f"in the last {FORECAST_DAYS} days" if latest.complete else "lately"
        return {"until": None, "text": f"Nothing was spent {when}."}
    oldest = recent[-1]
    all_recent = latest.complete and len(recent) == len(latest.steps)
    grown = used - (0.0 if all_recent else oldest["used"])
    if grown <= 0:
        return {"until": None, "text": "Nothing was spent lately."}
    span = max((now - _moment(oldest["at"])).total_seconds(), DAY)
    seconds = (1 - used) / (grown / span)
    if seconds > YEARS_MAX * 365 * DAY:
        return {"until": None, "text": f"At this pace it lasts for more than {YEARS_MAX} years."}
    until = now + datetime.timedelta(seconds=seconds)
    return {"until": until.isoformat(), "text": f"At this pace it lasts until {until:%Y-%m-%d}."}


def sentence(tradeoff: Json) -> dict[str, float]:
    """The attacker's sentence: shares of persons that an attack recognizes at most."""
    index = next(i for i, alpha in enumerate(tradeoff["alpha"]) if alpha >= ALPHA - 1e-12)
    found, promised = 1 - tradeoff["beta"][index], 1 - tradeoff["promised_beta"][index]
    return {"recognized": found, "promised": promised}


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def _seconds(text: str) -> float:
    return _moment(text).timestamp()


PATH = "/datasets/{dataset}/budgets/{holder}"
ROUTES = [
    Route(PATH, signed_in(show), methods=["GET"]),
    Route(f"{PATH}/sparkline", signed_in(sparkline), methods=["GET"]),
]
