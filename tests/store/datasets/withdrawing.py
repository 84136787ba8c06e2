"""Withdrawals and charges of dataset names, and what they leave."""

from typing import Any

from sqlalchemy import select

from app.accounting.losses import pure_loss
from app.actions.datasets.withdraw_dataset import Withdrawal
from app.data.card import Card, Dataset
from app.ledger.account import EVERYBODY
from app.store import tables
from app.store.administration import Administration
from app.store.datasets.withdrawals import SqlWithdrawals
from tests.queries.cards import card
from tests.store.ledgers import TENTH, Ledger, register

OTHER_PERSON = Card.model_validate(
    card().model_dump() | {"person": {"kind": "column", "column": "who", "rows_max": 3}}
)


def withdraw(ledger: Ledger, name: str | None = None, **more: Any) -> Withdrawal:
    options = {"reason": "a test", "request": None, "body": "", **more}
    store = SqlWithdrawals(Administration(ledger.database))
    return store.withdraw("admin", name or ledger.dataset.name, **options)


def marks(ledger: Ledger, book_id: str | None = None) -> int:
    known = tables.fingerprints
    with ledger.database.reading() as connection:
        found = connection.execute(
            select(known).where(known.c.book_id == (book_id or ledger.dataset.book_id))
        )
        return len(found.all())


def again(ledger: Ledger, **changes: Any) -> Dataset:
    """Register the same rows from the same file once more."""
    name = ledger.dataset.name
    return register(
        ledger.datasets,
        changes.pop("name", name),
        content=f"rows of {name}",
        place=f"{name}.csv",
        **changes,
    )


def book(ledger: Ledger, tenths: int = 1) -> None:
    ledger.budgets.book(
        "admin",
        ledger.dataset,
        (EVERYBODY,),
        losses=[pure_loss(tenths * TENTH)],
        record={"events": []},
        reason="a test",
        request=None,
        body="",
    )


def charge(ledger: Ledger) -> None:
    ledger.charge(ledger.order())


def charge_and_void(ledger: Ledger) -> None:
    order = ledger.order()
    ledger.charge(order)
    ledger.settle(ledger.void(order))
