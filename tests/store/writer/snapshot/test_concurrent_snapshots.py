"""Two servers with snapshots on one ledger decide like one that always reads."""

import asyncio
import fcntl
import threading

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import text

from app.data.card import Card
from app.errors import BudgetExhausted
from app.ledger.account import EVERYBODY
from app.ledger.orders import Charged, ChargeOrder, PreparedAnswer, Settled
from app.store.connect import Database
from app.store.writer.batch import Result
from app.store.writer.connection import now_microseconds
from app.store.writer.writer import Writer
from tests.effort import examples
from tests.store.ledgers import CELLED, Ledger, make_ledger
from tests.store.writer.snapshot.snapshot_server import Server
from tests.store.writer.test_prepared_answers import Draws
from tests.store.writer.test_random_histories import Charge, Grant, History, Settle, batches, plain


def at_once_by_both(servers: tuple[Server, Server], *orders: ChargeOrder) -> list[Result]:
    start = threading.Barrier(2)
    results: dict[int, Result] = {}

    def go(turn: int) -> None:
        start.wait()
        (results[turn],) = servers[turn].settle(orders[turn])

    threads = [threading.Thread(target=go, args=(turn,)) for turn in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[0], results[1]]


@pytest.mark.parametrize("knowing", [True, False])
def test_waiting_for_the_same_key_does_not_end_in_a_false_budget_refusal(
    ledger: Ledger, servers: tuple[Server, Server], knowing: bool
) -> None:
    """The budget covers one charge. The second server learns that the first attempt is still
    running.
    """
    ledger.grant(EVERYBODY, tenths=1000)
    for number in range(30):
        ledger.grant(ledger.analysts[0].name, tenths=3 + number)
        if knowing:
            for server in servers:
                server.settle(ledger.order(tenths=9))  # refused, and thus in the snapshot
        order = ledger.order()
        both = at_once_by_both(servers, order, order._replace(charge_id=f"{order.charge_id}x"))
        assert sorted(type(each).__name__ for each in both) == ["Charged", "StillRunning"]
    assert ledger.verified().sound


def test_waiting_for_a_reusable_answer_does_not_end_in_a_refusal(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    """The second server finds the answer, or it paid first and the other one is refused."""
    ledger.grant(EVERYBODY, tenths=1000)
    for number in range(30):
        ledger.grant(ledger.analysts[0].name, tenths=3 + number)
        plan = f"plan {number}"
        drawn = ledger.order()._replace(plan_digest=plan, at_once=PreparedAnswer(Draws(), 0.0))
        reusing = ledger.order(fresh=False)._replace(plan_digest=plan)
        first, other = at_once_by_both(servers, drawn, reusing)
        if isinstance(first, Settled):
            assert isinstance(other, Settled), other
            assert other.reused
        else:
            assert (type(first), type(other)) == (BudgetExhausted, Charged)


def test_entries_of_one_sqlite_file_are_dated_at_their_commit(
    ledger: Ledger, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who follows all books by time misses no charge that waited for the lock."""
    if not ledger.database.is_sqlite:
        return  # PostgreSQL locks each book, and readers follow it book by book
    assert ledger.database.write_lock is not None
    _, server = servers
    order = ledger.order()
    waits, flock = threading.Event(), fcntl.flock

    def flock_seen(descriptor: int, how: int) -> None:
        if not how & fcntl.LOCK_NB:
            waits.set()
        flock(descriptor, how)

    with ledger.database.write_lock.held():
        monkeypatch.setattr(fcntl, "flock", flock_seen)
        waiting = threading.Thread(target=server.settle, args=(order,))
        waiting.start()
        assert waits.wait(60)
        until = now_microseconds()
    waiting.join()
    assert ledger.history.one(order.charge_id, analyst_id=None).created_at >= until


@examples(
    40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=batches, turns=st.lists(st.integers(0, 1), min_size=7, max_size=7))
def test_servers_with_snapshots_decide_like_a_server_that_always_reads(
    database: Database, history: list[list[Charge | Settle] | Grant], turns: list[int]
) -> None:
    """Two servers alternate on one ledger. A server without a snapshot runs the same history on
    another.
    """
    runs = [History(make_ledger(database)) for _ in range(2)]
    knowing = [Server(runs[0].ledger), Server(runs[0].ledger)]
    asking = Server(runs[1].ledger)
    asking.always_ask()
    try:
        for batch, turn in zip(history, turns, strict=False):
            if isinstance(batch, Grant):
                for run in runs:
                    run.grant(batch)
                continue
            ours, theirs = (run.orders_of(batch) for run in runs)
            names = [{o.charge_id: i for i, o in enumerate(run.orders)} for run in runs]
            got, expected = knowing[turn].settle(*ours), asking.settle(*theirs)
            for order, result, other in zip(ours, got, expected, strict=True):
                if isinstance(order, ChargeOrder):
                    assert plain(result, names[0]) == plain(other, names[1])
            assert list(runs[0].spends().values()) == list(runs[1].spends().values())
            assert runs[0].ledger.verified().sound
    finally:
        for server in (*knowing, asking):
            server.close()
        for run in runs:
            run.ledger.close()


@given(
    history=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.integers(0, 1),
            st.integers(1, 3),
            st.none() | st.sets(st.integers(0, 3), min_size=1).map(sorted).map(tuple),
        ),
        min_size=3,
        max_size=12,
    )
)
@examples(15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_spends_of_cells_are_part_of_the_snapshot(
    database: Database, history: list[tuple[int, int, int, tuple[int, ...] | None]]
) -> None:
    """Two servers and two analysts in random order."""
    ledgers = [make_ledger(database, card=Card.model_validate(CELLED)) for _ in range(2)]
    knowing = [Server(ledgers[0]), Server(ledgers[0])]
    asking = Server(ledgers[1])
    asking.always_ask()
    try:
        for turn, who, tenths, cells in history:
            (got,), (expected,) = (
                server.settle(ledger.order(who=who, tenths=tenths, cells=cells))
                for server, ledger in ((knowing[turn], ledgers[0]), (asking, ledgers[1]))
            )
            assert type(got) is type(expected)
            balances = [
                [ledger.account(each.name).balance for each in ledger.analysts]
                for ledger in ledgers
            ]
            assert balances[0] == balances[1]
        assert ledgers[0].verified().sound
    finally:
        for server in (*knowing, asking):
            server.close()
        for ledger in ledgers:
            ledger.close()


def test_servers_that_charge_concurrently_never_deadlock(ledger: Ledger) -> None:
    """Four servers use the same keys in one book, in one lock order.

    PostgreSQL counts the deadlocks it had to break.
    """
    ledger.grant(EVERYBODY, tenths=1000)
    for analyst in ledger.analysts:
        ledger.grant(analyst.name, tenths=400)
    before = deadlocks(ledger.database)  # SQLite has a single lock
    keys = [f"{ledger.dataset.id} circle {i}" for i in range(100)]
    catalogue = ledger.catalogue()

    async def serve(outcomes: list[object]) -> None:
        writer = Writer(ledger.database)
        for key in keys:
            orders = [
                ledger.order(key=f"{key} {i}", who=i % 2, catalogue=catalogue) for i in range(4)
            ]
            outcomes += await asyncio.gather(*map(writer.submit, orders), return_exceptions=True)
        await writer.stop()

    outcomes: list[list[object]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda o=o: asyncio.run(serve(o))) for o in outcomes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    charged = [r.charge_id for each in outcomes for r in each if isinstance(r, Charged)]
    assert len(charged) == len(set(charged)) == 400
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (200, 200, 400)
    assert ledger.verified().sound
    assert deadlocks(ledger.database) == before


def deadlocks(database: Database) -> int:
    if database.is_sqlite:
        return 0
    with database.engine.connect() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        found = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        number: int = connection.execute(text(found)).scalar_one()
        return number
