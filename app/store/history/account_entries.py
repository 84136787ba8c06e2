"""Entries that touched one account, and public facts of the charges that they name."""

import json
from collections.abc import Collection

from sqlalchemy import func, select

from app.errors import NotFound
from app.ledger.account import NO_GRANT, Account
from app.ledger.account_history.replay import REPLAYED_KINDS
from app.ledger.chain import canonical
from app.ledger.records import AccountEntries, ChargeFacts
from app.store import tables
from app.store.account_rows import account_from, spend_from
from app.store.administration import store_errors
from app.store.connect import Database
from app.store.history.export import entry_from
from app.store.history.filters import member

SPAN = 20_000  # entries that one statement looks through
SPENDS = ("epsilon_spent", "delta_spent", "curve_spent")


class SqlAccountEntries:
    def __init__(self, database: Database) -> None:
        self._database = database

    def after(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
        """The entries after `seq` that may have touched the account, oldest first.

        No index leads from an account to its entries, since every charge would have to write it.
        So the statement looks for the holder's name in the texts of a limited number of entries.
        """
        table = tables.entries
        look = func.instr if self._database.is_sqlite else func.strpos
        statement = (
            select(table)
            .where(table.c.book_id == account.book_id)
            .where(table.c.seq > seq, table.c.seq <= seq + SPAN)
            .where(table.c.kind.in_(REPLAYED_KINDS))
            .where(look(table.c.text, canonical(account.holder)) > 0)
            .order_by(table.c.seq)
            .limit(limit)
        )
        books = tables.books
        end_of_book = select(books.c.seq).where(books.c.id == account.book_id)
        with store_errors(), self._database.reading() as connection:
            end: int = connection.execute(end_of_book).scalar_one()
            entries = [entry_from(row) for row in connection.execute(statement).all()]
            reached = entries[-1].seq if len(entries) == limit else min(seq + SPAN, end)
            at_reached = select(table.c.at, table.c.hash).where(
                table.c.book_id == account.book_id, table.c.seq == reached
            )
            at, head = connection.execute(at_reached).one_or_none() or (0, "")
        return AccountEntries(entries, reached, at, head, at_end=reached >= end)

    def before(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
        """The entries up to `seq` that may have touched the account, newest first."""
        table = tables.entries
        look = func.instr if self._database.is_sqlite else func.strpos
        statement = (
            select(table)
            .where(table.c.book_id == account.book_id)
            .where(table.c.seq <= seq, table.c.seq > seq - SPAN)
            .where(table.c.kind.in_(REPLAYED_KINDS))
            .where(look(table.c.text, canonical(account.holder)) > 0)
            .order_by(table.c.seq.desc())
            .limit(limit)
        )
        with store_errors(), self._database.reading() as connection:
            entries = [entry_from(row) for row in connection.execute(statement).all()]
        reached = entries[-1].seq if len(entries) == limit else max(1, seq - SPAN + 1)
        return AccountEntries(entries, reached, 0, "", at_end=reached <= 1)

    def present(self, account: Account) -> tuple[Account, int]:
        """The account, and the last entry of its book, as one statement sees both."""
        accounts, books, cells = tables.accounts, tables.books, tables.cells
        columns = cells.c.cell, *(cells.c[name].label(f"cell_{name}") for name in SPENDS)
        statement = (
            select(accounts, books.c.seq, *columns)
            .join(books, books.c.id == accounts.c.book_id)
            .outerjoin(cells, cells.c.account_id == accounts.c.id)
            .where(accounts.c.id == account.id)
        )
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(statement).all()
        if not rows:  # withdrawn a moment ago
            raise NotFound(NO_GRANT)
        spends = {
            row.cell: spend_from(*(getattr(row, f"cell_{name}") for name in SPENDS))
            for row in rows
            if row.cell is not None
        }
        return account_from(rows[0], spends), int(rows[0].seq)

    def has(self, book_id: str, seq: int, head: str) -> bool:
        """True if the chain has this hash at this entry; a restored ledger may have another."""
        return self.head(book_id, seq) == head

    def head(self, book_id: str, seq: int) -> str | None:
        """Hash of the chain at this entry; None if the book has no such entry."""
        table = tables.entries
        statement = select(table.c.hash).where(table.c.book_id == book_id, table.c.seq == seq)
        with store_errors(), self._database.reading() as connection:
            head: str | None = connection.execute(statement).scalar_one_or_none()
        return head

    def charges(self, ids: Collection[str]) -> dict[str, ChargeFacts]:
        """Facts about these charges; one whose row is missing is left out."""
        if not ids:
            return {}
        charges, analysts = tables.charges, tables.analysts
        statement = (
            select(
                charges.c.id,
                charges.c.analyst_id,
                analysts.c.name,
                charges.c.charged,
                member(self._database, charges.c.question, "query", "kind").label("kind"),
                member(self._database, charges.c.question, "stream", "kind").label("stream"),
            )
            .join(analysts, analysts.c.id == charges.c.analyst_id)
            .where(charges.c.id.in_(sorted(ids)))
        )
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(statement).all()
        return {
            row.id: ChargeFacts(
                row.analyst_id,
                row.name,
                row.kind or row.stream,
                row.stream is not None,
                json.loads(row.charged)["charged"],
            )
            for row in rows
        }
