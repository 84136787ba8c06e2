"""Administrative changes: one transaction each, recorded in a book and seen by every process."""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from app.errors import Conflict, IdempotencyConflict, LedgerBehind, StoreUnavailable
from app.ledger.account import Account
from app.ledger.anchor_comparison import BEHIND
from app.ledger.chain import FIRST_PREVIOUS, SYSTEM_BOOK, Book, Entry
from app.mechanisms.sampling.system import secret_text
from app.store import tables
from app.store.anchors.lines import BookEnd, book_end, marks_line, terms_line
from app.store.connect import Database
from app.store.writer.connection import now_microseconds
from app.store.writer.statements import is_stopped

_log = logging.getLogger("bursar.ledger")
ALARMING = ("charging_stopped",)  # entries that an operator must see


@dataclass(slots=True)
class Written:
    """Rows that a change has written, kept for the anchor."""

    ends: dict[str, tuple[int, str]] = field(default_factory=dict)  # (seq, head) by book
    accounts: dict[str, Account] = field(default_factory=dict)
    marks: dict[str, set[str]] = field(default_factory=dict)  # new fingerprints by book
    kinds: list[str] = field(default_factory=list)  # of the new entries

    def new_marks(self, book_id: str) -> list[str]:
        """New fingerprints of a book, which its entry lists."""
        return sorted(self.marks.get(book_id, ()))

    def book_ends(self) -> list[BookEnd]:
        ends = []
        for book, (seq, head) in self.ends.items():
            accounts = [account for account in self.accounts.values() if account.book_id == book]
            ends.append(book_end(book, seq, head, accounts))
        return ends

    def more(self) -> list[str]:
        grants = [terms_line(account) for account in self.accounts.values()]
        return [*grants, *(marks_line(book, marks) for book, marks in self.marks.items())]


@dataclass(frozen=True, slots=True)
class Change:
    """An open administrative transaction."""

    connection: Connection
    now: int
    written: Written = field(default_factory=Written)

    def raise_catalogue(self) -> None:
        """Raise the catalogue number; every process reads it before its next charge."""
        installation = tables.installation
        self.connection.execute(update(installation).values(catalogue=installation.c.catalogue + 1))

    def must_be_open(self) -> None:
        """Refuse to register while the ledger is incomplete.

        Data registered now could miss a loss recorded in the missing part.
        """
        standing = self.connection.execute(select(tables.installation.c.standing)).scalar_one()
        if is_stopped(standing):
            raise LedgerBehind(f"Registration is refused for now: {BEHIND}.")

    def append(self, book_id: str, *, kind: str, actor: str, body: dict[str, Any]) -> Entry:
        books, entries = tables.books, tables.entries
        row = self.connection.execute(
            select(books).where(books.c.id == book_id).with_for_update()
        ).one()
        book = Book(row.id, row.seq, row.head, row.last_at)
        entry = book.append(kind=kind, actor=actor, at=self.now, body=body)
        self.connection.execute(
            insert(entries).values(
                book_id=book.id,
                seq=entry.seq,
                at=entry.at,
                kind=kind,
                text=entry.text,
                hash=entry.hash,
            )
        )
        self.connection.execute(
            update(books)
            .where(books.c.id == book.id)
            .values(seq=book.seq, head=book.head, last_at=book.last_at)
        )
        self.written.ends[book.id] = book.seq, book.head
        self.written.kinds.append(kind)
        return entry

    def open_book(self, book_id: str, actor: str) -> None:
        """Open a new chain. The system's book lists every other book, so that none can vanish."""
        self.connection.execute(
            insert(tables.books).values(id=book_id, seq=0, head=FIRST_PREVIOUS, last_at=0, celled=0)
        )
        self.append(SYSTEM_BOOK, kind="book_opened", actor=actor, body={"book": book_id})

    def remembered(self, request: str | None, body_hash: str) -> str | None:
        """The reply to an earlier request with this key; a different body is refused."""
        if request is None:
            return None
        requests = tables.requests
        row = self.connection.execute(
            select(requests).where(requests.c.request == request)
        ).one_or_none()
        if row is not None and row.body_hash != body_hash:
            raise IdempotencyConflict("This Idempotency-Key was used with another body.")
        return None if row is None else row.reply

    def remember(self, request: str | None, body_hash: str, reply: str) -> None:
        if request is not None:
            self.connection.execute(
                insert(tables.requests).values(
                    request=request, body_hash=body_hash, reply=reply, created_at=self.now
                )
            )


class Administration:
    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def change(self, *, catalogue: bool = True) -> Iterator[Change]:
        """Open an administrative transaction.

        `catalogue`: people or datasets change. The transaction then raises the catalogue number,
        which every process reads. Such transactions run one after another.
        """
        with store_errors(), self._database.writing() as connection:
            change = Change(connection, now_microseconds())
            if catalogue:
                change.raise_catalogue()
            yield change
        for kind in change.written.kinds:
            _log.log(logging.ERROR if kind in ALARMING else logging.INFO, "ledger entry %s", kind)
        if self._database.anchors is not None and change.written.ends:
            self._database.anchors.append(change.written.book_ends(), None, change.written.more())


@contextmanager
def store_errors() -> Iterator[None]:
    """Translate driver errors; driver text never leaves the store."""
    try:
        yield
    except IntegrityError:
        raise Conflict("Somebody else made the same change first; read it and try again.") from None
    except DBAPIError:
        raise StoreUnavailable("The ledger cannot be reached; try again.") from None


def install(database: Database) -> None:
    """Insert the installation row and the system's book.

    Does nothing if they exist or if another server is inserting them now.
    """
    with suppress(IntegrityError), database.writing() as connection:
        if connection.execute(select(tables.installation.c.id)).first() is None:
            connection.execute(
                insert(tables.installation).values(
                    id=1, secret=secret_text(32), catalogue=1, standing=0
                )
            )
            Change(connection, now_microseconds()).open_book(SYSTEM_BOOK, "bursar")


def key_hash(token: str) -> str:
    """SHA-256 of a key, by which it is found. It needs no salt: a key has 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
