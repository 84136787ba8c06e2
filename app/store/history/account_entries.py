"""Entries that touched one account, and public facts of the charges that they name."""

import json
from collections.abc import Collection

from sqlalchemy import func, select

from app.ledger.account import Account
from app.ledger.account_replay import REPLAYED_KINDS
from app.ledger.chain import canonical
from app.ledger.records import AccountEntries, ChargeFacts
from app.store import tables
from app.store.administration import store_errors
from app.store.connect import Database
from app.store.history.export import entry_from
from app.store.history.filters import member

SPAN = 20_000  # entries that one statement looks through


class SqlAccountEntries:
    def __init__(self, database: Database) -> None:
        self._database = database

    def after(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
        """The next entries that may have touched the account.

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

    def has(self, book_id: str, seq: int, head: str) -> bool:
        """True if the chain has this hash at this entry; a restored ledger may have another."""
        table = tables.entries
        statement = select(table.c.hash).where(table.c.book_id == book_id, table.c.seq == seq)
        with store_errors(), self._database.reading() as connection:
            return connection.execute(statement).scalar_one_or_none() == head

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
