"""Price queries without running them: reads no data, charges nothing, and reserves nothing."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.access import Principal, Role
from app.accounting.units import PICO, wire
from app.actions.scheduling.planning_threads import PlanningThreads
from app.data.card import Dataset
from app.errors import AppError, Invalid, LedgerError
from app.ledger.account import EVERYBODY, Account
from app.ledger.balance import PARALLEL
from app.ledger.orders import reuse_key
from app.planning.error_in_words import shown_error
from app.planning.mechanism_choice import Option, options
from app.planning.plan import Plan, Planner
from app.planning.preview_request import AssumedQuestion
from app.planning.size import LISTED_MAX, listed_values
from app.ports.ledger import Catalogue, Ledger


@dataclass(slots=True)
class _Sequence:
    """Accounts after the previous queries, and the answers that would exist by then."""

    accounts: dict[str, dict[str, Account]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)


@dataclass(slots=True)
class PreviewQueries:
    ledger: Ledger
    catalogue: Catalogue
    planner: Planner
    planning: PlanningThreads

    async def __call__(
        self, principal: Principal, questions: list[AssumedQuestion], *, listed: bool
    ) -> list[dict[str, Any]]:
        """Each query as it would be decided after the ones before it were paid."""
        principal.must_be(Role.ANALYST)
        if sum(map(listed_values, questions)) > LISTED_MAX + 1:
            rule = f"at most {LISTED_MAX} candidates, edges and other values in one request"
            raise Invalid.field("", rule)
        sequence = _Sequence()
        previews = []
        for index, question in enumerate(questions):
            try:
                previews.append(await self._preview(principal, question, sequence))
            except Invalid as error:
                raise _at_index(error, index) if listed else error from None
        return previews

    async def _preview(
        self, principal: Principal, question: AssumedQuestion, sequence: _Sequence
    ) -> dict[str, Any]:
        grant = await self.catalogue.grant(question.dataset, principal.holders)
        dataset = grant.dataset
        book = dataset.book_id
        accounts = await self._accounts(principal, book, sequence)
        text = question.model_dump_json(by_alias=True, exclude={"assume"})
        make = partial(
            self._planned, principal.analyst_id, question, dataset, text, grant.currencies
        )
        plan, alternatives = await self.planning.run(principal.analyst_id, make)
        cells = plan.pinning.cells
        own = [accounts[holder] for holder in principal.holders if holder in accounts]
        largest = min(account.largest_epsilon(cells) for account in accounts.values())
        key = reuse_key(principal.analyst_id, dataset.version.id, plan.digest)
        reused = not question.fresh and (
            key in sequence.answered or await self.ledger.answered(key)
        )
        refusal: AppError | None = None
        if not reused:
            try:
                sequence.accounts[book] = {
                    holder: account.admit(plan.loss, cells) for holder, account in accounts.items()
                }
                sequence.answered.add(key)
            except LedgerError as error:
                refusal = error
        after = sequence.accounts[book][own[0].holder]
        theorems = dict.fromkeys(account.rule.theorem for account in accounts.values())
        if cells is not None:
            theorems[PARALLEL] = None
        return {
            "dataset": dataset.name,
            "kind": question.query.kind,
            "price": plan.loss.to_json(),
            "account_price": own[0].price(plan.loss),
            "mechanism": plan.mechanism,
            "alternatives": [_alternative(option, own[0], question) for option in alternatives],
            "theorem": "; ".join([plan.release.theorem, *theorems]),
            "expected_error": shown_error(plan.release, question, question.assumed_rows),
            "groups": plan.release.groups,
            "cells": plan.cells_shown,
            "composition": plan.pinning.why,
            "reused": reused,
            "fits": reused or (refusal is None and not dataset.closed),
            "refusal": refusal_of(refusal, closed=dataset.closed and not reused),
            "remaining_after": after.balances()["remaining"],
            **wire("largest_epsilon", largest, PICO),
        }

    async def _accounts(
        self, principal: Principal, book: str, sequence: _Sequence
    ) -> dict[str, Account]:
        """The accounts that a charge would touch, as the earlier previews of the list left them."""
        if book not in sequence.accounts:
            holders = [*principal.holders, EVERYBODY]
            by_holder = await self.ledger.accounts(book, holders)
            # In the order of a charge: the refusal names the first account that refuses.
            sequence.accounts[book] = {
                holder: by_holder[holder] for holder in holders if holder in by_holder
            }
        return sequence.accounts[book]

    def _planned(
        self,
        analyst_id: str,
        question: AssumedQuestion,
        dataset: Dataset,
        text: str,
        currencies: frozenset[str],
    ) -> tuple[Plan, list[Option]]:
        """Plan in a thread, because a large workload takes a while."""
        plan = self.planner.plan(analyst_id, question, dataset, text, currencies)
        return plan, options(question, dataset.card, currencies, include_named=True)


def _alternative(option: Option, account: Account, question: AssumedQuestion) -> dict[str, Any]:
    release = option.release
    return {
        "kind": option.kind,
        "price": release.loss.to_json(),
        "account_price": account.price(release.loss),
        "mechanism": release.describe(),
        "expected_error": shown_error(release, question, question.assumed_rows),
        "payable": option.payable,
    }


def refusal_of(error: AppError | None, *, closed: bool) -> dict[str, Any] | None:
    if error is not None:
        return {"detail": error.detail, **error.members}
    return {"detail": "This dataset is closed."} if closed else None


def _at_index(error: Invalid, index: int) -> Invalid:
    moved = [type(each)(f"/{index}{each.pointer}", each.rule) for each in error.fields]
    return type(error)(f"Question {index}: {error.detail}", *moved)
