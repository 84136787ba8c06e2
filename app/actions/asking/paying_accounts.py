"""Accounts that a preview prices against: the caller's own, a holder's, or a made-up one."""

import asyncio
from dataclasses import dataclass

from app.access import GROUP, Principal, Role, holder_of, holders_of
from app.accounting import COMPOSITION_RULES
from app.accounting.rules.terms import GrantTerms
from app.data.card import Dataset
from app.errors import AccessError, FieldError, Invalid, NotFound
from app.ledger.account import EVERYBODY, Account
from app.ledger.balance import Balance
from app.ports.ledger import Catalogue, Ledger
from app.ports.registry import Analysts

MADE_UP = "a made-up account"
NEEDED = "required for an admin or viewer: the holder of a budget, or send a made-up account"
OWN = "must be your own name, a group of yours, or *"
NOT_BOTH = "must be absent: as names the accounts already"


@dataclass(frozen=True, slots=True)
class Payer:
    """The holder whose accounts would pay, or the terms of a made-up account; neither for the
    caller's own accounts."""

    holder: str | None = None
    currency: str | None = None
    terms: GrantTerms | None = None

    @property
    def is_caller(self) -> bool:
        return self.holder is None and self.terms is None


@dataclass(frozen=True, slots=True)
class Paying:
    """A dataset and the accounts that would pay, in the order of a charge."""

    dataset: Dataset
    accounts: dict[str, Account]
    currencies: frozenset[str]
    by_caller: bool  # True if the caller could ask with these accounts: stored answers are reused
    first_hidden: bool = False  # True if the caller may not see the balance of the first account


@dataclass(frozen=True, slots=True)
class PayingAccounts:
    ledger: Ledger
    catalogue: Catalogue
    people: Analysts

    async def __call__(self, principal: Principal, name: str, payer: Payer) -> Paying:
        """Find the accounts. Raises NoGrant, NotFound, or Invalid with the field."""
        if payer.holder is not None and payer.terms is not None:
            raise Invalid.field("/account", NOT_BOTH)
        if principal.role is Role.ANALYST:
            grant = await self.catalogue.grant(name, principal.holders)  # first of all
            dataset = grant.dataset
            if payer.is_caller:
                accounts = await self._existing(dataset, principal.holders)
                return Paying(dataset, accounts, grant.currencies, by_caller=True)
        else:
            if payer.is_caller:
                raise Invalid.field("/as", NEEDED)
            try:
                dataset = await self.catalogue.dataset(name)
            except AccessError:
                raise NotFound("There is no dataset of this name.") from None
        if payer.terms is not None:
            assert payer.currency is not None
            account = made_up(dataset, payer.currency, payer.terms)
            accounts = {account.holder: account}
            return Paying(dataset, accounts, frozenset({account.currency}), by_caller=False)
        assert payer.holder is not None
        return await self._as_holder(principal, dataset, payer.holder)

    async def _as_holder(self, principal: Principal, dataset: Dataset, shown: str) -> Paying:
        holder = holder_of(shown)
        by_caller = principal.role is Role.ANALYST and holder == principal.holders[0]
        if principal.role is Role.ANALYST and holder not in (*principal.holders, EVERYBODY):
            raise Invalid.field("/as", OWN)
        if by_caller:
            holders = principal.holders
        elif holder.startswith(GROUP) or holder == EVERYBODY:
            holders = (holder,)
        else:
            analyst = await asyncio.to_thread(self.people.find, shown)
            holders = holders_of(analyst.name, analyst.groups)
        accounts = await self._existing(dataset, holders)
        if not set(holders) & set(accounts) or EVERYBODY not in accounts:
            raise NotFound("There is no such budget: grant it first, or send a made-up account.")
        currencies = frozenset(account.currency for account in accounts.values())
        hidden = principal.role is Role.ANALYST and holder == EVERYBODY
        return Paying(dataset, accounts, currencies, by_caller, first_hidden=hidden)

    async def _existing(self, dataset: Dataset, holders: tuple[str, ...]) -> dict[str, Account]:
        """The accounts that a charge would touch, in its order: the first refusal counts."""
        ordered = list(dict.fromkeys([*holders, EVERYBODY]))
        by_holder = await self.ledger.accounts(dataset.book_id, ordered)
        return {holder: by_holder[holder] for holder in ordered if holder in by_holder}


def made_up(dataset: Dataset, currency: str, terms: GrantTerms) -> Account:
    """An account with these terms, as a grant would make it, and nothing spent."""
    rule = COMPOSITION_RULES[currency]
    try:
        frozen = rule.freeze(terms)
    except Invalid as error:
        moved = [FieldError(f"/account{item.pointer}", item.rule) for item in error.fields]
        raise Invalid(error.detail, *moved) from None
    unspent = Balance(rule.nothing, dataset.card.neighbours == "replace_one")
    return Account(dataset.book_id, MADE_UP, MADE_UP, currency, frozen, unspent, 1)
