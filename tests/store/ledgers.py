"""A small ledger for tests of the store: two analysts, one dataset, budgets and matching orders."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

from sqlalchemy import select, text

from app.access import Analyst, Role, holders_of
from app.accounting.losses import pure_loss
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import PICO
from app.data.card import Dataset, Source, Version
from app.data.inspection import Inspection
from app.ledger.account import EVERYBODY, Account
from app.ledger.orders import Charged, ChargeOrder, State, VoidOrder, WriterOrder
from app.ledger.precondition import Precondition
from app.ledger.verification.report import Report
from app.ledger.verification.verify import verify
from app.names import folded, new_id
from app.store import tables
from app.store.administration import Administration, install
from app.store.analysts import SqlAnalysts
from app.store.budgets import SqlBudgets
from app.store.connect import Database
from app.store.datasets.datasets import SqlDatasets
from app.store.history.history import SqlHistory
from app.store.writer.batch import Result, settle
from app.store.writer.connection import WriterConnection
from app.store.writer.statements import statements
from app.store.writer.writer import Writer, open_connection
from tests.queries.cards import card

TENTH = PICO // 10
CARD = card()
CELLED: dict[str, Any] = CARD.model_dump() | {"cells": {"column": "city"}}  # four cells
_numbers = count(1)


@dataclass
class Ledger:
    """Every part of the store on one database, which books of several ledgers may share."""

    database: Database
    people: SqlAnalysts
    datasets: SqlDatasets
    budgets: SqlBudgets
    history: SqlHistory
    analysts: list[Analyst]
    dataset: Dataset
    _hot: WriterConnection | None = field(default=None)

    # Orders

    def order(
        self, *, key: str | None = None, tenths: int = 1, who: int = 0, **changes: Any
    ) -> ChargeOrder:
        analyst = self.analysts[who]
        made = ChargeOrder(
            charge_id=new_id("q"),
            analyst_id=analyst.id,
            holders=holders_of(analyst.name, analyst.groups),
            actor=analyst.name,
            request_key=key or f"{self.dataset.id} {next(_numbers)}",
            body_hash=f"body of {tenths}",
            dataset_id=self.dataset.id,
            dataset_name=self.dataset.name,
            version_id=self.dataset.version.id,
            book_id=self.dataset.book_id,
            plan_digest=f"plan of {tenths}",
            loss=pure_loss(tenths * TENTH),
            cells=None,
            cells_shown=None,
            question="{}",
            record={"query": "count", "mechanism": "laplace"},
            theorem="a theorem",
            fresh=True,
            refusal=None,
            catalogue=self.catalogue(),
            lease_seconds=60.0,
        )
        return made._replace(**changes)

    def void(self, order: ChargeOrder, attempt: int = 1) -> VoidOrder:
        return VoidOrder(
            order.charge_id,
            attempt,
            order.book_id,
            (*order.holders, EVERYBODY),
            order.loss,
            order.cells,
            reason="a test",
        )

    # Changes

    def settle(self, *orders: WriterOrder) -> list[Result]:
        """Settle one batch on a connection that stays open."""
        return asyncio.run(self._settle(orders))

    async def _settle(self, orders: Sequence[WriterOrder]) -> list[Result]:
        if self._hot is None:
            self._hot = await open_connection(self.database)
        return await settle(orders, self._hot, statements(sqlite=self.database.is_sqlite))

    def charge(self, order: ChargeOrder) -> Charged:
        (result,) = self.settle(order)
        assert isinstance(result, Charged), result
        return result

    def grant(
        self,
        holder: str,
        *,
        tenths: int | None,
        currency: str = "pure",
        delta: str = "0",
        wish: GrantTerms | None = None,
        **more: Any,
    ) -> tuple[Account, bool]:
        arguments = {
            "precondition": Precondition(),
            "reason": "a test",
            **more,
        }
        return self.budgets.grant(
            "admin",
            self.dataset,
            folded(holder),
            holder,
            currency=currency,
            wish=wish or GrantTerms(epsilon=Decimal(tenths or 0) / 10, delta=Decimal(delta)),
            **arguments,
        )

    # Reads

    def catalogue(self) -> int:
        with self.database.reading() as connection:
            number: int = connection.execute(select(tables.installation.c.catalogue)).scalar_one()
            return number

    def account(self, holder: str) -> Account:
        found = self.budgets.all(holders=(folded(holder),), after="", limit=1000)
        (account,) = {
            b.account.id: b.account for _, b in found if b.account.book_id == self.dataset.book_id
        }.values()
        return account

    def spent(self, who: int | None = 0) -> int:
        """Epsilon spent, in tenths; the shared account's if no analyst is named."""
        name = EVERYBODY if who is None else self.analysts[who].name
        units = self.account(name).balance.common[0]
        assert units % TENTH == 0
        return units // TENTH

    def state(self, order: ChargeOrder) -> tuple[State, str | None]:
        asked = self.history.one(order.charge_id, analyst_id=None)
        return asked.state, asked.answer

    def everything(self) -> dict[str, list[Any]]:
        """Every row of every table."""
        with self.database.reading() as connection:
            return {
                table.name: sorted(map(tuple, connection.execute(select(table)).all()), key=repr)
                for table in tables.metadata.sorted_tables
            }

    def verified(self) -> Report:
        return verify(self.history.snapshot(self.dataset.book_id, stored=True))

    def close(self) -> None:
        if self._hot is not None:
            self._hot.close()
        self.database.engine.dispose()


def make_ledger(
    database: Database, *, everybody: int = 20, limits: tuple[int, ...] = (10, 10), **dataset: Any
) -> Ledger:
    """Make a ledger on a migrated database, with limits in tenths of epsilon."""
    install(database)
    administration = Administration(database)
    people = SqlAnalysts(database, administration)
    datasets = SqlDatasets(database, administration)
    people.first_admin(None)
    number = next(_numbers)
    analysts = [
        people.create("admin", f"Analyst {number}-{i}", Role.ANALYST, None, None, "")
        for i in range(len(limits))
    ]
    ledger = Ledger(
        database,
        people,
        datasets,
        SqlBudgets(database, administration),
        SqlHistory(database),
        analysts,
        register(datasets, f"people {number}", **dataset),
    )
    ledger.grant(EVERYBODY, tenths=everybody)
    for analyst, limit in zip(analysts, limits, strict=True):
        ledger.grant(analyst.name, tenths=limit)
    return ledger


def register(datasets: SqlDatasets, name: str, **changes: Any) -> Dataset:
    details = {"content": f"rows of {name}", "place": f"{name}.csv", "card": CARD, **changes}
    digest = details.get("digest", "digest")
    dataset = Dataset(
        id=new_id("d"),
        name=name,
        description="",
        book_id="",
        card=details["card"],
        source=Source("duckdb", f"{name}.csv"),
        version=Version(new_id("v"), 1, digest, details.get("seed", "seed")),
        closed=False,
        created_at=0,
    )
    return datasets.register(
        "admin",
        dataset,
        Inspection(digest, details["content"], details["place"], celled=details.get("celled")),
        reason="a test",
        request=details.get("request"),
        body=details.get("body", ""),
    )


def execute(database: Database, statement: str, **values: Any) -> None:
    with database.writing() as connection:
        connection.execute(text(statement), values)


async def together(writer: Writer, orders: list[ChargeOrder]) -> list[Any]:
    return await asyncio.gather(*map(writer.submit, orders), return_exceptions=True)
