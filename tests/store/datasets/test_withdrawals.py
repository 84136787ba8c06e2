"""Withdrawal of a dataset name on both stores: only names that were never charged are deleted.

A charge and a withdrawal that race agree on which came first.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select, text

from app.accounting.losses import pure_loss
from app.actions.datasets.withdraw_dataset import Withdrawal
from app.data.card import Card, Dataset
from app.errors import Conflict, DatasetClosed, IdempotencyConflict, NotFound
from app.ledger.account import EVERYBODY
from app.ledger.orders import Charged, ChargeOrder
from app.ledger.verification.verify import verify
from app.store import connect, tables
from app.store.administration import Administration
from app.store.connect import Database
from app.store.datasets import withdrawals
from app.store.datasets.old_versions import SqlOldVersions
from app.store.datasets.withdrawals import SqlWithdrawals
from app.store.writer import postgresql
from tests.queries.cards import card
from tests.server import wait_until
from tests.store.ledgers import CELLED, TENTH, Ledger, make_ledger, register
from tests.store.test_administration import last_entry

WAIT_SECONDS = 30
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


# Nothing was charged


def test_a_withdrawal_deletes_name_card_and_fingerprints_and_keeps_the_book(ledger: Ledger) -> None:
    before, book_id = ledger.dataset, ledger.dataset.book_id
    catalogue = ledger.catalogue()
    assert withdraw(ledger, reason="wrong person") is Withdrawal.WITHDRAWN
    with pytest.raises(NotFound):
        ledger.datasets.find(before.name)
    assert marks(ledger) == 0
    assert ledger.catalogue() == catalogue + 1
    said = last_entry(ledger, book_id)
    assert (said["kind"], said["actor"]) == ("dataset_withdrawn", "admin")
    assert said["body"]["dataset"] == before.name
    assert said["body"]["before"]["card"]["person"] == {"kind": "row"}
    assert (said["body"]["after"], said["body"]["reason"]) == (None, "wrong person")
    assert verify(ledger.history.snapshot(book_id)).sound


def test_the_same_data_may_be_registered_with_another_person(ledger: Ledger) -> None:
    with pytest.raises(Conflict):
        again(ledger, name=f"{ledger.dataset.name} too", card=OTHER_PERSON)
    withdraw(ledger)
    corrected = again(ledger, card=OTHER_PERSON)
    assert corrected.name == ledger.dataset.name
    assert corrected.book_id != ledger.dataset.book_id


def test_budgets_of_a_withdrawn_name_pay_for_nothing(ledger: Ledger) -> None:
    withdraw(ledger)
    corrected = again(ledger, card=OTHER_PERSON)
    holders = tuple(analyst.name.lower() for analyst in ledger.analysts)
    with pytest.raises(NotFound):
        ledger.datasets.find(corrected.name, holders)
    shown = {budget.dataset for _, budget in ledger.budgets.all(holders=None, after="", limit=9999)}
    assert ledger.dataset.name not in shown


def test_versions_of_a_withdrawn_name_may_be_deleted_everywhere(ledger: Ledger) -> None:
    old = SqlOldVersions(ledger.database)
    version_id = ledger.dataset.version.id
    assert old.unneeded([version_id, "v_unknown"]) == []
    withdraw(ledger)
    assert old.unneeded([version_id, "v_unknown"]) == [version_id]


def test_withdrawing_one_of_two_names_leaves_the_book_to_the_other(ledger: Ledger) -> None:
    second = again(ledger, name=f"{ledger.dataset.name} too")
    withdraw(ledger)
    assert marks(ledger) > 0
    assert ledger.datasets.find(second.name).book_id == ledger.dataset.book_id
    with pytest.raises(Conflict):
        again(ledger, card=OTHER_PERSON)  # the second name still declares who the person is
    withdraw(ledger, second.name)
    assert marks(ledger) == 0
    again(ledger, card=OTHER_PERSON)


def test_cells_go_with_the_last_name_that_declared_them(celled: Ledger) -> None:
    plain = again(celled, name=f"{celled.dataset.name} too", card=card())
    assert celled.datasets.find(plain.name).celled
    withdraw(celled)
    assert not celled.datasets.find(plain.name).celled


def test_cells_stay_while_another_name_declares_them(celled: Ledger) -> None:
    same = Card.model_validate(CELLED)
    second = again(celled, name=f"{celled.dataset.name} too", card=same)
    withdraw(celled)
    assert celled.datasets.find(second.name).celled


# Something was charged


def charge(ledger: Ledger) -> None:
    ledger.charge(ledger.order())


def charge_and_void(ledger: Ledger) -> None:
    order = ledger.order()
    ledger.charge(order)
    ledger.settle(ledger.void(order))


@pytest.mark.invariant("I29")
@pytest.mark.parametrize("lose", [charge, charge_and_void, book])
def test_a_book_that_was_charged_stays_with_its_data(
    ledger: Ledger, lose: Callable[[Ledger], None]
) -> None:
    lose(ledger)
    spent = ledger.spent(None)
    assert withdraw(ledger) is Withdrawal.CLOSED
    assert ledger.datasets.find(ledger.dataset.name).closed
    assert marks(ledger) > 0
    assert ledger.spent(None) == spent
    said = last_entry(ledger, ledger.dataset.book_id)
    assert (said["kind"], said["body"]["after"]["closed"]) == ("dataset_changed", True)
    with pytest.raises(Conflict):
        again(ledger)  # the name does not return
    with pytest.raises(Conflict):
        again(ledger, name=f"{ledger.dataset.name} too", card=OTHER_PERSON)
    entries = ledger.everything()["entries"]
    assert withdraw(ledger) is Withdrawal.CLOSED  # a second withdrawal changes nothing
    assert ledger.everything()["entries"] == entries
    assert ledger.verified().sound


def test_a_charge_under_another_name_counts_too(ledger: Ledger) -> None:
    second = again(ledger, name=f"{ledger.dataset.name} too")
    charge(ledger)
    assert withdraw(ledger, second.name) is Withdrawal.CLOSED
    assert ledger.datasets.find(second.name).closed
    assert not ledger.datasets.find(ledger.dataset.name).closed


@pytest.mark.invariant("I29")
def test_an_unknown_kind_of_entry_keeps_the_book(ledger: Ledger) -> None:
    with Administration(ledger.database).change() as change:
        change.append(ledger.dataset.book_id, kind="anything_new", actor="admin", body={})
    assert withdraw(ledger) is Withdrawal.CLOSED


# Requests


def test_a_repeated_request_has_the_outcome_of_the_first(ledger: Ledger) -> None:
    assert withdraw(ledger, request="r1", body="b") is Withdrawal.WITHDRAWN
    corrected = again(ledger, card=OTHER_PERSON)
    assert withdraw(ledger, request="r1", body="b") is Withdrawal.WITHDRAWN
    assert ledger.datasets.find(corrected.name).id == corrected.id
    with pytest.raises(IdempotencyConflict):
        withdraw(ledger, request="r1", body="another")


def test_a_repeated_registration_does_not_find_its_successor(ledger: Ledger) -> None:
    withdraw(ledger)
    first = again(ledger, request="made first", body="b")
    assert again(ledger, request="made first", body="b").id == first.id
    withdraw(ledger)
    second = again(ledger, card=OTHER_PERSON)
    assert second.id != first.id
    with pytest.raises(Conflict, match="withdrawn"):
        again(ledger, request="made first", body="b")


def test_an_unknown_name_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(NotFound):
        withdraw(ledger, "nobody's")
    withdraw(ledger)
    with pytest.raises(NotFound):
        withdraw(ledger)


# Concurrent requests


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


# Saboteurs


def test_verify_finds_a_withdrawal_that_ignored_a_charge(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge(ledger)
    monkeypatch.setattr(withdrawals, "_was_charged", lambda *_: False)
    assert withdraw(ledger) is Withdrawal.WITHDRAWN
    report = verify(ledger.history.snapshot(ledger.dataset.book_id))
    assert "it withdraws data for which something was charged" in {
        finding.problem for finding in report.findings
    }


def test_verify_finds_a_charge_after_the_data_were_released(ledger: Ledger) -> None:
    withdraw(ledger)
    ledger.charge(ledger.order())  # under the new catalogue number, as if the check were missing
    report = verify(ledger.history.snapshot(ledger.dataset.book_id))
    assert "it charges data that were withdrawn" in {f.problem for f in report.findings}
