"""Budgets: granting and changing them, booking losses from elsewhere, and reading them."""

import json
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache, reduce
from operator import add
from typing import Any

from sqlalchemy import delete, insert, select, update

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import ATTO, limit_units
from app.data.card import Card, Dataset
from app.errors import Conflict, NotFound
from app.ledger.account import Account, account_id
from app.ledger.balance import Balance
from app.ledger.currency_change import carried_over
from app.ledger.loss_record import loss_record
from app.ledger.precondition import Precondition
from app.ledger.records import Budget
from app.store import tables
from app.store.account_rows import account_from, read_cells, spend_columns
from app.store.administration import Administration, Change, store_errors
from app.store.connect import Database
from app.store.datasets.withdrawals import must_be_there

_card = lru_cache(maxsize=256)(Card.model_validate_json)


class SqlBudgets:
    def __init__(self, database: Database, administration: Administration) -> None:
        self._database = database
        self._administration = administration

    def all(
        self,
        *,
        holders: tuple[str, ...] | None,
        after: str,
        limit: int,
        dataset: str | None = None,
    ) -> list[tuple[str, Budget]]:
        """Budgets with their cursors, of these holders, or of everybody if None.

        `dataset`: folded name; only budgets under this name.
        """
        accounts, datasets = tables.accounts, tables.datasets
        cursor = accounts.c.id + "/" + datasets.c.id
        statement = (
            select(accounts, datasets.c.name, datasets.c.card, cursor.label("place"))
            .join(datasets, datasets.c.book_id == accounts.c.book_id)
            .where(cursor > after)
        )
        if holders is not None:
            statement = statement.where(accounts.c.holder.in_(holders))
        if dataset is not None:
            statement = statement.where(datasets.c.folded == dataset)
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(statement.order_by(cursor).limit(limit)).all()
            cells = read_cells(connection, {row.id for row in rows})
        return [
            (row.place, Budget(row.name, account_from(row, cells.get(row.id, {})), _card(row.card)))
            for row in rows
        ]

    def grant(
        self,
        actor: str,
        dataset: Dataset,
        holder: str,
        shown: str,
        *,
        currency: str,
        wish: GrantTerms,
        precondition: Precondition,
        reason: str | None,
    ) -> tuple[Account, bool]:
        """Grant or change a budget. Returns the account, and whether it is new."""
        with self._administration.change(catalogue=False) as change:
            id_of_account = account_id(dataset.book_id, holder)
            before = locked_account(change, id_of_account)
            if before is None:  # the catalogue row serializes new accounts; then read again
                change.raise_catalogue()
                before = locked_account(change, id_of_account)
            precondition.must_hold(None if before is None else before.version)
            after = granted_account(before, dataset, holder, shown, currency, wish)
            write_account(change, after, new=before is None)
            if before is not None and before.currency != currency:
                change.raise_catalogue()  # cached plans may depend on the currency
                write_cells(change, after)
            must_be_there(change, dataset)
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

    def book(
        self,
        actor: str,
        dataset: Dataset,
        holders: tuple[str, ...],
        *,
        losses: list[Loss],
        record: dict[str, Any],
        reason: str | None,
        request: str | None,
        body: str,
    ) -> int:
        """Add losses from elsewhere to these accounts, regardless of their limits.

        Returns the sequence number of the entry that records them.
        """
        with self._administration.change(catalogue=False) as change:
            if (earlier := change.remembered(request, body)) is not None:
                return int(earlier)
            accounts_or_none = [
                locked_account(change, account_id(dataset.book_id, h)) for h in sorted(holders)
            ]
            accounts = [account for account in accounts_or_none if account is not None]
            if len(accounts) != len(holders):
                raise NotFound("There is no such budget: grant it first.")
            after = [account.book(losses) for account in accounts]
            for account in after:
                write_account(change, account, new=False)
            must_be_there(change, dataset)
            entry = change.append(
                dataset.book_id,
                kind="booked",
                actor=actor,
                body={
                    "dataset": dataset.name,
                    "accounts": [account.holder for account in after],
                    **loss_record(
                        reduce(add, losses), frozenset(account.currency for account in after)
                    ),
                    **record,
                    "reason": reason,
                },
            )
            change.remember(request, body, str(entry.seq))
            return entry.seq


def granted_account(
    before: Account | None,
    dataset: Dataset,
    holder: str,
    shown: str,
    currency: str,
    wish: GrantTerms,
) -> Account:
    rule = COMPOSITION_RULES[currency]
    if before is None:
        unspent = Balance(rule.nothing, dataset.card.neighbours == "replace_one")
        return Account(dataset.book_id, holder, shown, currency, rule.freeze(wish), unspent, 1)
    balance: Balance | None = before.balance
    if before.currency != currency:
        balance = carried_over(before.balance, before.currency, currency)
    if balance is None:
        raise Conflict(
            f"The loss spent in {before.currency} cannot be converted to {currency}; "
            "only pure and approximate accounts can change their currency."
        )
    star = None
    if not before.untouched and before.terms.order is not None:
        # An account that has spent keeps delta and its shares. When two limits have the
        # same delta and shares, the larger allows every answer that the smaller allows. So the
        # larger is the promise.
        star, kept = before.terms.order, before.terms
        if limit_units(wish.delta, ATTO) != kept.delta:
            raise Conflict("An account that has spent keeps its delta.")
        if wish.failure_delta not in (None, Decimal(kept.limits[1]) / ATTO):
            raise Conflict("An account that has spent keeps its failure_delta.")
        wish = replace(wish, failure_delta=Decimal(kept.limits[1]) / ATTO)
    terms = rule.freeze(wish, star=star)
    version = before.version + 1
    return before._replace(currency=currency, terms=terms, balance=balance, version=version)


def locked_account(change: Change, id_of_account: str) -> Account | None:
    table = tables.accounts
    row = change.connection.execute(
        select(table).where(table.c.id == id_of_account).with_for_update()
    ).one_or_none()
    if row is None:
        return None
    return account_from(row, read_cells(change.connection, {id_of_account}).get(id_of_account, {}))


def write_account(change: Change, account: Account, *, new: bool) -> None:
    change.written.accounts[account.id] = account
    epsilon, delta, curve = spend_columns(account.balance.common)
    values: dict[str, Any] = {
        "currency": account.currency,
        "terms": account.terms.text(),
        "epsilon_spent": epsilon,
        "delta_spent": delta,
        "curve_spent": curve,
        "version": account.version,
        "updated_at": change.now,
    }
    table = tables.accounts
    if not new:
        change.connection.execute(update(table).where(table.c.id == account.id).values(**values))
        return
    change.connection.execute(
        insert(table).values(
            id=account.id,
            book_id=account.book_id,
            holder=account.holder,
            shown=account.shown,
            pairs=int(account.balance.persons_may_move),
            **values,
        )
    )


def write_cells(change: Change, account: Account) -> None:
    """Replace all cell rows of an account, in its current currency."""
    table = tables.cells
    change.connection.execute(delete(table).where(table.c.account_id == account.id))
    for cell, spend in account.balance.cells.items():
        epsilon, delta, curve = spend_columns(spend)
        change.connection.execute(
            insert(table).values(
                account_id=account.id,
                cell=cell,
                epsilon_spent=epsilon,
                delta_spent=delta,
                curve_spent=curve,
            )
        )


def _terms(account: Account) -> dict[str, Any]:
    return {
        "currency": account.currency,
        "terms": json.loads(account.terms.text()),
    }
