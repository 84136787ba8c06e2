"""Servers that die or pause between the start of a batch and its commit, on PostgreSQL.

A batch decided from the snapshot (decision 0005) is sent whole, with its COMMIT. Another
connection's lock delays it between its statements. The database finishes it no matter what the
server does meanwhile. So the charge may become durable after its server is gone, and the next
server must find it.
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from tests.bursard import wait_until
from tests.conftest import Counts, Template
from tests.server import World, ask, ask_until_settled, count, new_key

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I34")]

PRICE = Decimal("0.25")
LEASE_SECONDS = 0.3  # short, so that a restarted server finds it expired
REMEMBERED = count("people", float(PRICE), fresh=True)
ADULTS = {"all": [{"column": "age", "op": ">=", "value": 18}]}
QUESTIONS = {  # with the state of their durable charge
    "answered by the same commit": (REMEMBERED, "answered"),
    "to be answered by another": (
        {**REMEMBERED, "query": {"kind": "count", "where": ADULTS}},
        "charged",
    ),
}
GONE_ON = "the database did not go on"
# A batch that is delayed for a second is void. Here it may be delayed for any time.
NEVER_TOO_LATE = "from app.store.writer import statements; statements.CLOCK_LATE_MAX = 3600 * 10**6"
ROWS = ["accounts", "books"]  # before any write; after the accounts are written


@pytest.fixture
def world(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made = peopled("postgresql", tmp_path / "ledger")
    yield made
    made.ledger.stop()


@contextmanager
def held(world: World, table: str) -> Iterator[psycopg.Connection]:
    """Lock all rows of a table until the block ends or rolls back."""
    assert world.ledger.database is not None
    url = make_url(world.ledger.database).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        connection.execute(f"SELECT 1 FROM {table} FOR UPDATE".encode())
        yield connection
        connection.rollback()


def waiting(world: World) -> bool:
    """True if any connection waits for a lock."""
    rows = world.ledger.rows(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return bool(rows[0][0])


def charges(world: World) -> list[tuple[str, str | None]]:
    """State and answer of each charge, in order."""
    found = world.ledger.rows("SELECT state, answer FROM charges ORDER BY id")
    return [(row[0], row[1]) for row in found]


def must_have_paid(world: World, times: int) -> None:
    assert len(world.entries("people", "charge")) == times
    assert world.entries("people", "void") == []
    assert world.spent("people", "ada") == world.spent("people", "*") == times * PRICE
    world.must_be_sound()


@pytest.mark.parametrize("table", ROWS)
@pytest.mark.parametrize("which", QUESTIONS)
def test_a_batch_whose_server_dies_is_carried_out_once(
    world: World, table: str, which: str, counts: Counts
) -> None:
    question, state = QUESTIONS[which]
    server = world.serve(lease_seconds=LEASE_SECONDS, sabotage=NEVER_TOO_LATE)
    first = ask(world.client("ada"), REMEMBERED, new_key())  # this fills the snapshot
    assert first.status_code == 200, first.text
    request_key = new_key()
    with held(world, table) as lock, ThreadPoolExecutor(1) as pool:
        unheard = pool.submit(ask, server.client(world.people["ada"].key), question, request_key)
        wait_until(lambda: waiting(world), 60, "the batch is not waiting")
        os.killpg(server.process.pid, signal.SIGKILL)
        lock.rollback()
        wait_until(lambda: len(charges(world)) == 2, 60, GONE_ON)
        assert server.wait_dead() == -signal.SIGKILL
        with pytest.raises(httpx.TransportError):
            unheard.result()
    (_, (found, answer)) = charges(world)
    assert found == state

    world.serve(lease_seconds=LEASE_SECONDS)
    must_have_paid(world, 2)
    reply = ask_until_settled(world.client("ada"), question, request_key)
    assert reply.status_code == 200, reply.text
    assert answer in (None, reply.text)
    assert charges(world) == [("answered", first.text), ("answered", reply.text)]
    must_have_paid(world, 2)
    counts("delayed batches whose server was killed", 1)


@pytest.mark.parametrize("table", ROWS)
def test_a_server_that_paused_within_its_batch_returns_the_answer_of_another(
    world: World, table: str, counts: Counts
) -> None:
    ada = world.people["ada"]
    asleep = world.serve(sabotage=NEVER_TOO_LATE)
    awake = world.serve(elsewhere=True)
    client = asleep.client(ada.key)
    assert ask(client, REMEMBERED, new_key()).status_code == 200  # this fills the snapshot
    request_key = new_key()
    with held(world, table) as lock, ThreadPoolExecutor(1) as pool:
        late = pool.submit(ask, client, REMEMBERED, request_key)
        wait_until(lambda: waiting(world), 60, "the batch is not waiting")
        os.killpg(asleep.process.pid, signal.SIGSTOP)
        try:
            lock.rollback()
            wait_until(lambda: len(charges(world)) == 2, 60, GONE_ON)
            others = awake.client(ada.key)
            replayed = ask(others, REMEMBERED, request_key)
            assert replayed.headers["Idempotent-Replayed"] == "true"
            assert ask(others, REMEMBERED, new_key()).status_code == 200
        finally:
            os.killpg(asleep.process.pid, signal.SIGCONT)
        assert late.result().content == replayed.content
    must_have_paid(world, 3)
    # Its snapshot is stale. It must notice that, and the remaining budget covers one question.
    assert ask(client, REMEMBERED, new_key()).status_code == 200
    assert ask(client, REMEMBERED, new_key()).status_code == 402
    must_have_paid(world, 4)
    counts("delayed batches whose server was paused", 1)
