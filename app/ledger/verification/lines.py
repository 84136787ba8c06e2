"""Lines of a ledger's snapshot, and their form in an export.

Store and export yield the same lines, so anyone who holds an export can verify it without us. An
export is NDJSON. It states its scope and lists the entries in the order of their chains. Then
follow the end of each book, each account and each charge at the same instant. The last line counts
all lines. Lines that an export must not show (stored answers, sources, people) come from the store
only.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from app.accounting import COMPOSITION_RULES
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import AccountTerms
from app.ledger.account import Account
from app.ledger.balance import Balance
from app.ledger.chain import Book, Entry, canonical

FORMAT = 2


@dataclass(frozen=True, slots=True)
class Scope:
    """First line: the whole ledger, or one book of it.

    `stored`: rows include content that only the store can check.
    """

    book: str | None
    format: int = FORMAT
    stored: bool = False


class ChargeRow(NamedTuple):
    """A charge as its row states it."""

    id: str
    book: str
    state: str
    epsilon: int
    delta: int
    version: str
    asked: str  # digest of the request: content, analyst and request key
    receipt: tuple[int, str] | None  # entry and hash, if the answer states them
    reused: bool  # another charge's answer under a new key, without its own entry
    reuse_holds: bool = True  # that charge exists, and answered the same plan
    settled_at: int | None = None
    content: str = ""  # digest of the stored content
    stamp: str | None = None


class AskRow(NamedTuple):
    """An ask of a stream as its row states it."""

    id: str
    stream: str
    state: str
    crossed: bool
    closed: bool  # forfeited when its stream was closed
    settled_at: int | None
    content: str
    stamp: str | None


class StreamRow(NamedTuple):
    """Remaining crossings and asks of a stream, and those that its opening states."""

    id: str
    charge: str
    left: tuple[int | None, int | None]  # crossings and asks
    began: tuple[int | None, int | None] | None
    fits: bool = True  # its analyst and dataset are those of its charge


class FingerprintRow(NamedTuple):
    fingerprint: str
    book: str


class DatasetRow(NamedTuple):
    """A dataset as its row states it."""

    name: str
    book: str
    facts: dict[str, Any]  # card, source, version, description, closed, folded name
    celled: bool = False  # whether the book's row says that one of its names declares cells


class VersionRow(NamedTuple):
    """A version as its row states it."""

    id: str
    book: str
    facts: dict[str, Any]  # content: a keyed digest of the row


class PersonRow(NamedTuple):
    name: str
    facts: dict[str, Any]  # role, enabled, groups, folded name


class KeyRow(NamedTuple):
    id: str
    facts: dict[str, Any]  # analyst, expires_at, revoked, token_hash


@dataclass(frozen=True, slots=True)
class End:
    """Last line: the number of lines of each kind, and a hash over the ends of the books."""

    entries: int
    books: int
    accounts: int
    charges: int
    heads: str


LedgerLine = (
    Scope
    | Entry
    | Book
    | Account
    | ChargeRow
    | AskRow
    | StreamRow
    | FingerprintRow
    | DatasetRow
    | VersionRow
    | PersonRow
    | KeyRow
    | End
)


class Counted:
    """Count lines as they pass, for the last line."""

    def __init__(self) -> None:
        self.entries = self.books = self.accounts = self.charges = 0
        self._heads = hashlib.sha256()

    def add(self, line: LedgerLine) -> None:
        match line:
            case Entry():
                self.entries += 1
            case Book():
                self.books += 1
                self._heads.update(f"{line.id} {line.seq} {line.head}\n".encode())
            case Account():
                self.accounts += 1
            case ChargeRow():
                self.charges += 1

    def end(self) -> End:
        heads = self._heads.hexdigest()
        return End(self.entries, self.books, self.accounts, self.charges, heads)


def with_end(lines: Iterable[LedgerLine]) -> Iterator[LedgerLine]:
    counted = Counted()
    for line in lines:
        counted.add(line)
        yield line
    yield counted.end()


# Parts


def whole_number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("expected an integer of at least 0")
    return value


def terms_of(said: object) -> tuple[str, AccountTerms]:
    match said:
        case {"currency": str(currency), "terms": dict(terms)}:
            if currency not in COMPOSITION_RULES:
                raise ValueError("unknown currency")
            read = AccountTerms.from_text(canonical(terms))
            units_listed = (read.epsilon, read.delta, read.conversion, *read.limits)
            if not all(type(units) is int for units in units_listed):
                raise ValueError("units must be integers")
            if len(read.limits) != len(COMPOSITION_RULES[currency].nothing):
                raise ValueError("the limits have the length of another currency")
            return currency, read
        case _:
            raise ValueError


# Writing and reading


def to_line(item: LedgerLine) -> str:
    match item:
        case Scope():
            return canonical({"type": "ledger", "book": item.book, "format": item.format})
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
                    "pairs": item.balance.persons_may_move,
                    "spent": item.balance.common,
                    "cells": [[cell, *spend] for cell, spend in sorted(item.balance.cells.items())],
                }
            )
        case ChargeRow():
            return canonical(
                {
                    "type": "charge",
                    "charge": item.id,
                    "book": item.book,
                    "state": item.state,
                    "epsilon": item.epsilon,
                    "delta": item.delta,
                    "version": item.version,
                    "asked": item.asked,
                    "receipt": item.receipt,
                    "reused": item.reused,
                }
            )
        case End():
            return canonical({"type": "end", **asdict(item)})
        case _:
            raise ValueError("an export does not contain lines of this kind")


def from_lines(lines: Iterable[str]) -> Iterator[LedgerLine]:
    """Read an export; raises ValueError with the number of an invalid line."""
    for number, text in enumerate(lines, 1):
        try:
            yield _from_line(json.loads(text))
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ValueError(f"line {number} is not a line of an export") from None


def _from_line(line: dict[str, object]) -> LedgerLine:
    match line:
        case {"type": "ledger", "book": None | str() as only}:
            if line["format"] != FORMAT:
                raise ValueError("unknown format")
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
            currency, terms = terms_of(line)
            cells = {whole_number(cell): _spend(currency, spend) for cell, *spend in listed}
            balance = Balance(_spend(currency, spent), pairs, cells)
            return Account(book, holder, holder, currency, terms, balance, 0)
        case {
            "type": "charge",
            "charge": str(charge),
            "book": str(book),
            "state": str(state),
            "version": str(version),
            "asked": str(asked),
            "receipt": receipt,
            "reused": bool(reused),
        }:
            amounts = whole_number(line.get("epsilon")), whole_number(line.get("delta"))
            entry_and_hash = _receipt(receipt)
            return ChargeRow(charge, book, state, *amounts, version, asked, entry_and_hash, reused)
        case {"type": "end", "heads": str(heads)}:
            names = ("entries", "books", "accounts", "charges")
            return End(**{name: whole_number(line.get(name)) for name in names}, heads=heads)
        case _:
            raise ValueError


def _receipt(receipt: object) -> tuple[int, str] | None:
    match receipt:
        case None:
            return None
        case [int(seq), str(hashed)]:
            return seq, hashed
        case _:
            raise ValueError


def _entry(said: object, text: str, hashed: str) -> Entry:
    match said:
        case {"book": str(book), "seq": int(seq), "at": int(at), "kind": str(kind)}:
            return Entry(book, seq, at, kind, text, hashed)
        case _:
            raise ValueError


def _spend(currency: str, units: list[object]) -> Spend:
    spend = tuple(map(whole_number, units))
    if len(spend) != len(COMPOSITION_RULES[currency].nothing):
        raise ValueError("the spend has the length of another currency")
    return spend
