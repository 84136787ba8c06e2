"""Price a stream without opening it: reads no data, charges nothing, and reserves nothing."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from app.access import Principal, Role
from app.actions.asking.preview_queries import refusal_of
from app.actions.scheduling.planning_threads import PlanningThreads
from app.errors import AppError, LedgerError
from app.ledger.account import EVERYBODY
from app.planning.stream_request import Opening, StreamPlanner
from app.ports.ledger import Catalogue, Ledger


@dataclass(frozen=True, slots=True)
class PreviewStream:
    ledger: Ledger
    catalogue: Catalogue
    planner: StreamPlanner
    planning: PlanningThreads

    async def __call__(self, principal: Principal, opening: Opening) -> dict[str, Any]:
        principal.must_be(Role.ANALYST)
        grant = await self.catalogue.grant(opening.dataset, principal.holders)
        dataset = grant.dataset
        holders = [*principal.holders, EVERYBODY]
        by_holder = await self.ledger.accounts(dataset.book_id, holders)
        accounts = [by_holder[each] for each in holders if each in by_holder]
        make = partial(
            self.planner.plan, principal.analyst_id, opening, dataset, "", grant.currencies
        )
        plan = await self.planning.run(principal.analyst_id, make)
        refusal: AppError | None = None
        try:
            for account in accounts:
                account.admit(plan.loss, plan.charged_cells.cells)
        except LedgerError as error:
            refusal = error
        return {
            "dataset": dataset.name,
            "stream": opening.stream.model_dump(mode="json", by_alias=True, exclude_none=True),
            "price": plan.loss.to_json(),
            "account_price": accounts[0].price(plan.loss),
            "mechanism": plan.mechanism,
            "expected_error": plan.expected_error,
            "theorem": plan.theorem,
            "cells": plan.cells_shown,
            "fits": refusal is None and not dataset.closed,
            "refusal": refusal_of(refusal, closed=dataset.closed),
        }
