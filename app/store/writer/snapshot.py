"""What a connection knows of the ledger since its last batch, so that it need not ask again.

A book's head is a hash of all that was ever entered in it, and nothing changes an account without
an entry in its book, so accounts are as they were for as long as the head is. A batch that is
decided on what is known is committed by statements that fail unless each account has the version,
each book the head and the ledger the catalogue that were known, and the clock is right
(`statements.py`). Then nothing of it has happened, and it is decided again on what is read under
the locks (decision 0005).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.ledger.account import EVERYBODY, Account, account_id
from app.ledger.chain import Book
from app.ledger.orders import ChargeOrder, Order, VoidOrder

KEPT_MAX = 100_000  # accounts with their cells, and keys
# Where other servers charge the same books what is known is seldom true: so many batches ask first.
DOUBTED = 16
# Clocks do not run alike: the database's is reckoned to be by so much less than it was.
MARGIN_MICROSECONDS = 2000


@dataclass(slots=True)
class KnownBook:
    """The end of a book's chain, and of its accounts those that were seen while it ended so."""

    end: Book
    accounts: dict[str, Account | None]  # None: there is no such account


class LedgerSnapshot:
    """Books as they were left, under which catalogue, and what the clock is."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock  # that all share who use the ledger; None if it is the database's
        self.catalogue = -1
        self.books: dict[str, KnownBook] = {}
        self._size = 0
        self._asked: set[str] = set()  # requests, and keys of plans: they may have an answer
        self._ahead = 0  # of our own clock, in microseconds
        self._doubted = 0
        # Was charging stopped when it was last read? Whatever stops it or lets it go on raises the
        # catalogue number, so it is still so where that number is.
        self.stopped = False

    def can_decide(self, orders: Sequence[Order]) -> bool:
        """Is all that these orders hang on known? Of charges alone."""
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
        """What the database's clock says by now, or a moment less."""
        if self._clock is not None:
            return self._clock()
        return time.monotonic_ns() // 1000 + self._ahead

    def read_clock(self, now: int) -> None:
        self._ahead = now - MARGIN_MICROSECONDS - time.monotonic_ns() // 1000

    def record(
        self, catalogue: int, head: str, end: Book, accounts: Mapping[str, Account | None]
    ) -> None:
        """Of a book that a batch has found with this head and left with this end."""
        if catalogue != self.catalogue or self._size > KEPT_MAX:
            self.forget()
        self.catalogue = catalogue
        book = self.books.get(end.id)
        if book is None or book.end.head != head:
            # Somebody else has written since: of no other account it is known what they left.
            book = self.books[end.id] = KnownBook(end, {})
        new = accounts.keys() - book.accounts.keys()
        self._size += sum(1 + len(a.balance.cells) for i in new if (a := accounts[i]) is not None)
        book.end = end
        book.accounts.update(accounts)

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
    """The accounts that it is decided on."""
    return [account_id(order.book_id, holder) for holder in (*order.holders, EVERYBODY)]
