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

from app.accounting.loss import Loss
from app.ledger.account import EVERYBODY, Account, account_id
from app.ledger.chain import FIRST_PREVIOUS, Book, Entry, canonical, link


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


class _Checker:
    def __init__(self) -> None:
        self.report = Report()
        self.whole = False
        self._ends: dict[str, Book] = {}
        self._stated: set[str] = set()
        self._opened: set[str] = set()
        self._spent: dict[str, list[int]] = {}
        self._terms: dict[str, tuple[str, int, int]] = {}
        self._paid: dict[str, int | None] = {}  # hash of what a charge cost whom; None if voided

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
                "epsilon": int(epsilon),
                "delta": int(delta),
            }:
                if epsilon < 0 or delta < 0:
                    raise ValueError
                cost = hash((tuple(holders), epsilon, delta))
                if entry.kind == "void":
                    if self._paid.get(charge) != cost:
                        problem = "what is given back was never paid"
                        self._find(entry.book_id, problem, seq=entry.seq)
                    self._paid[charge] = None
                    self._move(entry, holders, -epsilon, -delta)
                    return
                if charge in self._paid:
                    self._find(entry.book_id, "the charge was charged before", seq=entry.seq)
                if EVERYBODY not in holders or len(set(holders)) < 2:
                    self._find(entry.book_id, "it does not charge everybody", seq=entry.seq)
                self._paid[charge] = cost
                self._move(entry, holders, epsilon, delta)
            case "grant", {"holder": str(holder), "before": before, "after": dict(after)}:
                account = account_id(entry.book_id, holder)
                known = self._terms.get(account)
                if known != (None if before is None else _terms(before)):
                    self._find(entry.book_id, "it changes a limit that was not", seq=entry.seq)
                self._terms[account] = _terms(after)
            case "book_opened", {"book": str(book)}:
                self._opened.add(book)
            case "charge" | "void" | "grant" | "book_opened", _:
                raise ValueError

    def _move(self, entry: Entry, holders: list[str], epsilon: int, delta: int) -> None:
        for holder in holders:
            account = account_id(entry.book_id, holder)
            spent = self._spent.setdefault(account, [0, 0])
            spent[0] += epsilon
            spent[1] += delta
            _, *limit = self._terms.get(account, ("", 0, 0))
            if entry.kind == "charge" and (spent[0] > limit[0] or spent[1] > limit[1]):
                self._find(entry.book_id, "it passes the limit", seq=entry.seq, account=str(holder))

    def book(self, book: Book) -> None:
        self.report.books += 1
        end = self._ends.get(book.id, Book(book.id, 0, FIRST_PREVIOUS, 0))
        self._stated.add(book.id)
        if (end.seq, end.head) != (book.seq, book.head):
            self._find(book.id, "the chain does not end where the book says", seq=book.seq)

    def account(self, account: Account) -> None:
        self.report.accounts += 1
        spent = [account.spent.epsilon, account.spent.delta]
        if self._spent.pop(account.id, [0, 0]) != spent:
            self._find(
                account.book_id,
                "what is spent is not the sum of the entries",
                account=account.holder,
            )
        terms = (account.currency, account.limit.epsilon, account.limit.delta)
        if self._terms.pop(account.id, None) != terms:
            self._find(
                account.book_id, "the limit is not the last one granted", account=account.holder
            )

    def finish(self) -> Report:
        for missing in sorted(set(self._spent) | set(self._terms)):
            book, _, holder = missing.partition("/")
            self._find(book, "entries speak of an account that is not there", account=holder)
        expected = set(self._ends) | (self._opened if self.whole else set())
        for book in sorted(expected - self._stated):
            self._find(book, "the book's own end is missing")
        return self.report


def _terms(said: object) -> tuple[str, int, int]:
    match said:
        case {"currency": str(currency), "epsilon_limit": int(epsilon), "delta_limit": int(delta)}:
            return currency, epsilon, delta
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
                    "limit": [item.limit.epsilon, item.limit.delta],
                    "spent": [item.spent.epsilon, item.spent.delta],
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
            "currency": str(currency),
            "limit": [int(e_limit), int(d_limit)],
            "spent": [int(e_spent), int(d_spent)],
        }:
            return Account(
                book, holder, holder, currency, Loss(e_limit, d_limit), Loss(e_spent, d_spent), 0
            )
        case _:
            raise ValueError


def _entry(said: object, text: str, hashed: str) -> Entry:
    match said:
        case {"book": str(book), "seq": int(seq), "at": int(at), "kind": str(kind)}:
            return Entry(book, seq, at, kind, text, hashed)
        case _:
            raise ValueError
