"""Verify a ledger from its entries alone: every chain, and every total recomputed.

Also checked: that every book the system's book tells of is there, that no charge passed the limit
granted before it, and that whatever was given back had been paid. What is outside the chains
(stored answers, the cards in use) is not covered; cards and charges are in their entries.

The same lines come from the store and from an export, so that anyone who holds an export can do
this without us. An export is NDJSON: what it covers, entries in the order of their chains, then the
end of each book and each account as the ledger itself stated them at the same instant.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.losses import generic_loss
from app.accounting.precise import INFINITE
from app.accounting.spending import Spend
from app.accounting.terms import Terms
from app.ledger.account import EVERYBODY, Account, account_id
from app.ledger.balance import Balance, Cells
from app.ledger.chain import FIRST_PREVIOUS, Book, Entry, canonical, link
from app.ledger.currency_change import carried_over
from app.ledger.loss_record import loss_from_record


@dataclass(frozen=True, slots=True)
class Scope:
    """The first line: the whole ledger, or one book of it."""

    book: str | None


Line = Scope | Entry | Book | Account
FINDINGS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that disagrees, and where."""

    book: str
    seq: int | None
    account: str | None
    problem: str


@dataclass(slots=True)
class Report:
    entries: int = 0
    books: int = 0
    accounts: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.findings


def verify(lines: Iterable[Line]) -> Report:
    checker = _Checker()
    for line in lines:
        match line:
            case Scope():
                checker.whole = line.book is None
            case Entry():
                checker.entry(line)
            case Book():
                checker.book(line)
            case Account():
                checker.account(line)
    return checker.finish()


@dataclass(slots=True)
class _Recomputed:
    """An account as its entries make it."""

    currency: str
    terms: Terms
    balance: Balance

    @property
    def passes(self) -> bool:
        rule = COMPOSITION_RULES[self.currency]
        return not all(rule.admits(total, self.terms) for total in self.balance.totals())


class _Checker:
    def __init__(self) -> None:
        self.report = Report()
        self.whole = False
        self._ends: dict[str, Book] = {}
        self._stated: set[str] = set()
        self._opened: set[str] = set()
        self._accounts: dict[str, _Recomputed] = {}
        self._pairs: dict[str, bool] = {}  # by book: may a person move from cell to cell
        # What a charge cost whom, hashed: the promise, and all that was told; None if voided.
        self._paid: dict[str, tuple[int, int] | None] = {}
        self._lost: set[str] = set()  # books to which something was charged or booked
        self._released: set[str] = set()  # books whose data may have another book by now

    def _find(
        self, book: str, problem: str, *, seq: int | None = None, account: str | None = None
    ) -> None:
        if len(self.report.findings) < FINDINGS_MAX:
            self.report.findings.append(Finding(book, seq, account, problem))

    def entry(self, entry: Entry) -> None:
        self.report.entries += 1
        end = self._ends.setdefault(entry.book_id, Book(entry.book_id, 0, FIRST_PREVIOUS, 0))
        if entry.seq != end.seq + 1:
            self._find(entry.book_id, f"entry {end.seq + 1} should stand here", seq=entry.seq)
        if entry.hash != link(end.head, entry.text):
            self._find(entry.book_id, "the hash does not follow from the entry", seq=entry.seq)
        if entry.at < end.last_at:
            self._find(entry.book_id, "the time goes back", seq=entry.seq)
        end.seq, end.head, end.last_at = entry.seq, entry.hash, entry.at
        try:
            said = json.loads(entry.text)
            columns = (said["book"], said["seq"], said["at"], said["kind"])
            if columns != (entry.book_id, entry.seq, entry.at, entry.kind):
                self._find(entry.book_id, "the columns disagree with the text", seq=entry.seq)
            self._add_up(entry, said["body"])
        except (ValueError, KeyError, TypeError, RecursionError):
            self._find(entry.book_id, "the text cannot be read", seq=entry.seq)

    def _add_up(self, entry: Entry, body: dict[str, object]) -> None:
        match entry.kind, body:
            case "charge" | "void", {
                "charge": str(charge),
                "accounts": list(holders),
            }:
                listed = body.get("cells")  # the first ledgers had none
                if not isinstance(listed, list | None):
                    raise ValueError
                loss = loss_from_record(body)
                cells = None if listed is None else tuple(map(_whole, listed))
                promise = hash((tuple(holders), loss.epsilon, loss.delta, cells))
                cost = promise, hash(loss)
                if entry.kind == "void":
                    if not _gives_back(self._paid.get(charge), cost, loss):
                        problem = "what is given back was never paid"
                        self._find(entry.book_id, problem, seq=entry.seq)
                    self._paid[charge] = None
                    self._move(entry, holders, loss, cells)
                    return
                if charge in self._paid:
                    self._find(entry.book_id, "the charge was charged before", seq=entry.seq)
                if EVERYBODY not in holders or len(set(holders)) < 2:
                    self._find(entry.book_id, "it does not charge everybody", seq=entry.seq)
                self._paid[charge] = cost
                self._move(entry, holders, loss, cells)
            case "booked", {"accounts": list(holders)}:
                if EVERYBODY not in holders:
                    self._find(entry.book_id, "it does not charge everybody", seq=entry.seq)
                self._move(entry, holders, loss_from_record(body), None)
            case "grant", {"holder": str(holder), "before": before, "after": after}:
                account = account_id(entry.book_id, holder)
                known = self._accounts.get(account)
                if (known and (known.currency, known.terms)) != (before and _terms(before)):
                    self._find(entry.book_id, "it changes a limit that was not", seq=entry.seq)
                currency, terms = _terms(after)
                pairs = self._pairs.get(entry.book_id, False)
                balance: Balance | None = Balance(COMPOSITION_RULES[currency].nothing, pairs)
                if known is not None and known.currency == currency:
                    balance = known.balance
                elif known is not None:
                    balance = carried_over(known.balance, known.currency, currency)
                if balance is None:
                    self._find(entry.book_id, "it forgets what was spent", seq=entry.seq)
                    balance = Balance(COMPOSITION_RULES[currency].nothing, pairs)
                self._accounts[account] = _Recomputed(currency, terms, balance)
            case "dataset_registered", {"after": {"card": {"neighbours": neighbours}}}:
                self._pairs[entry.book_id] = neighbours == "replace_one"
            case "dataset_withdrawn", {"data_released": bool(released)}:
                if entry.book_id in self._lost:
                    problem = "it withdraws data for which something was charged"
                    self._find(entry.book_id, problem, seq=entry.seq)
                if released:
                    self._released.add(entry.book_id)
            case "book_opened", {"book": str(book)}:
                self._opened.add(book)
            case "charge" | "void" | "booked" | "grant" | "book_opened" | "dataset_withdrawn", _:
                raise ValueError

    def _move(self, entry: Entry, holders: list[str], loss: Loss, cells: Cells) -> None:
        self._lost.add(entry.book_id)
        if entry.book_id in self._released:
            self._find(entry.book_id, "it charges data that were withdrawn", seq=entry.seq)
        for holder in holders:
            account = self._accounts.get(account_id(entry.book_id, holder))
            if account is None:
                problem = "it charges an account that was never granted"
                self._find(entry.book_id, problem, seq=entry.seq, account=str(holder))
                continue
            rule = COMPOSITION_RULES[account.currency]
            cost = rule.read(loss)
            if entry.kind == "void":
                account.balance = account.balance.given_back(cost, cells)
                continue
            account.balance = account.balance.charged(cost, cells)
            if not rule.can_pay(cost):
                problem = "it cannot be counted in the account's currency"
                self._find(entry.book_id, problem, seq=entry.seq, account=str(holder))
            if entry.kind == "charge" and account.passes:
                self._find(entry.book_id, "it passes the limit", seq=entry.seq, account=str(holder))

    def book(self, book: Book) -> None:
        self.report.books += 1
        end = self._ends.get(book.id, Book(book.id, 0, FIRST_PREVIOUS, 0))
        self._stated.add(book.id)
        if (end.seq, end.head) != (book.seq, book.head):
            self._find(book.id, "the chain does not end where the book says", seq=book.seq)

    def account(self, account: Account) -> None:
        self.report.accounts += 1
        found = self._accounts.pop(account.id, None)
        stated = account.currency, account.terms
        if found is None or (found.currency, found.terms) != stated:
            self._find(
                account.book_id, "the limit is not the last one granted", account=account.holder
            )
        if found is not None and found.balance != account.balance:
            self._find(
                account.book_id,
                "what is spent is not the sum of the entries",
                account=account.holder,
            )

    def finish(self) -> Report:
        for missing in sorted(self._accounts):
            book, _, holder = missing.partition("/")
            self._find(book, "entries speak of an account that is not there", account=holder)
        expected = set(self._ends) | (self._opened if self.whole else set())
        for book in sorted(expected - self._stated):
            self._find(book, "the book's own end is missing")
        return self.report


def _gives_back(paid: tuple[int, int] | None, cost: tuple[int, int], loss: Loss) -> bool:
    """The same loss; or, of accounts carried into another currency since, one of the same promise
    and no larger than what any release of that promise was carried over as."""
    if paid is None or paid[0] != cost[0]:
        return False
    if paid[1] == cost[1]:
        return True
    most = generic_loss(loss.epsilon, loss.delta)
    told = (loss.pure, loss.failure, loss.rho, loss.mu_squared, *loss.curve)
    limit = (most.pure, most.failure, most.rho, most.mu_squared, *most.curve)
    return all(
        units <= bound or units == INFINITE for units, bound in zip(told, limit, strict=True)
    )


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a whole number")
    return value


def _terms(said: object) -> tuple[str, Terms]:
    match said:
        case {"currency": str(currency), "terms": dict(terms)}:
            if currency not in COMPOSITION_RULES:
                raise ValueError("an unknown currency")
            read = Terms.from_text(canonical(terms))
            told = (read.epsilon, read.delta, read.conversion, *read.limits)
            if not all(type(units) is int for units in told):
                raise ValueError("units are whole numbers")
            if len(read.limits) != len(COMPOSITION_RULES[currency].nothing):
                raise ValueError("limits of another currency")
            return currency, read
        # As the first ledgers wrote it, who knew only basic composition and no cells.
        case {"currency": str(currency), "epsilon_limit": int(epsilon), "delta_limit": int(delta)}:
            epsilon = min(epsilon, INFINITE - 1)  # as migration 0002 reads it
            return currency, Terms(epsilon, delta, (epsilon, delta))
        case _:
            raise ValueError


# Export lines


def to_line(item: Line) -> str:
    match item:
        case Scope():
            return canonical({"type": "ledger", "book": item.book})
        case Entry():
            return canonical({"type": "entry", "text": item.text, "hash": item.hash})
        case Book():
            return canonical({"type": "book", "book": item.id, "seq": item.seq, "head": item.head})
        case Account():
            return canonical(
                {
                    "type": "account",
                    "book": item.book_id,
                    "holder": item.holder,
                    "currency": item.currency,
                    "terms": json.loads(item.terms.text()),
                    "pairs": item.balance.pairs,
                    "spent": item.balance.common,
                    "cells": [[cell, *spend] for cell, spend in sorted(item.balance.cells.items())],
                }
            )


def from_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Read an export; raises ValueError on a line that is none."""
    for number, text in enumerate(lines, 1):
        try:
            yield _from_line(json.loads(text))
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ValueError(f"line {number} is not a line of an export") from None


def _from_line(line: dict[str, object]) -> Line:
    match line:
        case {"type": "ledger", "book": None | str() as only}:
            return Scope(only)
        case {"type": "entry", "text": str(text), "hash": str(hashed)}:
            text.encode()
            return _entry(json.loads(text), text, hashed)
        case {"type": "book", "book": str(book), "seq": int(seq), "head": str(head)}:
            return Book(book, seq, head, 0)
        case {
            "type": "account",
            "book": str(book),
            "holder": str(holder),
            "pairs": bool(pairs),
            "spent": list(spent),
            "cells": list(listed),
        }:
            currency, terms = _terms(line)
            cells = {_whole(cell): _spend(currency, spend) for cell, *spend in listed}
            balance = Balance(_spend(currency, spent), pairs, cells)
            return Account(book, holder, holder, currency, terms, balance, 0)
        case _:
            raise ValueError


def _entry(said: object, text: str, hashed: str) -> Entry:
    match said:
        case {"book": str(book), "seq": int(seq), "at": int(at), "kind": str(kind)}:
            return Entry(book, seq, at, kind, text, hashed)
        case _:
            raise ValueError


def _spend(currency: str, units: list[object]) -> Spend:
    spend = tuple(map(_whole, units))
    if len(spend) != len(COMPOSITION_RULES[currency].nothing):
        raise ValueError("a spend of another currency")
    return spend
