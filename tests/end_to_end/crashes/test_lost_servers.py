"""Servers that vanish, pause or lose their data, clients that disconnect, storage that fails.

W1 to W3, D1 and D2 are rows of the table of crash points in the safety notes.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from decimal import Decimal
from pathlib import Path

import httpx
import psutil
import pytest

from tests.conftest import Counts, Template
from tests.holding import EndlessStatements
from tests.postgres import PostgresServer
from tests.server import (
    Json,
    Ledger,
    World,
    ask,
    ask_and_hang_up,
    ask_until_settled,
    count,
    new_key,
    new_ledger,
    wait_until,
)

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I17")]

PRICE = Decimal("0.25")
LEASE_SECONDS = 0.3  # short, so that a restarted server finds it expired
LOCKED_SECONDS = 1  # PostgreSQL ends a transaction that is idle for ten
QUESTION = count("people", float(PRICE))


@pytest.fixture
def embedded(peopled: Template, tmp_path: Path) -> Iterator[World]:
    """A world for a single test, on SQLite."""
    made = peopled("sqlite", tmp_path / "ledger")
    yield made
    made.ledger.stop()


def stored(ledger: Ledger) -> list[tuple[str, str | None]]:
    """State and answer of every charge in the database."""
    return [(row[0], row[1]) for row in ledger.rows("SELECT state, answer FROM charges")]


def lose_a_server(world: World, fault: str, request_key: str, *, once: bool = True) -> None:
    """Ask a server that is killed before it answers."""
    armed = world.serve(fault=f"{fault}=kill", once=once, lease_seconds=LEASE_SECONDS)
    with pytest.raises(httpx.TransportError):
        ask_until_settled(world.client("ada"), QUESTION, request_key)
    assert armed.wait_dead() == -signal.SIGKILL


def lose_the_data(world: World, *, source: bool) -> None:
    """Damage the prepared version, or remove it and its source file."""
    versions = list((world.ledger.home / "versions").glob("*.duckdb"))
    assert versions
    for version in versions:
        version.unlink()
        if not source:
            version.write_bytes(b"this is no database" * 1000)
    if source:
        for file in world.ledger.data.iterdir():
            file.rename(file.with_suffix(".gone"))


def find_the_data(world: World) -> None:
    for file in world.ledger.data.iterdir():
        file.rename(file.with_suffix(".csv"))


def must_fail_alike(world: World, request_key: str, problem: str) -> str:
    """Check that every repeat of the key returns the same bytes; return the charge's id."""
    client = world.client("ada")
    replies = [ask_until_settled(client, QUESTION, request_key) for _ in range(3)]
    assert {reply.status_code for reply in replies} == {503}, replies[0].text
    assert {reply.json()["type"] for reply in replies} == {f"/problems/{problem}"}
    assert len({reply.content for reply in replies}) == 1
    return str(replies[0].json()["id"])


def must_have_one_charge(world: World) -> None:
    assert len(world.entries("people", "charge")) == 1
    assert world.entries("people", "void") == []
    assert world.spent("people", "ada") == world.spent("people", "*") == PRICE
    world.must_be_sound()


# Servers


def test_after_three_vanished_attempts_the_charge_is_forfeited_for_good(world: World) -> None:
    request_key = new_key()
    for attempt in (1, 2, 3):
        lose_a_server(world, "F6", request_key, once=False)
        assert world.ledger.rows("SELECT state, attempt FROM charges") == [("charged", attempt)]
    world.serve(lease_seconds=LEASE_SECONDS)
    must_fail_alike(world, request_key, "question-forfeited")
    assert stored(world.ledger) == [("forfeited", None)]
    must_have_one_charge(world)


def wake_after_the_lease(
    world: World, point: str, request_key: str, question: Json, sabotage: str = ""
) -> tuple[httpx.Response, httpx.Response]:
    """Replies of a second server, asked while the first one sleeps, and of the first one later.

    The first server sleeps until the second one has answered. If it holds the ledger's lock, it
    sleeps until the second one has asked for that lock.
    """
    ada = world.people["ada"]
    asleep = world.serve(
        fault=world.ledger.hold(point), lease_seconds=LEASE_SECONDS, sabotage=sabotage
    )
    awake = world.serve(elsewhere=True, lease_seconds=LEASE_SECONDS)
    with ThreadPoolExecutor(2) as pool:
        late = pool.submit(ask, asleep.client(ada.key), question, request_key)
        world.ledger.wait_fired()
        os.killpg(asleep.process.pid, signal.SIGSTOP)
        try:
            time.sleep(LEASE_SECONDS)
            asking = pool.submit(ask_until_settled, awake.client(ada.key), question, request_key)
            wait([asking], timeout=LOCKED_SECONDS if point == "F8" else None)
            assert asking.done() == (point != "F8")
        finally:
            os.killpg(asleep.process.pid, signal.SIGCONT)
            world.ledger.let_go()
        taken_over = asking.result()
        assert taken_over.status_code == 200, taken_over.text
        return taken_over, late.result()


@pytest.mark.invariant("I16")
@pytest.mark.parametrize("point", ["F7", "F8"])
def test_w1_a_server_that_resumes_after_its_lease_neither_stores_nor_sends_another_answer(
    world: World, point: str, counts: Counts
) -> None:
    request_key = new_key()
    taken_over, woken = wake_after_the_lease(world, point, request_key, QUESTION)
    assert woken.status_code in (200, 409)
    assert woken.status_code == 409 or woken.content == taken_over.content
    for server in world.ledger.servers:
        again = ask(server.client(world.people["ada"].key), QUESTION, request_key)
        assert again.content == taken_over.content
    assert stored(world.ledger) == [("answered", taken_over.text)]
    attempts = 1 if point == "F8" else 2  # in RECORD it holds the lock and finishes first
    assert world.ledger.rows("SELECT attempt FROM charges") == [(attempts,)]
    must_have_one_charge(world)
    counts("servers that resumed after their lease", 1)


SENDS_WHAT_IT_DREW = """
from app.actions.asking import ask_query as answer_query
record = answer_query.AnswerQuery._record
async def send_what_was_drawn(self, begun, answer, leaving):
    await record(self, begun, answer, leaving)
    return answer_query.Reply(answer, False, False)
answer_query.AnswerQuery._record = send_what_was_drawn
"""


@pytest.mark.invariant("I14")
@pytest.mark.saboteur
def test_saboteur_a_server_that_sends_its_draw_instead_of_the_stored_answer_is_caught(
    embedded: World,
) -> None:
    noisy = count("people", "0.00001")  # two draws are equal with probability below 1e-5
    taken_over, woken = wake_after_the_lease(
        embedded, "F7", new_key(), noisy, sabotage=SENDS_WHAT_IT_DREW
    )
    assert woken.status_code == 200
    assert woken.content != taken_over.content


def test_a_killed_worker_is_replaced_and_its_question_is_answered(embedded: World) -> None:
    server = embedded.serve(fault="F7=kill", lease_seconds=LEASE_SECONDS, BURSAR_WORKERS="2")
    request_key = new_key()
    with pytest.raises(httpx.TransportError):
        ask(embedded.client("ada"), QUESTION, request_key)
    assert server.process.poll() is None
    reply = ask_until_settled(embedded.client("ada"), QUESTION, request_key)
    assert reply.status_code == 200
    must_have_one_charge(embedded)


# Clients


@pytest.mark.invariant("I14")
def test_w2_a_disconnected_client_changes_nothing_and_its_question_keeps_running(
    world: World,
) -> None:
    request_key = new_key()
    world.serve(fault=world.ledger.hold("F6"))
    client = world.client("ada")
    ask_and_hang_up(world, world.people["ada"], QUESTION, request_key)
    running = ask(client, QUESTION, request_key)
    assert running.status_code == 409
    assert running.json()["type"] == "/problems/still-running"
    assert 1 <= int(running.headers["Retry-After"]) <= 30
    world.ledger.let_go()

    def is_answered() -> bool:
        return [state for state, _ in stored(world.ledger)] == ["answered"]

    wait_until(is_answered, 60, "the answer was not stored")
    reply = ask(client, QUESTION, request_key)
    assert reply.status_code == 200
    assert stored(world.ledger) == [("answered", reply.text)]
    must_have_one_charge(world)


# Data


def test_w3_a_question_whose_prepared_data_are_garbage_is_forfeited(world: World) -> None:
    lose_the_data(world, source=False)
    must_fail_alike(world, new_key(), "question-forfeited")
    assert stored(world.ledger) == [("forfeited", None)]
    must_have_one_charge(world)


def test_w3_a_question_past_its_time_limit_is_forfeited(embedded: World) -> None:
    """Its statement would never end."""
    statements = EndlessStatements(embedded.ledger.folder)
    embedded.serve(BURSAR_ENGINE_TIMEOUT_SECONDS="0.2", sabotage=statements.sabotage)
    must_fail_alike(embedded, new_key(), "question-forfeited")
    assert stored(embedded.ledger) == [("forfeited", None)]
    must_have_one_charge(embedded)


def test_a_question_without_data_is_refused_before_a_charge(world: World) -> None:
    request_key, client = new_key(), world.client("ada")
    lose_the_data(world, source=True)
    refused = ask(client, QUESTION, request_key)
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/engine-unavailable")
    assert world.entries("people", "charge", "void") == []

    find_the_data(world)
    answered = ask(client, QUESTION, request_key)
    assert answered.status_code == 200
    assert world.spent("people", "ada") == PRICE

    lose_the_data(world, source=True)
    again = ask(client, QUESTION, request_key)
    assert again.content == answered.content, "a stored answer is returned even without data"
    world.must_be_sound()


@pytest.mark.invariant("I4")
def test_a_question_whose_data_vanish_after_the_charge_is_refunded(embedded: World) -> None:
    server = embedded.serve(fault=embedded.ledger.hold("F4"))
    request_key, client = new_key(), embedded.client("ada")
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask, client, QUESTION, request_key)
        embedded.ledger.wait_fired()
        lose_the_data(embedded, source=True)
        embedded.ledger.let_go()
        asking.result()
    server.stop()
    embedded.serve()
    charge_id = must_fail_alike(embedded, request_key, "question-voided")
    charge, void = embedded.entries("people", "charge", "void")
    assert (charge["kind"], void["kind"]) == ("charge", "void")
    assert void["body"]["charge"] == charge["body"]["charge"] == charge_id
    assert void["body"]["epsilon"] == PRICE * 10**12
    assert void["body"]["accounts"] == ["ada", "*"]
    assert embedded.spent("people", "ada") == embedded.spent("people", "*") == 0
    embedded.must_be_sound()


@pytest.mark.invariant("I4")
def test_a_charge_whose_vanished_attempt_had_read_data_is_never_refunded(world: World) -> None:
    request_key = new_key()
    lose_a_server(world, "F6", request_key)
    lose_the_data(world, source=True)
    world.serve(lease_seconds=LEASE_SECONDS)
    must_fail_alike(world, request_key, "question-forfeited")
    must_have_one_charge(world)


# Storage


@pytest.mark.invariant("I34")
def test_d1_a_killed_postgresql_keeps_every_charge_that_was_answered(
    tmp_path: Path, counts: Counts
) -> None:
    postgres = PostgresServer.start(fsync=True)
    try:
        if not postgres.ours:
            pytest.skip("the PostgreSQL of BURSAR_TEST_POSTGRES_URL is not ours to kill")
        (tmp_path / "data").mkdir()
        ledger = new_ledger("postgresql", tmp_path / "ledger", tmp_path / "data", postgres)
        try:
            _kill_postgres_during_questions(World(ledger), postgres, counts)
        finally:
            ledger.stop()
    finally:
        postgres.stop()


def _kill_postgres_during_questions(world: World, postgres: PostgresServer, counts: Counts) -> None:
    price = Decimal("0.001")
    server = world.serve(lease_seconds=1)
    ada = world.person("ada")
    dataset = world.open_dataset(ada, epsilon=1000)
    question = count(dataset, str(price), fresh=True)
    stop, away = threading.Event(), threading.Event()
    answers: list[tuple[str, bytes, list[int]]] = []

    def stream() -> None:
        """Ask questions one after another, each repeated under its key until it is answered."""
        client = server.client(ada.key)
        while not stop.is_set():
            request_key = new_key()
            statuses: list[int] = []
            while True:
                reply = ask(client, question, request_key)
                assert reply.status_code in (200, 409, 503), reply.text
                statuses.append(reply.status_code)
                if reply.status_code == 200:
                    break
                if reply.status_code == 503:
                    away.set()
                assert time.monotonic() < deadline, statuses
                time.sleep(0.1)
            answers.append((request_key, reply.content, statuses))

    def some_more_are_answered() -> None:
        enough = len(answers) + 20
        wait_until(lambda: len(answers) >= enough, 60, "no question was answered")

    deadline = time.monotonic() + 300
    with ThreadPoolExecutor(4) as pool:
        streams = [pool.submit(stream) for _ in range(4)]
        try:
            some_more_are_answered()
            postgres.kill()  # only briefly: the writer retries by itself
            postgres.restart()
            some_more_are_answered()
            away.clear()
            postgres.kill()  # for longer than the writer retries
            assert away.wait(60), "no client saw that PostgreSQL was down"
            postgres.restart()
            some_more_are_answered()
        finally:
            stop.set()
        for each in streams:
            each.result()

    unknown = [statuses for _, _, statuses in answers if 503 in statuses]
    assert unknown
    paid = {entry["body"]["charge"]: entry for entry in world.entries(dataset, "charge")}
    client = server.client(ada.key)
    for request_key, content, _ in answers:
        again = ask(client, question, request_key)
        assert again.content == content
        entry = paid[again.json()["id"]]
        assert again.json()["receipt"] == {"entry": entry["seq"], "hash": entry["hash"]}
    assert len(paid) == len(answers)
    assert world.spent(dataset, "ada") == world.spent(dataset, "*") == price * len(answers)
    world.must_be_sound()
    counts("answers around two deaths of PostgreSQL", len(answers))
    counts("answers around two deaths of PostgreSQL, found in the ledger", len(paid))
    counts("answers around two deaths of PostgreSQL, first reported as unknown", len(unknown))


@pytest.mark.invariant("I34")
def test_d2_a_full_disk_leaves_nothing_half_done_and_the_same_key_works_afterwards(
    embedded: World,
) -> None:
    server = embedded.serve(lease_seconds=LEASE_SECONDS)
    client = embedded.client("ada")
    question = count("people", float(PRICE), fresh=True)
    assert ask(client, question, new_key()).status_code == 200
    process = psutil.Process(server.process.pid)
    unlimited = (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY)
    process.rlimit(psutil.RLIMIT_FSIZE, (4096, psutil.RLIM_INFINITY))  # no file may grow
    request_key = new_key()
    refused = ask(client, question, request_key)
    assert refused.status_code == 503, refused.text
    assert refused.json()["type"] == "/problems/store-unavailable"
    assert len(stored(embedded.ledger)) == 1

    process.rlimit(psutil.RLIMIT_FSIZE, unlimited)
    freed = ask_until_settled(client, question, request_key)
    assert freed.status_code == 200, freed.text
    assert ask(client, question, request_key).content == freed.content
    assert len(embedded.entries("people", "charge")) == 2
    assert embedded.spent("people", "ada") == 2 * PRICE
    embedded.must_be_sound()
