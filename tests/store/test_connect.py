"""Connections: unsafe settings stop the start, snapshots are stable, writers wait in line."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import pytest
from sqlalchemy import event, select, text

from app.errors import StoreUnavailable
from app.ledger.account import EVERYBODY
from app.ledger.orders import State
from app.store import connect, tables
from app.store.connect import Database, FileLock
from app.store.writer.connection import ConnectionLost, Read
from app.store.writer.statements import statements
from app.store.writer.writer import open_connection
from tests.postgres import PostgresServer
from tests.store.ledgers import Ledger, execute


def test_a_ledger_with_safe_settings_starts(database: Database) -> None:
    database.check_safe()


def test_a_postgresql_that_may_lose_a_commit_is_refused(tmp_path: Path) -> None:
    server = PostgresServer.start(fsync=False)
    try:
        if not server.ours:
            pytest.skip("the settings of BURSAR_TEST_POSTGRES_URL are not ours")
        database = Database(server.url("postgres"))
        with pytest.raises(StoreUnavailable, match="fsync = on"):
            database.check_safe()
        database.engine.dispose()
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("setting", "value"), [("default_transaction_read_only", "on"), ("synchronous_commit", "off")]
)
def test_a_postgresql_session_that_cannot_commit_durably_is_refused(
    postgres: PostgresServer, setting: str, value: str
) -> None:
    database = Database(postgres.url("postgres"))

    def spoil(connection: Any, _: Any) -> None:
        connection.execute(f"SET {setting} = {value}")
        connection.commit()

    event.listen(database.engine, "connect", spoil)
    with pytest.raises(StoreUnavailable, match="must have"):
        database.check_safe()
    database.engine.dispose()


@pytest.mark.parametrize("pragma", ["synchronous = NORMAL", "synchronous = OFF"])
def test_a_sqlite_that_may_lose_a_commit_is_refused(tmp_path: Path, pragma: str) -> None:
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    database.check_safe()
    database.engine.dispose()
    event.listen(
        database.engine, "connect", lambda c, _: c.cursor().execute(f"PRAGMA {pragma}") and None
    )
    with pytest.raises(StoreUnavailable, match="synchronous FULL"):
        database.check_safe()
    database.engine.dispose()


def test_a_sqlite_without_a_write_ahead_log_is_refused() -> None:
    database = Database("sqlite:///:memory:")
    with pytest.raises(StoreUnavailable, match="WAL"):
        database.check_safe()
    database.engine.dispose()


def test_a_sqlite_library_that_may_corrupt_its_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "SQLITE_MIN", (99, 0, 0))
    with pytest.raises(StoreUnavailable, match="SQLite must be"):
        Database(f"sqlite:///{tmp_path / 'ledger.db'}").check_safe()


def test_foreign_keys_and_full_syncs_hold_on_every_connection(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    for _ in range(3):
        with database.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        database.engine.dispose()
    hot = asyncio.run(open_connection(database))
    wanted: list[Read] = [("PRAGMA synchronous", ()), ("PRAGMA foreign_keys", ())]
    assert asyncio.run(hot.read(wanted)) == [[(2,)], [(1,)]]
    hot.close()


def test_a_snapshot_does_not_change_while_others_write(ledger: Ledger) -> None:
    charges = select(tables.charges.c.id).where(
        tables.charges.c.analyst_id == ledger.analysts[0].id
    )
    with ledger.database.reading() as connection:
        assert len(connection.execute(charges).all()) == 0
        ledger.charge(ledger.order())
        assert len(connection.execute(charges).all()) == 0
    with ledger.database.reading() as connection:
        assert len(connection.execute(charges).all()) == 1


def test_a_failed_transaction_leaves_nothing(ledger: Ledger) -> None:
    def fail() -> None:
        with ledger.database.writing() as connection:
            connection.execute(text("UPDATE accounts SET epsilon_spent = 7"))
            raise LookupError

    before = ledger.everything()
    with pytest.raises(LookupError):
        fail()
    assert ledger.everything() == before


def test_only_one_connection_at_a_time_holds_the_write_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    inside: list[int] = []
    most: list[int] = []

    def enter() -> None:
        for _ in range(20):
            with lock.held():
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert max(most) == 1


def test_administration_and_charges_wait_for_each_other(ledger: Ledger) -> None:
    """Five threads make two hundred writes through both kinds of connection."""
    failures: list[BaseException] = []

    def grant() -> None:
        try:
            for tenths in range(20):
                ledger.grant("*", tenths=20 + tenths)
        except BaseException as error:  # noqa: BLE001  # the test reports it
            failures.append(error)

    threads = [threading.Thread(target=grant) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        ledger.charge(ledger.order())
    for thread in threads:
        thread.join()
    assert failures == []
    assert ledger.spent(None) == 10
    assert ledger.verified().sound


def test_a_hot_connection_that_breaks_raises_its_own_error(ledger: Ledger) -> None:
    async def ask_without_a_value() -> None:
        hot = await open_connection(ledger.database)
        try:
            with pytest.raises(ConnectionLost) as caught:
                await hot.read([(statements(sqlite=ledger.database.is_sqlite).principal, ())])
            assert str(caught.value) == ""
            assert caught.value.__cause__ is None
            await hot.rollback()
        finally:
            hot.close()

    asyncio.run(ask_without_a_value())


def test_the_ledgers_folder_and_lock_are_private(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'home' / 'ledger.db'}")
    execute(database, "CREATE TABLE t (n INTEGER)")
    assert (tmp_path / "home").stat().st_mode & 0o077 == 0
    assert (tmp_path / "home" / "ledger.db.lock").stat().st_mode & 0o077 == 0
    database.engine.dispose()


def test_sqlite_is_the_library_that_apsw_ships() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= connect.SQLITE_MIN


def test_a_cancelled_read_leaves_no_reply_for_the_next_caller(ledger: Ledger) -> None:
    """A connection whose read was cancelled refuses the next read, so no caller gets another's
    reply.
    """
    if ledger.database.is_sqlite:
        return  # SQLite replies without waiting

    async def leave() -> None:
        hot = await open_connection(ledger.database)
        sql = statements(sqlite=False)
        waiting = asyncio.ensure_future(hot.read([(sql.clock, ())]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(ConnectionLost):
            await hot.read([(sql.principal, ("nobody",))])
        hot.close()

    asyncio.run(leave())


@pytest.mark.parametrize("size", [1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 84, 85, 150, 256])
def test_batches_of_every_size_are_written_in_full(ledger: Ledger, size: int) -> None:
    """One statement inserts 64, 16, 4 or 1 rows."""
    ledger.grant(EVERYBODY, tenths=1000)
    ledger.grant(ledger.analysts[0].name, tenths=1000)
    catalogue = ledger.catalogue()
    for _ in range(2):  # first with reads, then from the cache
        orders = [ledger.order(catalogue=catalogue, question=f"{i} {'?' * i}") for i in range(size)]
        results = ledger.settle(*orders)
        assert [result.charge_id for result in results] == [order.charge_id for order in orders]  # type: ignore[union-attr]
        assert [ledger.state(order)[0] for order in orders] == [State.CHARGED] * size
    assert ledger.spent() == ledger.spent(None) == 2 * size
    assert ledger.verified().sound
