"""The snapshot a connection keeps after a batch: it saves reads, and a stale one is harmless."""

import asyncio
import fcntl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import text

from app.data.card import Card
from app.errors import BudgetExhausted
from app.ledger.account import EVERYBODY
from app.ledger.orders import (
    Charged,
    ChargeOrder,
    Order,
    PreparedAnswer,
    RecordOrder,
    Settled,
    StaleCatalogue,
    State,
)
from app.store.connect import Database
from app.store.writer import snapshot as known_module
from app.store.writer.batch import Result, settle
from app.store.writer.connection import Read, Rows, WriterConnection, now_microseconds
from app.store.writer.snapshot import MARGIN_MICROSECONDS
from app.store.writer.statements import CLOCK_LATE_MAX, statements
from app.store.writer.writer import Writer, open_connection
from tests.effort import examples
from tests.store.ledgers import CELLED, Ledger, make_ledger, register
from tests.store.writer.test_prepared_answers import Draws
from tests.store.writer.test_random_histories import Charge, Grant, History, Settle, batches, plain


@pytest.fixture(autouse=True)
def never_doubting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep guessing after a wrong guess, so that the tests exercise guesses."""
    monkeypatch.setattr(known_module, "DOUBTED", 0)


class Server:
    """One server's connection, which counts its reads before writes."""

    def __init__(self, ledger: Ledger) -> None:
        self._hot: WriterConnection = asyncio.run(open_connection(ledger.database))
        self._sql = statements(sqlite=ledger.database.is_sqlite)
        self.asked = 0
        ask = self._hot.begin_and_read

        async def counted(reads: Sequence[Read]) -> list[Rows]:
            self.asked += 1
            return await ask(reads)

        self._hot.begin_and_read = counted  # type: ignore[method-assign]

    def settle(self, *orders: Order) -> list[Result]:
        return asyncio.run(settle(orders, self._hot, self._sql))

    def mistake_the_clock(self, error: int) -> None:
        known = self._hot.known
        known.read_clock(known.now() + MARGIN_MICROSECONDS + error)

    def always_ask(self) -> None:
        self._hot.known.can_decide = lambda orders: False  # type: ignore[method-assign]

    def close(self) -> None:
        self._hot.close()


@pytest.fixture
def servers(ledger: Ledger) -> Iterator[tuple[Server, Server]]:
    """Two servers that have each made a charge, so their snapshots are filled."""
    made = Server(ledger), Server(ledger)
    for server in made:
        (charge,) = server.settle(ledger.order())
        assert isinstance(charge, Charged)
    yield made
    for server in made:
        server.close()


def test_a_server_with_a_snapshot_does_not_read_first(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    for done in range(1, 4):
        results = server.settle(ledger.order(), ledger.order(who=1))
        assert [type(result) for result in results] == [Charged, Charged]
        # the first charge, and the second analyst who was not in the snapshot
        assert server.asked == 2
        assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (
            2 + done,
            done,
            2 + 2 * done,
        )
    assert ledger.verified().sound


def test_charges_by_another_server_count(ledger: Ledger, servers: tuple[Server, Server]) -> None:
    one, other = servers
    for _ in range(4):
        for server in (one, other):
            (charge,) = server.settle(ledger.order())
            assert isinstance(charge, Charged)
    (refused,) = one.settle(ledger.order())
    assert isinstance(refused, BudgetExhausted)
    assert ledger.spent(0) == 10
    assert ledger.verified().sound


def test_a_snapshot_forgets_accounts_that_were_not_read_again(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    """A book's new chain head does not confirm accounts read under an earlier head."""
    one, other = servers
    for _ in range(3):
        assert isinstance(other.settle(ledger.order())[0], Charged)
        assert isinstance(one.settle(ledger.order(who=1))[0], Charged)
        assert isinstance(one.settle(ledger.order())[0], Charged)
        assert isinstance(other.settle(ledger.order(who=1))[0], Charged)
        assert ledger.verified().sound
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (8, 6, 14)


def test_a_budget_changed_by_another_server_counts(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    ledger.grant(ledger.analysts[0].name, tenths=2)
    (refused,) = server.settle(ledger.order())
    assert isinstance(refused, BudgetExhausted)
    ledger.grant(ledger.analysts[0].name, tenths=3)
    assert isinstance(server.settle(ledger.order())[0], Charged)
    ledger.grant(EVERYBODY, tenths=3)
    ledger.grant(ledger.analysts[0].name, tenths=10)
    (refused,) = server.settle(ledger.order())
    assert isinstance(refused, BudgetExhausted)
    assert refused.members["account"] == EVERYBODY
    assert ledger.spent() == 3


def test_a_refund_by_another_server_may_be_spent(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    one, other = servers
    order = ledger.order(tenths=8)
    assert isinstance(one.settle(order)[0], Charged)
    assert isinstance(one.settle(ledger.order())[0], BudgetExhausted)
    other.settle(ledger.void(order))
    assert isinstance(one.settle(ledger.order(tenths=8))[0], Charged)
    assert ledger.spent() == 10


def test_a_charge_planned_on_an_outdated_catalogue_is_planned_again(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    order = ledger.order()
    register(ledger.datasets, f"another than {ledger.dataset.name}")
    before = ledger.everything()
    assert server.settle(order) == [StaleCatalogue(ledger.catalogue())]
    assert ledger.everything() == before


@pytest.mark.parametrize("error", [-CLOCK_LATE_MAX, MARGIN_MICROSECONDS + 50_000])
def test_a_wrong_clock_is_read_again(
    ledger: Ledger, servers: tuple[Server, Server], error: int
) -> None:
    if ledger.database.is_sqlite:
        return  # all SQLite connections share one clock and read it each time
    _, server = servers
    server.mistake_the_clock(error)
    reads_before = server.asked
    (charge,) = server.settle(ledger.order())
    assert isinstance(charge, Charged)
    assert server.asked == reads_before + 1
    assert isinstance(server.settle(ledger.order())[0], Charged)
    assert server.asked == reads_before + 1


def test_a_key_answered_by_another_server_returns_its_answer(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    """This holds even if the budget is spent, so that nothing would be inserted."""
    one, other = servers
    draws = Draws()
    order = ledger.order(tenths=7)._replace(at_once=PreparedAnswer(draws, 0.0))
    (settled,) = one.settle(order)
    assert isinstance(other.settle(ledger.order())[0], Charged)
    for change in ({}, {"at_once": None}):
        (again,) = other.settle(order._replace(charge_id="q_another", **change))  # type: ignore[arg-type]
        assert isinstance(settled, Settled)
        assert again == settled._replace(replayed=True)
    assert isinstance(other.settle(ledger.order())[0], BudgetExhausted)
    assert ledger.spent() == 10
    assert ledger.state(order) == (State.ANSWERED, settled.answer)  # type: ignore[union-attr]


def test_an_answer_of_another_server_is_reused(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    one, other = servers
    order = ledger.order(tenths=2)
    one.settle(order)
    one.settle(RecordOrder(order.charge_id, 1, "an answer"))
    for _ in range(2):
        (reused,) = other.settle(ledger.order(tenths=2, fresh=False))
        assert reused == Settled(order.charge_id, State.ANSWERED, "an answer", reused=True)
    assert ledger.spent() == 4


def test_a_new_reusable_question_needs_no_read(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    reads_before = server.asked
    assert isinstance(server.settle(ledger.order(tenths=3, fresh=False))[0], Charged)
    assert server.asked == reads_before
    assert isinstance(server.settle(ledger.order(tenths=3, fresh=False))[0], Charged)
    assert server.asked == reads_before + 1


def test_after_a_wrong_guess_some_batches_read_first(
    ledger: Ledger, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_module, "DOUBTED", 2)
    one, _ = servers  # the other server has charged since
    asked = one.asked
    for expected in (1, 2, 3, 3):
        assert isinstance(one.settle(ledger.order())[0], Charged)
        assert one.asked == asked + expected


# Orders planned before their book had cells


def on_cells(ledger: Ledger) -> Callable[..., ChargeOrder]:
    """Register the same rows under a name that declares cells, and return how to charge the first
    cell.
    """
    name = ledger.dataset.name
    content, place = f"rows of {name}", f"{name}.csv"
    given = {"content": content, "place": place, "card": Card.model_validate(CELLED)}
    celled = register(ledger.datasets, f"{name} by city", **given)
    assert celled.book_id == ledger.dataset.book_id
    named: dict[str, Any] = {
        "dataset_id": celled.id,
        "dataset_name": celled.name,
        "version_id": celled.version.id,
    }
    return lambda **more: ledger.order(cells=(0,), **named, **more)


@pytest.mark.parametrize("first", [0, 1])
def test_a_stale_order_puts_nothing_wrong_about_cells_in_the_snapshot(
    ledger: Ledger, servers: tuple[Server, Server], first: int
) -> None:
    one, _ = servers
    stale = ledger.order()
    on_cell = on_cells(ledger)
    assert isinstance(servers[first].settle(on_cell(tenths=8))[0], Charged)
    assert isinstance(one.settle(stale)[0], StaleCatalogue)
    assert isinstance(one.settle(on_cell(tenths=8))[0], BudgetExhausted)
    assert ledger.verified().sound


def test_a_refunded_charge_puts_nothing_wrong_about_cells_in_the_snapshot(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    one, _ = servers
    early = ledger.order()
    assert isinstance(one.settle(early)[0], Charged)
    on_cell = on_cells(ledger)
    assert isinstance(one.settle(on_cell(tenths=7))[0], Charged)
    one.settle(ledger.void(early))
    assert isinstance(one.settle(on_cell(tenths=7))[0], BudgetExhausted)
    assert ledger.verified().sound


# Two servers at the same time


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
