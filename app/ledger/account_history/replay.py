"""An account as it was after each entry of its book, by the same functions that change it live.

An entry records the loss, never the account. So the state after an entry follows from the state
before it, and a replay begins at the first entry or at a state that an earlier replay has reached.
"""

import json
from typing import Any, NamedTuple

from app.accounting import COMPOSITION_RULES
from app.accounting.rules.terms import AccountTerms
from app.ledger.account import Account
from app.ledger.balance import Balance, CellIndices
from app.ledger.chain import Entry
from app.ledger.currency_change import carried_over
from app.ledger.loss_record import loss_from_record
from app.ledger.verification.lines import terms_of, whole_number

REPLAYED_KINDS = ("charge", "void", "booked", "grant", "reconciled")


class Step(NamedTuple):
    """One entry that touched an account, and the account after it."""

    entry: Entry
    body: dict[str, Any]
    account: Account

    @property
    def charge_id(self) -> str | None:
        """The charge that this entry made or refunded."""
        return self.body["charge"] if self.entry.kind in ("charge", "void") else None


def replay_step(before: Account | None, entry: Entry, live: Account) -> Step | None:
    """The account after this entry, or None if the entry did not touch it.

    `live` names the account: its holder, and whether persons may move between its cells. Raises
    ValueError, KeyError or TypeError if the entry cannot be read or cannot follow `before`.
    """
    body = json.loads(entry.text)["body"]
    account = _after(before, entry.kind, body, live)
    return None if account is None else Step(entry, body, account)


def _after(
    before: Account | None, kind: str, body: dict[str, Any], live: Account
) -> Account | None:
    match kind:
        case "grant" if body["holder"] == live.holder:
            return _granted(before, body["after"], live)
        case "reconciled":
            for change in body["accounts"]:
                if change["holder"] == live.holder:
                    return _with(live, *recorded_state(change["after"]))
        case "charge" | "void" | "booked" if live.holder in body["accounts"]:
            if before is None:
                raise ValueError("the account was not granted before")
            cost = before.rule.read(loss_from_record(body))
            cells = None if kind == "booked" else _cells(body["cells"])
            change_balance = before.balance.given_back if kind == "void" else before.balance.charged
            return before._replace(balance=change_balance(cost, cells))
    return None


def _granted(before: Account | None, after: object, live: Account) -> Account:
    currency, terms = terms_of(after)
    balance: Balance | None = Balance(
        COMPOSITION_RULES[currency].nothing, live.balance.persons_may_move
    )
    if before is not None:
        balance = before.balance
        if before.currency != currency:
            balance = carried_over(before.balance, before.currency, currency)
    if balance is None:
        raise ValueError("the spend cannot be converted")
    return _with(live, currency, terms, balance)


def _with(live: Account, currency: str, terms: AccountTerms, balance: Balance) -> Account:
    return live._replace(currency=currency, terms=terms, balance=balance)


def _cells(listed: list[int] | None) -> CellIndices:
    return None if listed is None else tuple(map(whole_number, listed))


def recorded_state(record: dict[str, Any]) -> tuple[str, AccountTerms, Balance]:
    """Currency, terms and balance from an entry that records all of an account."""
    currency, terms = terms_of(record)
    spent = record["spent"]
    size = len(COMPOSITION_RULES[currency].nothing)
    cells = {
        whole_number(cell): tuple(map(whole_number, units)) for cell, *units in record["cells"]
    }
    common = tuple(map(whole_number, spent))
    if any(len(units) != size for units in (common, *cells.values())):
        raise ValueError("the spend has the length of another currency")
    if not isinstance(record["pairs"], bool):
        raise TypeError
    return currency, terms, Balance(common, record["pairs"], cells)
