"""Verify a ledger: check every chain, recompute every total, compare every row with its entry.

Also checked: every book that the system's book lists exists, no charge exceeded the limit granted
before it, and every refund was paid before. `rows.py` compares rows, `stamps.py` checks the stamps
of stored answers.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.losses import generic_loss
from app.accounting.precise import INFINITE
from app.accounting.rules.terms import AccountTerms
from app.ledger.account import EVERYBODY, Account, account_id
from app.ledger.account_history.replay import recorded_state
from app.ledger.balance import Balance, CellIndices
from app.ledger.chain import FIRST_PREVIOUS, Book, Entry, link
from app.ledger.currency_change import carried_over
from app.ledger.loss_record import loss_from_record
from app.ledger.verification.lines import Counted, End, LedgerLine, Scope, terms_of, whole_number
from app.ledger.verification.report import FINDINGS_MAX, Finding, Report
from app.ledger.verification.rows import RowChecker


def verify(lines: Iterable[LedgerLine]) -> Report:
    checker = _Checker()
    for line in lines:
        checker.line(line)
    return checker.finish()


def accounts_after(entries: Iterable[Entry]) -> dict[str, tuple[str, AccountTerms, Balance]]:
    """Accounts with currency, terms and balance after the first entries of a book."""
    checker = _Checker()
    for entry in entries:
        checker.entry(entry)
    return checker.accounts()


@dataclass(slots=True)
class _Recomputed:
    """An account recomputed from its entries."""

    currency: str
    terms: AccountTerms
    balance: Balance

    @property
    def passes(self) -> bool:
        rule = COMPOSITION_RULES[self.currency]
        return not all(rule.admits(total, self.terms) for total in self.balance.totals())


class _Checker:
    def __init__(self) -> None:
        self.report = Report()
        self._scope: Scope | None = None
        self._counted = Counted()
        self._ended = False
        self._rows = RowChecker(self._find)
        self._ends: dict[str, Book] = {}
        self._stated: set[str] = set()
        self._opened: set[str] = set()
        self._accounts: dict[str, _Recomputed] = {}
        self._pairs: dict[str, bool] = {}  # by book: True if a person may move between cells
        # Hashes of each charge: its promise with its payers, and the whole loss; None if voided.
        self._paid: dict[str, tuple[int, int] | None] = {}
        self._lost: set[str] = set()  # books with a charge or a booked loss
        self._released: set[str] = set()  # books whose data may be registered in another book now

    def _find(
        self,
        book: str,
        problem: str,
        *,
        seq: int | None = None,
        account: str | None = None,
        charge: str | None = None,
    ) -> None:
        if len(self.report.findings) < FINDINGS_MAX:
            self.report.findings.append(Finding(book, seq, account, problem, charge))

    def line(self, line: LedgerLine) -> None:
        if self._ended:
            self._find("", "a line follows the last line")
        match line:
            case Scope():
                self._scope = line
                self._rows.stored = line.stored
            case Entry():
                self.entry(line)
            case Book():
                self.book(line)
            case Account():
                self.account(line)
            case End():
                self._ended = True
                if line != self._counted.end():
                    self._find("", "the number of lines differs from the last line's count")
            case _:
                self._rows.row(line)
        self._counted.add(line)

    def entry(self, entry: Entry) -> None:
        end = self._ends.setdefault(entry.book_id, Book(entry.book_id, 0, FIRST_PREVIOUS, 0))
        if entry.seq != end.seq + 1:
            self._find(entry.book_id, f"entry {end.seq + 1} is expected here", seq=entry.seq)
        if entry.hash != link(end.head, entry.text):
            self._find(entry.book_id, "the hash does not match the entry", seq=entry.seq)
        if entry.at < end.last_at:
            self._find(entry.book_id, "the time is before the previous entry's", seq=entry.seq)
        end.seq, end.head, end.last_at = entry.seq, entry.hash, entry.at
        try:
            said = json.loads(entry.text)
            columns = (said["book"], said["seq"], said["at"], said["kind"])
            if columns != (entry.book_id, entry.seq, entry.at, entry.kind):
                self._find(entry.book_id, "the columns disagree with the text", seq=entry.seq)
            self._add_up(entry, said["body"])
            self._rows.entry(entry, said["body"])
        except (ValueError, KeyError, TypeError, RecursionError):
            self._find(entry.book_id, "the text cannot be read", seq=entry.seq)

    def _add_up(self, entry: Entry, body: dict[str, object]) -> None:
        match entry.kind, body:
            case "charge" | "void", {"charge": str(charge), "accounts": list(holders)}:
                self._add_charge(entry, body, charge, holders)
            case "booked", {"accounts": list(holders)}:
                if EVERYBODY not in holders:
                    self._find(entry.book_id, "it does not charge everybody", seq=entry.seq)
                self._move(entry, holders, loss_from_record(body), None)
            case "grant", {"holder": str(holder), "before": before, "after": after}:
                self._add_grant(entry, holder, before, after)
            case "reconciled", {"accounts": list(changes)}:
                for change in changes:
                    self._reconcile(entry, change)
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
            case (
                "charge"
                | "void"
                | "booked"
                | "grant"
                | "reconciled"
                | "book_opened"
                | "dataset_withdrawn",
                _,
            ):
                raise ValueError

    def _add_charge(
        self, entry: Entry, body: dict[str, object], charge: str, holders: list[str]
    ) -> None:
        listed = body["cells"]
        if not isinstance(listed, list | None):
            raise ValueError
        loss = loss_from_record(body)
        cells = None if listed is None else tuple(map(whole_number, listed))
        promise = hash((tuple(holders), loss.epsilon, loss.delta, cells))
        cost = promise, hash(loss)
        if entry.kind == "void":
            if not _gives_back(self._paid.get(charge), cost, loss):
                problem = "it refunds a charge that was never paid"
                self._find(entry.book_id, problem, seq=entry.seq)
            self._paid[charge] = None
            self._move(entry, holders, loss, cells)
            return
        if charge in self._paid:
            self._find(entry.book_id, "the charge has an earlier entry", seq=entry.seq)
        if EVERYBODY not in holders or len(set(holders)) < 2:
            self._find(entry.book_id, "it does not charge everybody", seq=entry.seq)
        self._paid[charge] = cost
        self._move(entry, holders, loss, cells)

    def _add_grant(self, entry: Entry, holder: str, before: Any, after: Any) -> None:
        account = account_id(entry.book_id, holder)
        known = self._accounts.get(account)
        if (known and (known.currency, known.terms)) != (before and terms_of(before)):
            problem = "it changes a limit that the account did not have"
            self._find(entry.book_id, problem, seq=entry.seq)
        currency, terms = terms_of(after)
        pairs = self._pairs.get(entry.book_id, False)
        balance: Balance | None = Balance(COMPOSITION_RULES[currency].nothing, pairs)
        if known is not None and known.currency == currency:
            balance = known.balance
        elif known is not None:
            balance = carried_over(known.balance, known.currency, currency)
        if balance is None:
            self._find(entry.book_id, "it drops a part of the spend", seq=entry.seq)
            balance = Balance(COMPOSITION_RULES[currency].nothing, pairs)
        self._accounts[account] = _Recomputed(currency, terms, balance)

    def _reconcile(self, entry: Entry, change: dict[str, Any]) -> None:
        """Add losses that were booked from the anchors after the ledger had lost them."""
        id_of_account = account_id(entry.book_id, str(change["holder"]))
        known = self._accounts.get(id_of_account)
        before = change["before"] and _Recomputed(*recorded_state(change["before"]))
        after = _Recomputed(*recorded_state(change["after"]))
        if known != before:
            problem = "it changes a spend that the account did not have"
            self._find(entry.book_id, problem, seq=entry.seq, account=str(change["holder"]))
        if before is not None and not _no_less(before, after):
            problem = "it drops a part of the spend"
            self._find(entry.book_id, problem, seq=entry.seq, account=str(change["holder"]))
        self._accounts[id_of_account] = after

    def _move(self, entry: Entry, holders: list[str], loss: Loss, cells: CellIndices) -> None:
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
                self._find(
                    entry.book_id, "it exceeds the limit", seq=entry.seq, account=str(holder)
                )

    def book(self, book: Book) -> None:
        end = self._ends.get(book.id, Book(book.id, 0, FIRST_PREVIOUS, 0))
        self._stated.add(book.id)
        if (end.seq, end.head) != (book.seq, book.head):
            self._find(book.id, "the chain does not end where the book says", seq=book.seq)
        elif self._rows.stored and book.last_at != end.last_at:  # exports leave the time out
            self._find(book.id, "the book's last time is not its last entry's", seq=book.seq)

    def account(self, account: Account) -> None:
        recomputed = self._accounts.pop(account.id, None)
        stated = account.currency, account.terms
        if recomputed is None or (recomputed.currency, recomputed.terms) != stated:
            self._find(
                account.book_id, "the limit is not the last granted one", account=account.holder
            )
        if recomputed is not None and recomputed.balance != account.balance:
            self._find(
                account.book_id,
                "the spend is not the sum of the entries",
                account=account.holder,
            )

    def accounts(self) -> dict[str, tuple[str, AccountTerms, Balance]]:
        return {each: (a.currency, a.terms, a.balance) for each, a in self._accounts.items()}

    def finish(self) -> Report:
        for missing in sorted(self._accounts):
            book, _, holder = missing.partition("/")
            self._find(book, "entries name an account that is not there", account=holder)
        whole = self._scope is not None and self._scope.book is None
        expected = set(self._ends) | (self._opened if whole else set())
        for book in sorted(expected - self._stated):
            self._find(book, "the book's own end is missing")
        for book in sorted(self._stated - expected if whole else ()):
            self._find(book, "no entry opened this book")
        if self._scope is not None:
            if not self._ended:
                self._find("", "the last line is missing: the rest was cut off")
            self._rows.finish(whole=whole)
        counted, report = self._counted, self.report
        report.entries, report.books = counted.entries, counted.books
        report.accounts, report.charges = counted.accounts, counted.charges
        return report


def _gives_back(paid: tuple[int, int] | None, cost: tuple[int, int], loss: Loss) -> bool:
    """True if a void refunds the charged loss.

    After a change of currency the loss may differ. Then it must have the same promise, and be no
    larger than the conversion of any release with that promise.
    """
    if paid is None or paid[0] != cost[0]:
        return False
    if paid[1] == cost[1]:
        return True
    most = generic_loss(loss.epsilon, loss.delta)
    refunded = (loss.pure, loss.failure, loss.rho, loss.mu_squared, *loss.curve)
    limit = (most.pure, most.failure, most.rho, most.mu_squared, *most.curve)
    return all(
        units <= bound or units == INFINITE for units, bound in zip(refunded, limit, strict=True)
    )


def _no_less(before: _Recomputed, after: _Recomputed) -> bool:
    """True if the spend has not decreased in any number or cell."""
    balance: Balance | None = before.balance
    if before.currency != after.currency:
        balance = carried_over(before.balance, before.currency, after.currency)
    if balance is None:  # not convertible: then nothing may be left
        return all(units >= INFINITE for units in after.balance.common)
    nothing = (0,) * len(after.balance.common)
    pairs = [(balance.common, after.balance.common)]
    pairs += [
        (spend, after.balance.cells.get(cell, nothing)) for cell, spend in balance.cells.items()
    ]
    return all(all(map(int.__le__, low, high)) for low, high in pairs)
