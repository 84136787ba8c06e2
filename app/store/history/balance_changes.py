"""Balances that have changed, for watchers: on any server, since a moment of the ledger's clock."""

from sqlalchemy import func, select

from app.data.card import Card
from app.ledger.records import Budget
from app.store import tables
from app.store.account_rows import account_from, read_cells
from app.store.administration import store_errors
from app.store.connect import Database


class SqlBalanceChanges:
    """Implements `ports.BalanceChanges`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cards: dict[str, Card] = {}

    def head(self) -> tuple[int, int]:
        """Number of entries in all books, and the time of the newest; it rises with every entry."""
        books = tables.books
        statement = select(func.coalesce(func.sum(books.c.seq), 0), func.max(books.c.last_at))
        with store_errors(), self._database.reading() as connection:
            entries, newest = connection.execute(statement).one()
        return int(entries), int(newest or 0)

    def since(self, at: int) -> list[tuple[int, Budget]]:
        """Budgets that were changed at this time or later, oldest first, each with its time."""
        accounts, datasets = tables.accounts, tables.datasets
        statement = (
            select(accounts, datasets.c.name, datasets.c.card)
            .join(datasets, datasets.c.book_id == accounts.c.book_id)
            .where(accounts.c.updated_at >= at)
            .order_by(accounts.c.updated_at, accounts.c.id, datasets.c.id)
        )
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(statement).all()
            cells = read_cells(connection, {row.id for row in rows})
        return [
            (
                row.updated_at,
                Budget(row.name, account_from(row, cells.get(row.id, {})), self._card(row.card)),
            )
            for row in rows
        ]

    def _card(self, text: str) -> Card:
        """The parsed card; the latest are kept, because a watched dataset changes again."""
        card = self._cards.get(text)
        if card is None:
            if len(self._cards) >= 256:
                self._cards.clear()
            card = self._cards[text] = Card.model_validate_json(text)
        return card
