"""The ledger at one moment, for a scrape: totals that are kept, and accounts that have changed."""

from typing import Any

from sqlalchemy import Connection, Select, case, func, select

from app.ledger.account import EVERYBODY, Account
from app.ports.telemetry import LedgerFigures
from app.store import tables
from app.store.account_rows import account_from, read_cells
from app.store.administration import store_errors
from app.store.connect import Database
from app.store.writer.statements import is_stopped

# Version and time of the last change of an account: a restored ledger may repeat versions.
_Mark = tuple[int, int]
IDS_MAX = 500  # accounts read by one statement


class SqlLedgerFigures:
    """Implements `ports.FiguresOfLedger`. Accounts that have not changed are not read again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[_Mark, Account]] = {}

    def read(self, accounts_max: int) -> LedgerFigures:
        books, installation = tables.books, tables.installation
        totals = select(func.coalesce(func.sum(books.c.seq), 0), func.max(books.c.last_at))
        with store_errors(), self._database.reading() as connection:
            standing = connection.execute(select(installation.c.standing)).scalar_one()
            entries, newest = connection.execute(totals).one()
            rows = connection.execute(_accounts(accounts_max)).all()
            budgets = len(rows)
            if budgets == accounts_max:
                budgets = connection.execute(_number_of_accounts()).scalar_one()
            marks = {row.id: (row.version, row.updated_at) for row in rows}
            known = {id_: kept for id_, kept in self._known.items() if kept[0] == marks.get(id_)}
            new = _read(connection, sorted(marks.keys() - known.keys()))
        known |= {id_: (marks[id_], account) for id_, account in new.items()}
        self._known = known
        return LedgerFigures(
            stopped=is_stopped(standing),
            entries=int(entries),
            newest_at=int(newest or 0),
            budgets=int(budgets),
            accounts=tuple((row.name, known[row.id][1]) for row in rows),
        )


def _accounts(accounts_max: int) -> Select[Any]:
    accounts, datasets = tables.accounts, tables.datasets
    first = case((accounts.c.holder == EVERYBODY, 0), else_=1)
    return (
        select(accounts.c.id, accounts.c.version, accounts.c.updated_at, datasets.c.name)
        .join(datasets, datasets.c.book_id == accounts.c.book_id)
        .order_by(first, accounts.c.id, datasets.c.id)
        .limit(accounts_max)
    )


def _number_of_accounts() -> Select[Any]:
    accounts, datasets = tables.accounts, tables.datasets
    joined = accounts.join(datasets, datasets.c.book_id == accounts.c.book_id)
    return select(func.count()).select_from(joined)


def _read(connection: Connection, ids: list[str]) -> dict[str, Account]:
    table, accounts = tables.accounts, {}
    for start in range(0, len(ids), IDS_MAX):
        part = ids[start : start + IDS_MAX]
        cells = read_cells(connection, set(part))
        for row in connection.execute(select(table).where(table.c.id.in_(part))).all():
            accounts[row.id] = account_from(row, cells.get(row.id, {}))
    return accounts
