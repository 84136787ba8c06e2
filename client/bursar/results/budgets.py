"""Budgets: what is left, how it was spent, how long it will last, and what an attacker learns."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bursar.ask.amounts import Loss
from bursar.http.flow import Call, Flow, quoted, send
from bursar.results.show.budget import budget_text, history_html, tradeoff_html
from bursar.results.tables import Row, Table

PAGE = 200
LIST_MAX = 100_000
HISTORY_MAX = 10_000  # the newest entries: fifty requests
FORECAST_DAYS = 30


@dataclass(frozen=True, repr=False)
class BudgetFigures:
    """An account on a dataset. `used` runs from 0 to 1 by the stop rule of its currency."""

    dataset: str
    holder: str
    currency: str
    limit: Loss
    spent: Loss
    remaining: Loss
    used: float
    largest_epsilon: float
    questions_left: int  # counts of epsilon 0.1
    frozen: bool
    cells: tuple[Mapping[str, Any], ...]
    members: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return budget_text(self)


def read_figures(members: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `BudgetFigures` in a reply."""
    amounts = {name: Loss.read(members[name]) for name in ("limit", "spent", "remaining")}
    names = ("dataset", "holder", "currency", "used", "largest_epsilon", "questions_left", "frozen")
    plain = {name: members[name] for name in names}
    return {**plain, **amounts, "cells": tuple(members["cells"]), "members": members}


@dataclass(frozen=True)
class Forecast:
    """When the budget will be used up at the pace of the last days."""

    date: datetime.date | None
    text: str


@dataclass(frozen=True, repr=False)
class History(Table):
    """The entries that touched an account, with `used` and `remaining` after each.

    A very long history has its newest entries only; then it is not `complete`.
    """

    items: tuple[Mapping[str, Any], ...]
    budget: BudgetFigures
    complete: bool = True

    def rows(self) -> list[Row]:
        return [
            {
                "sequence": item["sequence"],
                "at": item["at"],
                "entry": item["entry"],
                "kind": item.get("kind"),
                "question": item.get("question"),
                "epsilon": (item.get("price") or {}).get("epsilon"),
                "delta": (item.get("price") or {}).get("delta"),
                "used": item["used"],
                "remaining": (item.get("remaining") or {}).get("epsilon"),
            }
            for item in self.items
        ]

    def forecast(self, days: int = FORECAST_DAYS) -> Forecast:
        """The day on which the limit is reached at the pace of the last `days` days."""
        if self.budget.used >= 1:
            return Forecast(None, "The budget is used up.")
        points = [(_moment(item["at"]), float(item["used"])) for item in self.items]
        first = 0.0 if self.complete or not points else points[0][1]
        start = _now() - datetime.timedelta(days=days)
        earlier = [used for at, used in points if at < start]
        recent = [at for at, _ in points if at >= start]
        grown = self.budget.used - (earlier[-1] if earlier else first)
        if not recent or grown <= 0:
            return Forecast(None, f"Nothing was spent in the last {days} days.")
        since = start if earlier else recent[0]
        span = max((_now() - since).total_seconds(), 86_400.0)  # a day at least
        seconds = (1 - self.budget.used) / (grown / span)
        if seconds > 86_400 * 3650:
            return Forecast(None, "At this pace the budget lasts for more than ten years.")
        date = (_now() + datetime.timedelta(seconds=seconds)).date()
        return Forecast(date, f"At this pace the budget is used up around {date.isoformat()}.")

    def __repr__(self) -> str:
        newest = "" if self.complete else "newest "
        return f"{self.budget!r}\n{len(self.items)} {newest}entries. {self.forecast().text}"

    def _repr_html_(self) -> str:
        return history_html(self)


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


@dataclass(frozen=True, repr=False)
class Tradeoff(Table):
    """How much the best attacker could conclude from everything spent so far.

    For each rate `alpha` of false accusations, `beta` bounds the share of persons that are missed.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    promised_beta: tuple[float, ...]
    budget: BudgetFigures

    def rows(self) -> list[Row]:
        triples = zip(self.alpha, self.beta, self.promised_beta, strict=True)
        return [{"alpha": a, "beta": b, "promised_beta": p} for a, b, p in triples]

    def sentence(self, alpha: float = 0.05) -> str:
        """The attacker's sentence: how often an attack succeeds at a rate of false accusations."""
        recognised = 100 * (1 - _at(self.alpha, self.beta, alpha))
        promised = 100 * (1 - _at(self.alpha, self.promised_beta, alpha))
        return (
            f"An attacker who wrongly accuses {100 * alpha:g} % of the persons who are not in the "
            f"data recognizes at most {recognised:.1f} % of those who are. A blind guess gets "
            f"{100 * alpha:g} %; a used-up budget would allow {promised:.1f} %."
        )

    def __repr__(self) -> str:
        return self.sentence()

    def _repr_html_(self) -> str:
        return tradeoff_html(self)


def _at(alpha: tuple[float, ...], beta: tuple[float, ...], rate: float) -> float:
    """A lower bound of the curve at a rate: beta falls, so the next point to the right is safe."""
    return next(b for a, b in zip(alpha, beta, strict=True) if a >= rate - 1e-12)


# Flows


def _path(dataset: str, holder: str) -> str:
    return f"/v1/datasets/{quoted(dataset)}/budgets/{quoted(holder)}"


def budget_flow(dataset: str, holder: str) -> Flow[dict[str, Any]]:
    reply = yield from send(Call("GET", _path(dataset, holder)))
    return read_figures(reply.json())


def budgets_flow(**filters: Any) -> Flow[list[dict[str, Any]]]:
    items = yield from pages("/v1/budgets", filters)
    return [read_figures(item) for item in items]


def own_budget_flow(dataset: str) -> Flow[dict[str, Any] | None]:
    """The caller's own account on a dataset, or that of a group.

    Administrators and viewers have none, and see `*` in the list; they get that one.
    """
    items = yield from pages("/v1/budgets", {"dataset": dataset})
    everybody = [item for item in items if item["holder"] == "*"]
    own = [item for item in items if not item["holder"].startswith("group:")]
    chosen = everybody or own or items
    return read_figures(chosen[0]) if chosen else None


def history_flow(budget: BudgetFigures) -> Flow[History]:
    path = f"{_path(budget.dataset, budget.holder)}/history"
    items = yield from pages(path, {"order": "newest"}, HISTORY_MAX)
    return History(tuple(items[::-1]), budget, complete=len(items) < HISTORY_MAX)


def tradeoff_flow(budget: BudgetFigures) -> Flow[Tradeoff]:
    reply = yield from send(Call("GET", f"{_path(budget.dataset, budget.holder)}/tradeoff"))
    members = reply.json()
    alpha, beta, promised = (tuple(members[n]) for n in ("alpha", "beta", "promised_beta"))
    return Tradeoff(alpha, beta, promised, budget)


def pages(
    path: str, filters: Mapping[str, Any], most: int = LIST_MAX
) -> Flow[list[dict[str, Any]]]:
    """The items of a list, about `most` at most."""
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        parameters = {**filters, "limit": PAGE, "cursor": cursor}
        reply = yield from send(Call("GET", path, parameters=parameters))
        page = reply.json()
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None or len(items) >= most:
            return items
