"""Price queries without running them: reads no data, charges nothing, and reserves nothing."""

from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from app.access import Principal
from app.accounting.units import PICO, cost_units, wire
from app.actions.asking.paying_accounts import Payer, Paying, PayingAccounts
from app.actions.scheduling.planning_threads import PlanningThreads
from app.data.card import Dataset
from app.errors import AppError, Invalid, LedgerError
from app.ledger.account import Account
from app.ledger.balance import PARALLEL
from app.ledger.orders import reuse_key
from app.planning.error_in_words import shown_error
from app.planning.mechanism_choice import Option, options
from app.planning.plan import Plan, Planner, make_plan
from app.planning.preview_request import AssumedQuestion
from app.planning.size import LISTED_MAX, listed_values
from app.ports.ledger import Ledger

CALLER = Payer()


@dataclass(slots=True)
class _Sequence:
    """Accounts after the previous queries, and the answers that would exist by then."""

    accounts: dict[str, dict[str, Account]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def pay(self, book: str, plan: Plan, key: str) -> LedgerError | None:
        """Charge the accounts of a book, and expect the answer; or return the refusal."""
        try:
            self.accounts[book] = {
                holder: account.admit(plan.loss, plan.charged_cells.cells)
                for holder, account in self.accounts[book].items()
            }
        except LedgerError as error:
            return error
        self.answered.add(key)
        return None


@dataclass(slots=True)
class PreviewQueries:
    ledger: Ledger
    planner: Planner
    planning: PlanningThreads
    paying: PayingAccounts

    async def __call__(
        self,
        principal: Principal,
        questions: list[AssumedQuestion],
        *,
        at: str | None = None,
        payer: Payer = CALLER,
        epsilons: tuple[Decimal, ...] = (),
    ) -> list[dict[str, Any]]:
        """Each query as it would be decided after the ones before it were paid.

        `at`: pointer of the list that the queries come from; None for a single query.
        `epsilons`: a curve for a single query, each epsilon by itself."""
        if sum(map(listed_values, questions)) * (1 + len(epsilons)) > LISTED_MAX + 1:
            rule = f"at most {LISTED_MAX} candidates, edges and other values in one request"
            raise Invalid.field("", rule)
        sequence = _Sequence()
        previews = []
        for index, question in enumerate(questions):
            try:
                paying = await self.paying(principal, question.dataset, payer)
                preview = await self._preview(principal, question, paying, payer, sequence)
                if epsilons:
                    preview["curve"] = await self._curve(principal, question, paying, epsilons)
            except Invalid as error:
                raise error if at is None else _moved(error, at, index) from None
            previews.append(preview)
        return previews

    async def _preview(
        self,
        principal: Principal,
        question: AssumedQuestion,
        paying: Paying,
        payer: Payer,
        sequence: _Sequence,
    ) -> dict[str, Any]:
        dataset = paying.dataset
        book = dataset.book_id
        accounts = sequence.accounts.setdefault(book, paying.accounts)
        text = question.model_dump_json(by_alias=True, exclude={"assume"})
        make = partial(
            self._planned, principal.analyst_id, question, dataset, text, paying.currencies
        )
        plan, alternatives = await self.planning.run(principal.analyst_id, make)
        cells = plan.charged_cells.cells
        first = next(iter(accounts.values()))
        largest = min(account.largest_epsilon(cells) for account in accounts.values())
        left = min(account.repeats_left(plan.loss, cells) for account in accounts.values())
        key = reuse_key(principal.analyst_id, dataset.version.id, plan.digest)
        reused = not question.fresh and (
            key in sequence.answered or (paying.by_caller and await self.ledger.answered(key))
        )
        refusal = None if reused else sequence.pay(book, plan, key)
        after = sequence.accounts[book][first.holder].balances()["remaining"]
        theorems = dict.fromkeys(account.rule.theorem for account in accounts.values())
        if cells is not None:
            theorems[PARALLEL] = None
        return {
            "dataset": dataset.name,
            "kind": question.query.kind,
            "price": plan.loss.to_json(),
            "account_price": first.price(plan.loss),
            "mechanism": plan.mechanism,
            "alternatives": [_alternative(option, first, question) for option in alternatives],
            "theorem": "; ".join([plan.release.theorem, *theorems]),
            "expected_error": shown_error(plan.release, question, question.assumed_rows),
            "groups": plan.release.groups,
            "cells": plan.cells_shown,
            "composition": plan.charged_cells.why,
            "reused": reused,
            "fits": reused or (refusal is None and not dataset.closed),
            "refusal": refusal_of(refusal, closed=dataset.closed and not reused),
            "remaining_after": None if paying.first_hidden else after,
            **wire("largest_epsilon", largest, PICO),
            **({} if payer.is_caller else {"questions_left": left}),
        }

    async def _curve(
        self,
        principal: Principal,
        question: AssumedQuestion,
        paying: Paying,
        epsilons: tuple[Decimal, ...],
    ) -> list[dict[str, Any]]:
        """The question at each epsilon, against the accounts as they stand.

        Every plan waits for its own turn, so that a long curve delays nobody else."""
        if question.privacy.epsilon is None:
            raise Invalid.field("/epsilons", "allowed only if privacy has an epsilon")
        curve = []
        for index, epsilon in enumerate(epsilons):
            privacy = question.privacy.model_copy(update={"epsilon": epsilon})
            at_epsilon = question.model_copy(update={"privacy": privacy})
            make = partial(_point, at_epsilon, paying, epsilon)
            try:
                curve.append(await self.planning.run(principal.analyst_id, make))
            except Invalid as error:
                rule = error.fields[0].rule if error.fields else error.detail
                raise Invalid.field(f"/epsilons/{index}", rule) from None
        return curve

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


def _point(question: AssumedQuestion, paying: Paying, epsilon: Decimal) -> dict[str, Any]:
    dataset = paying.dataset
    plan = make_plan(question, dataset.card, paying.currencies, dataset.version.number)
    return {
        **wire("epsilon", cost_units(epsilon, PICO), PICO),
        "price": plan.loss.to_json(),
        "expected_error": shown_error(plan.release, question, question.assumed_rows),
        "fits": not dataset.closed and _admitted(paying.accounts, plan),
    }


def _admitted(accounts: dict[str, Account], plan: Plan) -> bool:
    try:
        for account in accounts.values():
            account.admit(plan.loss, plan.charged_cells.cells)
    except LedgerError:
        return False
    return True


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


def _moved(error: Invalid, at: str, index: int) -> Invalid:
    """The error of one query of a list; `as` and `account` belong to the whole list."""
    if any(item.pointer.startswith(("/as", "/account")) for item in error.fields):
        return error
    moved = [type(item)(f"{at}/{index}{item.pointer}", item.rule) for item in error.fields]
    return type(error)(f"Question {index}: {error.detail}", *moved)
