"""Rehearse a query: the real mechanism and real noise, on rows made up from the public card.

Nothing is charged or stored, and no private row is read. The reply has the shape of an answer, with
marks that keep anybody from taking it for one. Rehearsals have a thread of their own, so they
delay no planning and no private work.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.access import Principal, Role
from app.actions.asking.engine_data import EngineData
from app.actions.asking.leased_run import LeasedRun
from app.actions.scheduling.planning_threads import PlanningThreads
from app.data.card import Card, Dataset
from app.data.sample_rows import ColumnValues, sample_rows
from app.errors import AccessError, EngineFailed, Invalid, NotFound
from app.mechanisms.release import RandomSource
from app.planning.plan import Plan, Planner, make_plan
from app.planning.preview_request import AssumedQuestion
from app.planning.size import LISTED_MAX, listed_values
from app.ports.engines import MadeUpTables
from app.ports.ledger import Catalogue

ROWS = 1_000
ROWS_MAX = 10_000
VALUES_MAX = 200_000  # over all columns: drawing them takes about a second
FAILED = "The rehearsal failed, or took too long: assume fewer rows. Nothing was charged."


@dataclass(frozen=True, slots=True)
class RehearseQuery:
    catalogue: Catalogue
    planner: Planner
    planning: PlanningThreads
    rehearsing: PlanningThreads
    tables: MadeUpTables
    noise: RandomSource
    choice: ColumnValues
    limit_seconds: float = 10.0

    async def __call__(self, principal: Principal, question: AssumedQuestion) -> dict[str, Any]:
        dataset, currencies = await self._visible(principal, question.dataset)
        if listed_values(question) > LISTED_MAX + 1:
            rule = f"at most {LISTED_MAX} candidates, edges and other values in one request"
            raise Invalid.field("", rule)
        rows = _rows(question, dataset.card)
        analyst_id = principal.analyst_id
        text = question.model_dump_json(by_alias=True, exclude={"assume"})
        make = partial(self.planner.plan, analyst_id, question, dataset, text, currencies)
        plan = await self.planning.run(analyst_id, make)
        work = partial(self._rehearsed, analyst_id, plan, dataset, currencies, rows)
        return await self.rehearsing.run(analyst_id, work)

    async def _visible(self, principal: Principal, name: str) -> tuple[Dataset, frozenset[str]]:
        """A dataset that the caller may see, and the currencies of the accounts that would pay."""
        if principal.role is Role.ANALYST:
            grant = await self.catalogue.grant(name, principal.holders)
            return grant.dataset, grant.currencies
        try:
            return await self.catalogue.dataset(name), frozenset()
        except AccessError:
            raise NotFound("There is no dataset of this name.") from None

    def _rehearsed(
        self,
        analyst_id: str,
        priced: Plan,
        dataset: Dataset,
        currencies: frozenset[str],
        rows: int,
    ) -> dict[str, Any]:
        plan, card = priced, dataset.card
        if card.rows not in (None, rows):  # some mechanisms rely on the public number of rows
            card = card.model_copy(update={"rows": rows})
            plan = make_plan(priced.question, card, currencies, dataset.version.number)
        release = plan.release
        run = LeasedRun(release.steps, self.limit_seconds)
        run.checkpoint(0)
        made_up = sample_rows(card, rows, self.choice)
        try:
            with (
                self.tables.open(_with_card(dataset, card), made_up) as (statistics, version),
                statistics.stoppable(run),
                EngineData(statistics, version, analyst_id, run) as data,
            ):
                answer = plan.answer(release.read(data), self.noise)
        except Exception:  # noqa: BLE001  # the text of a driver is for nobody
            raise EngineFailed(FAILED) from None
        return _shown(priced, plan, answer, rows)


def _with_card(dataset: Dataset, card: Card) -> Dataset:
    return dataset if card is dataset.card else replace(dataset, card=card)


def _rows(question: AssumedQuestion, card: Card) -> int:
    """Number of made-up rows. Raises Invalid if there would be too many."""
    most = max(1, min(ROWS_MAX, VALUES_MAX // len(card.columns)))
    rows = question.assumed_rows
    if rows is None:
        return min(card.rows or ROWS, most)
    if rows > most:
        raise Invalid.field("/assume/rows", f"at most {most} in a rehearsal of this dataset")
    return rows


def _shown(priced: Plan, plan: Plan, answer: dict[str, Any], rows: int) -> dict[str, Any]:
    """The reply: an answer's members, without anything that a stored answer could be found by."""
    status = answer.get("status", "answered")
    more: dict[str, Any] = {name: answer[name] for name in ("bound", "padding") if name in answer}
    return {
        "id": None,
        "status": "rehearsed",
        "made_up": True,
        "rows": rows,
        "outcome": status,
        "value": answer["value"],
        "mechanism": plan.mechanism,
        "interval": answer["interval"],
        **more,
        "charged": {
            "epsilon": 0.0,
            "delta": 0.0,
            "cells": priced.cells_shown,
            "accounts": [],
            "price": priced.loss.to_json(),
        },
        "theorem": priced.release.theorem,
        "receipt": None,
    }
