"""Charge rows that one transaction has read, and those that it will write.

They are read under locks, or taken from the cached snapshot (`snapshot.py`). Lock order: accounts,
books, request keys, each by id.
"""

from collections.abc import Sequence
from typing import Any

from app.ledger.account import Account
from app.ledger.balance import CellIndices
from app.ledger.chain import Book, Entry, canonical
from app.ledger.orders import ChargeOrder, ProgressOrder, QuestionOrder, Settled, State, VoidOrder
from app.ledger.stamp import StampChain
from app.ledger.stream_orders import NewStream
from app.store.account_rows import accounts_from_tuples, spend_columns
from app.store.anchors.files import AnchorFiles
from app.store.anchors.lines import BookEnd
from app.store.writer.connection import Read, Write, now_microseconds
from app.store.writer.snapshot import LedgerSnapshot, touched
from app.store.writer.statements import Statements, is_stopped

_CHARGE = (
    *("request", "id", "body_hash", "state", "attempt", "lease_until", "version_id", "charged"),
    *("answer", "created_at", "settled_at", "analyst_id", "cancel_asked_at"),
)
_SETTLING = (
    *("id", "state", "attempt", "lease_until", "created_at", "settled_at", "analyst_id"),
    "cancel_asked_at",
)


Row = tuple[Any, ...]


def _many(values: Sequence[str]) -> tuple[str]:
    return (canonical(list(values)),)


class ChargeRows:
    """State of one transaction while its orders are decided (`charge_decisions.py`)."""

    def __init__(
        self,
        orders: Sequence[QuestionOrder],
        sql: Statements,
        stamps: StampChain,
        anchors: AnchorFiles | None = None,
    ) -> None:
        self._sql = sql
        self._stamps = stamps
        self._anchors = anchors
        self._charge_orders = [o for o in orders if isinstance(o, ChargeOrder)]
        self._settle_orders = [o for o in orders if not isinstance(o, ChargeOrder)]
        self._reading: list[str] = []
        self.catalogue = 0
        self.now = 0
        self.stopped = False  # True if the ledger is behind its anchors: no new charges then
        self._by_request: dict[str, dict[str, Any]] = {}
        self._by_id: dict[str, dict[str, Any]] = {}  # the same rows as in `_by_request`
        self._reusable: dict[str, tuple[str, str, str]] = {}
        self._accounts: dict[str, Account] = {}
        self._books: dict[str, Book] = {}
        self._touched: set[str] = set()
        self._touched_cells: set[tuple[str, int]] = set()
        self._entries: list[Entry] = []
        self._new_charges: list[tuple[Any, ...]] = []
        self._settlements: list[tuple[Any, ...]] = []
        self._earliest: dict[str, int] = {}  # when the result may be sent to the order's sender
        self._take_overs: dict[str, tuple[Any, ...]] = {}  # the last one of each charge
        self._progress: list[tuple[Any, ...]] = []
        self._marks: list[tuple[Any, ...]] = []
        self._new_streams: list[tuple[Any, ...]] = []
        self._stored_ids: list[str] = []  # charges whose stored result is the outcome
        self._heads: dict[str, str] = {}  # of the books before this batch
        self._versions: dict[str, int] = {}  # of accounts taken from the snapshot
        self._assumed = False
        self.charged = False
        self.recorded = False
        self._written: tuple[list[Row], list[Row]] = [], []  # accounts and cells

    # Reading, under locks

    def reads(self) -> list[Read]:
        """Statements to read, locks first: rows may change while the writer waits for a lock."""
        sql, charges = self._sql, self._charge_orders
        accounts = sorted({each for order in self._paying() for each in touched(order)})
        books = sorted({order.book_id for order in self._paying()})
        locks = [(sql.accounts, accounts), (sql.books, books)]
        lists = [
            (sql.charges_by_request, [o.request for o in charges]),
            (sql.charges_by_id, [o.charge_id for o in self._settle_orders]),
            (sql.answers_to_reuse, [o.reuse_key for o in charges if not o.fresh]),
            (sql.cells, accounts),
        ]
        reads: list[Read] = [
            *((text, _many(values)) for text, values in locks if values),
            (sql.clock, ()),
            *((text, _many(values)) for text, values in lists if values),
        ]
        self._reading = [text for text, _ in reads]
        return reads

    def _paying(self) -> list[ChargeOrder | VoidOrder]:
        given_back = [o for o in self._settle_orders if isinstance(o, VoidOrder)]
        return [*self._charge_orders, *given_back]

    def load(self, rows: list[list[Any]]) -> None:
        sql = self._sql
        rows_by_statement = dict(zip(self._reading, rows, strict=True))
        ((self.catalogue, database_now, standing),) = rows_by_statement[sql.clock]
        self.now = database_now or now_microseconds()
        for values in rows_by_statement.get(sql.charges_by_request, []):
            row = dict(zip(_CHARGE, values, strict=True))
            self._by_request[row["request"]] = self._by_id[row["id"]] = row
        for values in rows_by_statement.get(sql.charges_by_id, []):
            self._by_id.setdefault(values[0], dict(zip(_SETTLING, values, strict=True)))
        for key, *answer in rows_by_statement.get(sql.answers_to_reuse, []):
            if answer[0] is not None:
                self._reusable[key] = (answer[0], answer[1], answer[2])
        accounts = rows_by_statement.get(sql.accounts, [])
        for account in accounts_from_tuples(accounts, rows_by_statement.get(sql.cells, [])):
            self._accounts[account.id] = account
        self._books = {row[0]: Book(*row) for row in rows_by_statement.get(sql.books, [])}
        self._heads = {book.id: book.head for book in self._books.values()}
        self.stopped = is_stopped(standing)
        if self._anchors is not None and self._anchors.has_lost(standing, self._books.values()):
            self.stopped = True

    def load_snapshot(self, known: LedgerSnapshot) -> None:
        """Take the state from the snapshot; the writes then fail unless the snapshot is current."""
        self._assumed = True
        self.catalogue, self.now = known.catalogue, known.now()
        for order in self._charge_orders:
            book = known.books[order.book_id]
            end = book.end
            self._books[order.book_id] = Book(end.id, end.seq, end.head, end.last_at)
            for id_of_account in touched(order):
                account = book.accounts[id_of_account]
                if account is not None:
                    self._accounts[id_of_account], self._versions[id_of_account] = (
                        account,
                        account.version,
                    )
        self._heads = {book.id: book.head for book in self._books.values()}

    def update_snapshot(self, known: LedgerSnapshot) -> None:
        """Update the snapshot with the state after the commit."""
        seen: dict[str, dict[str, Account | None]] = {book: {} for book in self._books}
        for order in self._paying():
            if order.book_id in seen:
                known_accounts = {each: self._accounts.get(each) for each in touched(order)}
                seen[order.book_id].update(known_accounts)
        for book_id, accounts in seen.items():
            known.record(self.catalogue, self._heads[book_id], self._books[book_id], accounts)
        for order in self._charge_orders:
            known.has_asked(order)

    # Writing

    def _keep(self, account: Account, cells: CellIndices) -> None:
        self._accounts[account.id] = account
        self._touched.add(account.id)
        for cell in cells or ():
            self._touched_cells.add((account.id, cell))

    def _lease(self, order: ChargeOrder | ProgressOrder) -> int:
        return self.now + int(order.lease_seconds * 1_000_000)

    def _append(self, book_id: str, *, kind: str, actor: str, body: dict[str, Any]) -> Entry:
        entry = self._books[book_id].append(kind=kind, actor=actor, at=self.now, body=body)
        self._entries.append(entry)
        return entry

    def _insert(
        self,
        order: ChargeOrder,
        state: State,
        charged: str,
        answer: str | None = None,
        reused_from: str | None = None,
        *,
        settled_at: int | None = None,
        stamp: str | None = None,
    ) -> None:
        free = reused_from is not None
        row = (
            order.charge_id,
            order.analyst_id,
            order.request,
            order.body_hash,
            order.reuse_key,
            order.dataset_id,
            order.version_id,
            state.value,
            1,
            self._lease(order),
            0 if free else order.loss.epsilon,
            0 if free else order.loss.delta,
            "" if free else order.question,
            charged,
            None if free else answer,
            reused_from,
            self.now,
            settled_at,
            stamp,
        )
        self._new_charges.append(row)
        self._by_request[order.request] = self._by_id[order.charge_id] = {
            "id": order.charge_id,
            "body_hash": order.body_hash,
            "state": state.value,
            "attempt": 1,
            "lease_until": self._lease(order),
            "version_id": order.version_id,
            "charged": charged,
            "answer": answer,
            "created_at": self.now,
            "settled_at": settled_at,
            "analyst_id": order.analyst_id,
            "cancel_asked_at": None,
        }

    def _opened(self, stream: NewStream) -> tuple[Any, ...]:
        return (
            *(stream.id, stream.analyst_id, stream.charge_id, stream.dataset_id, stream.kind),
            *(stream.parameters, stream.secret, stream.crossings, stream.asks_max),
            *(0, 0, None, self.now, None),
        )

    def writes(self) -> list[Write]:
        sql = self._sql
        accounts = [
            (*spend_columns(a.balance.common), a.version, self.now, a.id)
            for a in (self._accounts[each] for each in sorted(self._touched))
        ]
        cells = [
            (account, cell, *spend_columns(self._accounts[account].balance.cells[cell]))
            for account, cell in sorted(self._touched_cells)
        ]
        books = [(b.seq, b.head, b.last_at, b.id) for b in self._written_books()]
        self._written = accounts, cells
        pairs: list[Write] = [
            *self._totals(accounts, books),
            (sql.put_cell, cells),
            (sql.insert_charge, self._new_charges),
            (sql.take_over, list(self._take_overs.values())),
            (sql.note_progress, self._progress),
            (sql.mark_cancelled, self._marks),
            (sql.settle_charge, self._settlements),
            (sql.insert_stream, self._new_streams),
            (sql.insert_entry, self._entries),
        ]
        return [(statement, rows) for statement, rows in pairs if rows]

    def _written_books(self) -> list[Book]:
        changed = {entry.book_id for entry in self._entries}
        return [self._books[each] for each in sorted(self._books) if each in changed]

    def ends(self) -> list[BookEnd]:
        """Ends of the written books, and spends of the written accounts, for the anchor.

        Call it after the commit.
        """
        accounts, cells = self._written
        known = self._accounts
        spent = [(row[5], known[row[5]].currency, row[0], row[1], row[2]) for row in accounts]
        books = self._written_books()
        if len(books) == 1:  # almost always
            (book,) = books
            return [BookEnd(book.id, book.seq, book.head, spent, cells)]
        book_ends = []
        for book in books:
            prefix = f"{book.id}/"
            own = [row for row in spent if row[0].startswith(prefix)]
            by_cell = [row for row in cells if row[0].startswith(prefix)]
            book_ends.append(BookEnd(book.id, book.seq, book.head, own, by_cell))
        return book_ends

    def _totals(self, accounts: list[Row], books: list[Row]) -> list[Write]:
        """Update accounts and books first, in lock order, to avoid deadlocks.

        Values from the snapshot are written only if the snapshot is still current.
        """
        sql = self._sql
        if not self._assumed:
            return [(sql.update_account, accounts), (sql.update_book, books)]
        kept_accounts = [(*each, self._versions[each[-1]]) for each in accounts]
        kept_books = [(*each, self._heads[each[-1]], self.catalogue, self.now) for each in books]
        unread = [order.reuse_key for order in self._charge_orders if not order.fresh]
        return [
            (sql.keep_account, kept_accounts),
            (sql.keep_book, kept_books),
            (sql.nothing_to_reuse, [_many(unread)] if unread else []),
        ]

    def reads_after(self) -> list[Read]:
        if not self._stored_ids:
            return []
        return [(self._sql.stored, _many(self._stored_ids))]

    def stored(self, rows: list[list[Any]]) -> dict[str, Settled]:
        """Stored results of the charges to settle."""
        settled = {}
        for charge_id, state, answer, at in rows[0] if rows else ():
            at = max(at or 0, self._earliest.get(charge_id, 0))
            wait = max(0, at - self.now) / 1_000_000
            settled[charge_id] = Settled(charge_id, State(state), answer, wait_seconds=wait)
        return settled
