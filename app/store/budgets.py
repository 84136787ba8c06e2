"""Budgets: granting and changing them, and reading them."""

from typing import Any

from sqlalchemy import insert, select, update

from app.accounting.loss import Loss
from app.datasets import Dataset
from app.errors import Conflict, PreconditionFailed
from app.ledger.account import Account, account_id
from app.ledger.chain import canonical
from app.ledger.records import Budget
from app.store import tables
from app.store.administration import Administration, store_errors
from app.store.connect import Database
from app.store.hot import HotConnection
from app.store.statements import Statements


class Budgets:
    def __init__(self, database: Database, administration: Administration) -> None:
        self._database = database
        self._administration = administration

    def all(self, *, holder: str | None, after: str, limit: int) -> list[tuple[str, Budget]]:
        """Budgets with their place in the list, of everybody or of one holder."""
        accounts, datasets = tables.accounts, tables.datasets
        place = accounts.c.id + "/" + datasets.c.id
        statement = (
            select(accounts, datasets.c.name, place.label("place"))
            .join(datasets, datasets.c.book_id == accounts.c.book_id)
            .where(place > after)
        )
        if holder is not None:
            statement = statement.where(accounts.c.holder == holder)
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(statement.order_by(place).limit(limit)).all()
        return [(row.place, Budget(row.name, account_from(row))) for row in rows]

    def grant(
        self,
        actor: str,
        dataset: Dataset,
        holder: str,
        shown: str,
        *,
        currency: str,
        limit: Loss,
        expected_version: int | None,
        must_be_new: bool,
        must_exist: bool,
        reason: str | None,
    ) -> tuple[Account, bool]:
        """The account after the grant, and whether it is new. History is never rewritten."""
        table = tables.accounts
        with self._administration.change(catalogue=False) as change:
            row = change.connection.execute(
                select(table)
                .where(table.c.id == account_id(dataset.book_id, holder))
                .with_for_update()
            ).one_or_none()
            before = None if row is None else account_from(row)
            if must_be_new and before is not None:
                raise PreconditionFailed(
                    "This budget exists; leave If-None-Match out to change it."
                )
            if must_exist and before is None:
                raise PreconditionFailed("There is no such budget yet; leave If-Match out.")
            if expected_version is not None and (
                before is None or before.version != expected_version
            ):
                raise PreconditionFailed("The budget is not the one you saw; read it again.")
            if before and before.currency != currency and before.spent != Loss(0):
                raise Conflict(
                    "An account from which something is spent keeps its currency, "
                    f"{before.currency}."
                )
            after = Account(
                dataset.book_id,
                holder,
                shown,
                currency,
                limit,
                before.spent if before else Loss(0),
                before.version + 1 if before else 1,
            )
            values: dict[str, Any] = {
                "currency": currency,
                "epsilon_limit": limit.epsilon,
                "delta_limit": limit.delta,
                "version": after.version,
                "updated_at": change.now,
            }
            if before is None:
                change.connection.execute(
                    insert(table).values(
                        id=after.id,
                        book_id=after.book_id,
                        holder=holder,
                        shown=shown,
                        epsilon_spent=0,
                        delta_spent=0,
                        **values,
                    )
                )
            else:
                change.connection.execute(
                    update(table).where(table.c.id == after.id).values(**values)
                )
            change.append(
                dataset.book_id,
                kind="grant",
                actor=actor,
                body={
                    "dataset": dataset.name,
                    "holder": holder,
                    "before": None if before is None else _terms(before),
                    "after": _terms(after),
                    "reason": reason,
                },
            )
            return after, before is None


def find_accounts(
    hot: HotConnection, sql: Statements, *, book_id: str, holders: list[str]
) -> dict[str, Account]:
    wanted = canonical([account_id(book_id, holder) for holder in holders])
    (rows,) = hot.read([(sql.read_accounts, (wanted,))])
    return {account.holder: account for account in map(account_from_tuple, rows)}


def account_from_tuple(row: tuple[Any, ...]) -> Account:
    book_id, holder, shown, currency, e_limit, d_limit, e_spent, d_spent, version = row
    return Account(
        book_id, holder, shown, currency, Loss(e_limit, d_limit), Loss(e_spent, d_spent), version
    )


def account_from(row: Any) -> Account:
    return Account(
        row.book_id,
        row.holder,
        row.shown,
        row.currency,
        Loss(row.epsilon_limit, row.delta_limit),
        Loss(row.epsilon_spent, row.delta_spent),
        row.version,
    )


def _terms(account: Account) -> dict[str, Any]:
    return {
        "currency": account.currency,
        "epsilon_limit": account.limit.epsilon,
        "delta_limit": account.limit.delta,
    }
