"""Cached snapshot of the ledger after a connection's last batch, which saves reading it again.

A book's head is a hash over all its entries, and nothing changes an account without an entry in its
book. So accounts are unchanged while the head is. Statements with guards commit a batch decided on
the snapshot (`statements.py`). They fail unless account versions, book heads and catalogue number
are the cached ones and the clock is right. If they fail, nothing is written, and the batch is
decided again on rows read under locks (decision 0005).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.ledger.account import EVERYBODY, Account, account_id
from app.ledger.chain import Book
from app.ledger.orders import ChargeOrder, VoidOrder, WriterOrder

KEPT_MAX = 100_000  # accounts with their cells, and keys
# If other servers charge the same books, the snapshot is rarely current: after it was outdated,
# this many batches read first.
DOUBTED = 16
# Clocks differ in speed: the estimate stays this much behind the database's clock.
MARGIN_MICROSECONDS = 2000


@dataclass(slots=True)
class KnownBook:
    """A book's last known chain head, and the accounts read since that head was written."""

    end: Book
    accounts: dict[str, Account | None]  # None: there is no such account


class LedgerSnapshot:
    """Books after the last batch, their catalogue number, and an estimate of the clock."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock  # shared by all users of the ledger; None: the database's own
        self.catalogue = -1
        self.books: dict[str, KnownBook] = {}
        self._size = 0
        self._asked: set[str] = set()  # requests and reuse keys that may have an answer
        self._ahead = 0  # database clock minus our monotonic clock, in microseconds
        self._doubted = 0
        # True if charging was stopped when last read. Stopping and resuming raise the catalogue
        # number, so this holds while that number does.
        self.stopped = False

    def can_decide(self, orders: Sequence[WriterOrder]) -> bool:
        """True if the cache holds every account, book and key these charge orders need."""
        if self.stopped:
            return False
        if self._doubted:
            self._doubted -= 1
            return False
        return all(isinstance(order, ChargeOrder) and self._covers(order) for order in orders)

    def _covers(self, order: ChargeOrder) -> bool:
        book = self.books.get(order.book_id)
        return (
            book is not None
            and order.catalogue == self.catalogue
            and order.request not in self._asked
            and (order.fresh or order.reuse_key not in self._asked)
            and all(each in book.accounts for each in touched(order))
        )

    def now(self) -> int:
        """Estimate of the database's clock, never later than the clock itself; microseconds."""
        if self._clock is not None:
            return self._clock()
        return time.monotonic_ns() // 1000 + self._ahead

    def read_clock(self, now: int) -> None:
        self._ahead = now - MARGIN_MICROSECONDS - time.monotonic_ns() // 1000

    def record(
        self, catalogue: int, head: str, end: Book, accounts: Mapping[str, Account | None]
    ) -> None:
        """Record a book that a batch has read with this head and left with this end."""
        if catalogue != self.catalogue or self._size > KEPT_MAX:
            self.forget()
        self.catalogue = catalogue
        book = self.books.get(end.id)
        if book is None or book.end.head != head:
            # Somebody else has written since, so the other cached accounts may be outdated.
            book = self.books[end.id] = KnownBook(end, {})
        new = accounts.keys() - book.accounts.keys()
        self._size += sum(1 + len(a.balance.cells) for i in new if (a := accounts[i]) is not None)
        book.end = end
        book.accounts.update(accounts)

    def first_account(self, book_id: str, holders: Sequence[str]) -> Account | None:
        """The account of the first of these holders that has one; None if that is not cached."""
        book = self.books.get(book_id)
        if book is None:
            return None
        try:
            for holder in holders:
                account = book.accounts[account_id(book_id, holder)]
                if account is not None:
                    return account
        except KeyError:  # it may have an account
            pass
        return None

    def has_asked(self, order: ChargeOrder) -> None:
        if len(self._asked) > KEPT_MAX:
            self._asked.clear()
        self._asked.update((order.request, order.reuse_key))

    def forget(self) -> None:
        self.books.clear()
        self._size = 0

    def back_off(self) -> None:
        self.forget()
        self._doubted = DOUBTED


def touched(order: ChargeOrder | VoidOrder) -> list[str]:
    """Ids of the accounts that decide this order."""
    return [account_id(order.book_id, holder) for holder in (*order.holders, EVERYBODY)]
