"""A ledger of one book in memory, with accounts of any currency, and ways to tamper with it."""

import json
from collections.abc import Mapping

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.errors import BudgetExhausted
from app.ledger.account import EVERYBODY, Account
from app.ledger.balance import Balance, CellIndices
from app.ledger.chain import FIRST_PREVIOUS, Book, Entry, link
from app.ledger.loss_record import loss_record
from app.ledger.verification.lines import LedgerLine, to_line
from app.ledger.verification.verify import verify

HOLDERS = ["ann", "bob", EVERYBODY]
Grants = Mapping[str, tuple[str, GrantTerms]]


def account(book: str, holder: str, limit: int, delta: int = 0, spent: int = 0) -> Account:
    """A pure account, with its limit in units."""
    terms = AccountTerms(limit, delta, (limit, delta))
    return Account(book, holder, holder, "pure", terms, Balance((spent, 0)), 1)


def granted(
    book: str, holder: str, currency: str, wish: GrantTerms, *, pairs: bool = False
) -> Account:
    rule = COMPOSITION_RULES[currency]
    balance = Balance(rule.nothing, pairs)
    return Account(book, holder, holder, currency, rule.freeze(wish), balance, 1)


def with_spent(account: Account, units: int) -> Account:
    return account._replace(balance=Balance((units, 0)))


def said(account: Account) -> dict[str, object]:
    """The description of an account in a grant."""
    return {"currency": account.currency, "terms": json.loads(account.terms.text())}


def grant(holder: str, limit: int) -> dict[str, object]:
    """The body of a first grant of pure epsilon."""
    after = said(account("b_1", holder, limit))
    return {"dataset": "people", "holder": holder, "before": None, "after": after}


class Made:
    """A ledger of one book, kept in memory like the store does; accounts are pure by default."""

    def __init__(
        self,
        book_id: str = "b_1",
        limit: int = 100,
        *,
        grants: Grants | None = None,
        neighbours: str = "add_remove",
    ) -> None:
        self.book = Book(book_id, 0, FIRST_PREVIOUS, 0)
        self.entries: list[Entry] = []
        self.last = ""
        pairs = neighbours == "replace_one"
        if grants is not None:
            self.append("dataset_registered", {"after": {"card": {"neighbours": neighbours}}})
        made = (
            [account(book_id, holder, limit) for holder in HOLDERS]
            if grants is None
            else [granted(book_id, h, *given, pairs=pairs) for h, given in grants.items()]
        )
        self.accounts = {each.holder: each for each in made}
        for each in made:
            body = {"dataset": "people", "holder": each.holder, "before": None, "after": said(each)}
            self.append("grant", body)

    def append(self, kind: str, body: Mapping[str, object], at: int | None = None) -> None:
        moment = 1000 * (self.book.seq + 1) if at is None else at
        self.entries.append(self.book.append(kind=kind, actor="x", at=moment, body=dict(body)))

    def charge(self, holder: str | list[str], cost: int | Loss, cells: CellIndices = None) -> bool:
        try:
            paid = [self.accounts[h].admit(_loss(cost), cells) for h in _all(holder)]
        except BudgetExhausted:
            return False
        self.accounts.update({a.holder: a for a in paid})
        self.last = f"q_{self.book.id}_{self.book.seq + 1}"
        self.append("charge", self.moved(holder, cost, cells))
        return True

    def moved(
        self, holder: str | list[str], cost: int | Loss, cells: CellIndices = None
    ) -> dict[str, object]:
        holders = _all(holder)
        body: dict[str, object] = {"charge": self.last, "accounts": holders, "cells": cells}
        body |= {"version": "v_1", "row": "a digest"}
        if isinstance(cost, int):
            return body | {"epsilon": cost, "delta": 0}
        return body | dict(loss_record(cost, frozenset(self.accounts[h].currency for h in holders)))

    def void(self, holder: str | list[str], cost: int | Loss, cells: CellIndices = None) -> None:
        for each in _all(holder):
            self.accounts[each] = self.accounts[each].give_back(_loss(cost), cells)
        self.append("void", self.moved(holder, cost, cells))

    def booked(self, loss: Loss) -> None:
        everybody = self.accounts[EVERYBODY].book([loss])
        self.accounts[EVERYBODY] = everybody
        record = loss_record(loss, frozenset([everybody.currency]))
        self.append("booked", {"dataset": "people", "accounts": [EVERYBODY], **record})

    def lines(self) -> list[LedgerLine]:
        return [*self.entries, self.book, *self.accounts.values()]


def _loss(cost: int | Loss) -> Loss:
    return Loss(cost) if isinstance(cost, int) else cost


def _all(holder: str | list[str]) -> list[str]:
    return [*([holder] if isinstance(holder, str) else holder), EVERYBODY]


# Reading and tampering


def problems(lines: list[LedgerLine]) -> set[str]:
    return {finding.problem for finding in verify(lines).findings}


def exported(lines: list[LedgerLine]) -> list[str]:
    return [to_line(line) for line in lines]


def edited(entry: Entry, old: str, new: str) -> Entry:
    assert old in entry.text, entry.text
    return entry._replace(text=entry.text.replace(old, new))


def rehashed(lines: list[LedgerLine]) -> list[LedgerLine]:
    """Recompute every hash from the edit on, and the book's end, like a capable attacker."""
    head = FIRST_PREVIOUS
    result: list[LedgerLine] = []
    for line in lines:
        match line:
            case Entry():
                head = link(head, line.text)
                result.append(line._replace(hash=head))
            case Book():
                result.append(Book(line.id, line.seq, head, line.last_at))
            case Account():
                result.append(line)
    return result
