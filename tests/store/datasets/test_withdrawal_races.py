"""A charge and a withdrawal that race agree on which came first, on both stores."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select, text

from app.actions.datasets.withdraw_dataset import Withdrawal
from app.errors import DatasetClosed, NotFound
from app.ledger.account import EVERYBODY
from app.ledger.orders import Charged, ChargeOrder
from app.ledger.verification.verify import verify
from app.store import connect, tables
from app.store.connect import Database
from app.store.writer import postgresql
from tests.bursard import wait_until
from tests.store.datasets.withdrawing import book, marks, withdraw
from tests.store.ledgers import Ledger, make_ledger

WAIT_SECONDS = 30


@pytest.mark.invariant("I29")
def test_a_dataset_read_before_its_withdrawal_cannot_be_granted_or_booked(ledger: Ledger) -> None:
    withdraw(ledger)
    before = ledger.everything()
    with pytest.raises(NotFound):
        ledger.grant(EVERYBODY, tenths=50)
    with pytest.raises(NotFound):
        ledger.grant("somebody new", tenths=5)
    with pytest.raises(NotFound):
        book(ledger)
    assert ledger.everything() == before


@pytest.mark.invariant("I29")
def test_a_charge_planned_before_the_withdrawal_is_refused(ledger: Ledger) -> None:
    # the connection now caches the book
    ledger.settle(ledger.order(refusal=DatasetClosed("a test")))
    order = ledger.order()
    withdraw(ledger)
    (result,) = ledger.settle(order)
    assert not isinstance(result, Charged)
    assert verify(ledger.history.snapshot(ledger.dataset.book_id)).sound


@contextmanager
def unlimited() -> Iterator[None]:
    """Let new connections wait for a lock, and hold one, without a time limit.

    The ledger's own limit is ten seconds. A busy machine may need longer to queue every request.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (connect, postgresql):
            patch.setattr(module, "LOCK_TIMEOUT_MS", 0)
            patch.setattr(module, "IDLE_IN_TRANSACTION_MS", 0)
        yield


@contextmanager
def held(ledger: Ledger) -> Iterator[Callable[[int], None]]:
    """Lock the book on another connection until the block ends.

    Yields a function that waits until n requests queue for the lock.
    """
    if ledger.database.is_sqlite:
        pytest.skip("SQLite has one writer at a time, so no request waits for a row")
    ledger.database.engine.dispose()
    with (
        unlimited(),
        ledger.database.engine.connect() as holder,
        ledger.database.engine.connect() as looker,
    ):
        books = tables.books
        locked = select(books).where(books.c.id == ledger.dataset.book_id).with_for_update()
        holder.execute(locked)
        me = holder.execute(text("SELECT pg_backend_pid()")).scalar_one()
        looker = looker.execution_options(isolation_level="AUTOCOMMIT")

        def wait_for(number: int) -> None:
            waiting = text(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database() AND pid <> :me"
            )
            wait_until(
                lambda: looker.execute(waiting, {"me": me}).scalar_one() >= number,
                WAIT_SECONDS,
                f"{number} requests do not wait for the book yet",
            )

        yield wait_for
        holder.rollback()


@pytest.mark.invariant("I29")
@pytest.mark.parametrize("first", ["charge", "withdrawal"])
def test_a_charge_and_a_withdrawal_that_queue_for_the_book_agree(
    ledger: Ledger, first: str
) -> None:
    """Both start before either can read the book. The first to lock it decides."""
    order = ledger.order()
    deeds: dict[str, Callable[[], Any]] = {
        "charge": lambda: ledger.settle(order)[0],
        "withdrawal": lambda: withdraw(ledger),
    }
    ways = sorted(deeds, key=lambda name: name != first)
    with ThreadPoolExecutor() as threads:
        with held(ledger) as wait_for:
            running: dict[str, Future[Any]] = {}
            for number, name in enumerate(ways, 1):
                running[name] = threads.submit(deeds[name])
                wait_for(number)
        outcome = running["withdrawal"].result(WAIT_SECONDS)
        charged = isinstance(running["charge"].result(WAIT_SECONDS), Charged)
    assert charged == (first == "charge")
    assert outcome is (Withdrawal.CLOSED if charged else Withdrawal.WITHDRAWN)
    must_agree(ledger, order, charged=charged)


@pytest.mark.invariant("I29")
def test_concurrent_charges_and_withdrawals_agree_with_the_ledger(database: Database) -> None:
    """Run rounds in which either may come first. Each reply must match the ledger."""
    for _ in range(12):
        ledger = make_ledger(database)
        order = ledger.order()
        with ThreadPoolExecutor() as threads:
            charging = threads.submit(ledger.settle, order)
            outcome = threads.submit(withdraw, ledger).result(WAIT_SECONDS)
            (result,) = charging.result(WAIT_SECONDS)
        charged = isinstance(result, Charged)
        assert outcome is (Withdrawal.CLOSED if charged else Withdrawal.WITHDRAWN)
        must_agree(ledger, order, charged=charged)
        ledger.close()


def must_agree(ledger: Ledger, order: ChargeOrder, *, charged: bool) -> None:
    report = verify(ledger.history.snapshot(ledger.dataset.book_id))
    assert report.sound, report.findings
    entries = ledger.history.entries(book_id=ledger.dataset.book_id, after=(0, "", 0), limit=1000)
    charges = [json.loads(e.text)["body"]["charge"] for e in entries if e.kind == "charge"]
    assert charges == ([order.charge_id] if charged else [])
    assert (marks(ledger) > 0) == charged
