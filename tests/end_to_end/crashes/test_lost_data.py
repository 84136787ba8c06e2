"""Data that vanish or are garbage, and storage that fails.

W3, D1 and D2 are rows of the table of crash points in the safety notes.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import psutil
import pytest

from tests.bursard import wait_until
from tests.conftest import Counts
from tests.end_to_end.crashes.lost_parts import (
    LEASE_SECONDS,
    PRICE,
    QUESTION,
    find_the_data,
    lose_a_server,
    lose_the_data,
    must_fail_alike,
    must_have_one_charge,
    stored,
)
from tests.holding import EndlessStatements
from tests.postgres import PostgresServer
from tests.server import World, ask, ask_until_settled, count, new_key, new_ledger

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I17")]


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
