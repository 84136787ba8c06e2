"""A real server is killed or paused at every fault point, and nothing is lost or paid twice.

F1 to F12, W1 to W3, D1 and D2 are the rows of the table of crash points in the safety notes. What
the ledger holds after a death is read from the database itself, before anybody recovers it.
"""

import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import duckdb
import httpx
import psutil
import pytest

from tests.conftest import Counts, Template
from tests.postgres import PostgresServer
from tests.server import (
    Json,
    Ledger,
    Server,
    World,
    ask,
    ask_until_settled,
    count,
    made,
    new_key,
    new_ledger,
    some_rows,
    wait_until,
)

pytestmark = pytest.mark.crash

PRICE = Decimal("0.25")
LEASE_SECONDS = 0.3  # so short that a restarted server finds it over
QUESTION = count("people", float(PRICE))
UNCHARGED = {"F1", "F2"}
CHARGED = {"F3", "F4", "F5", "F6", "F7", "F8"}
ANSWERED = {"F9", "F10", "F11", "F12"}


def stored(ledger: Ledger) -> list[tuple[str, str | None]]:
    """State and answer of every charge in the database."""
    return [(row[0], row[1]) for row in ledger.rows("SELECT state, answer FROM charges")]


def charge_entries(ledger: Ledger) -> int:
    return int(ledger.rows("SELECT count(*) FROM entries WHERE kind = 'charge'")[0][0])


def spent_units(ledger: Ledger) -> set[int]:
    """What is spent in all accounts; one number if they agree."""
    where = "WHERE holder IN ('ada', '*')"
    return {row[0] for row in ledger.rows(f"SELECT epsilon_spent FROM accounts {where}")}


def units(amount: Decimal) -> int:
    return int(amount * 10**12)


def ask_and_lose_the_server(server: Server, person_key: str, request_key: str) -> bytes | None:
    """Ask a server that will be killed; the body, if it came whole before the death."""
    client = server.client(person_key)
    try:
        reply = ask(client, QUESTION, request_key)
        assert reply.status_code == 200
        return reply.content
    except httpx.TransportError:
        return None


def must_have_one_charge(world: World, price: Decimal = PRICE) -> None:
    assert len(world.entries("people", "charge")) == 1
    assert world.entries("people", "void") == []
    assert world.spent("people", "ada") == price
    assert world.spent("people", "*") == price
    world.must_be_sound()


@pytest.mark.parametrize("point", [f"F{number}" for number in range(1, 13)])
def test_a_killed_server_loses_no_charge_and_draws_no_second_answer(
    world: World, point: str, counts: Counts
) -> None:
    counts("crash points", 1)
    request_key = new_key()
    ada = world.people["ada"]
    armed = world.serve(fault=f"{point}=kill", lease_seconds=LEASE_SECONDS)
    heard = ask_and_lose_the_server(armed, ada.key, request_key)
    assert armed.wait_dead() == -signal.SIGKILL
    assert heard is None or point == "F12"

    before = stored(world.ledger)
    if point in UNCHARGED:
        assert before == []
        assert (charge_entries(world.ledger), spent_units(world.ledger)) == (0, {0})
    else:
        state = "charged" if point in CHARGED else "answered"
        assert [row[0] for row in before] == [state]
        assert (charge_entries(world.ledger), spent_units(world.ledger)) == (1, {units(PRICE)})
        assert (before[0][1] is not None) == (point in ANSWERED)

    world.serve(lease_seconds=LEASE_SECONDS)
    assert world.spent("people", "ada") == (0 if point in UNCHARGED else PRICE)
    world.must_be_sound()

    client = world.client(ada)
    first = ask_until_settled(client, QUESTION, request_key)
    assert first.status_code == 200, first.text
    again = ask(client, QUESTION, request_key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    must_have_one_charge(world)
    if point in ANSWERED:
        assert first.text == before[0][1]
        assert heard in (None, first.content)
    assert stored(world.ledger) == [("answered", first.text)]
    entry = world.entries("people", "charge")[0]
    assert first.json()["receipt"] == {"entry": entry["seq"], "hash": entry["hash"]}
    counts("crash points recovered", 1)


def test_while_the_lease_of_a_dead_server_runs_its_question_is_said_to_be_running(
    world: World,
) -> None:
    request_key = new_key()
    ada = world.people["ada"]
    armed = world.serve(fault="F6=kill", lease_seconds=60)
    ask_and_lose_the_server(armed, ada.key, request_key)
    assert armed.wait_dead() == -signal.SIGKILL

    world.serve(lease_seconds=60)
    reply = ask(world.client(ada), QUESTION, request_key)
    assert reply.status_code == 409
    assert reply.json()["type"] == "/problems/still-running"
    assert 1 <= int(reply.headers["Retry-After"]) <= 60
    assert stored(world.ledger) == [("charged", None)]
    must_have_one_charge(world)


def test_after_three_vanished_attempts_the_charge_is_forfeited_for_good(world: World) -> None:
    request_key = new_key()
    ada = world.people["ada"]
    for attempt in (1, 2, 3):
        armed = world.serve(fault="F6=kill", once=False, lease_seconds=LEASE_SECONDS)
        time.sleep(LEASE_SECONDS)
        ask_and_lose_the_server(armed, ada.key, request_key)
        assert armed.wait_dead() == -signal.SIGKILL
        assert world.ledger.rows("SELECT state, attempt FROM charges") == [("charged", attempt)]

    world.serve(lease_seconds=LEASE_SECONDS)
    client = world.client(ada)
    replies = [ask_until_settled(client, QUESTION, request_key) for _ in range(3)]
    assert {reply.status_code for reply in replies} == {503}
    assert {reply.json()["type"] for reply in replies} == {"/problems/question-forfeited"}
    assert len({reply.content for reply in replies}) == 1
    assert stored(world.ledger) == [("forfeited", None)]
    must_have_one_charge(world)


@pytest.mark.parametrize("point", ["F4", "F7", "F8"])
def test_w1_a_server_that_wakes_after_its_lease_neither_stores_nor_sends_another_answer(
    world: World, point: str, counts: Counts
) -> None:
    request_key = new_key()
    ada = world.people["ada"]
    slow = world.serve(fault=f"{point}=pause:2.5", lease_seconds=LEASE_SECONDS)
    quick = world.serve(elsewhere=True, lease_seconds=LEASE_SECONDS)
    slow_client, quick_client = slow.client(ada.key), quick.client(ada.key)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(ask, slow_client, QUESTION, request_key)
        fired = world.ledger.folder / "fired"
        wait_until(fired.exists, 20, "the first server did not reach its fault point")
        time.sleep(LEASE_SECONDS)
        taken_over = ask_until_settled(quick_client, QUESTION, request_key)
        assert taken_over.status_code == 200, taken_over.text
        woken = late.result()

    assert woken.status_code in (200, 409)
    assert woken.status_code == 409 or woken.content == taken_over.content
    assert ask(slow_client, QUESTION, request_key).content == taken_over.content
    assert stored(world.ledger) == [("answered", taken_over.text)]
    attempts = 1 if point == "F8" else 2  # in RECORD it holds the lock, and finishes first
    assert world.ledger.rows("SELECT attempt FROM charges") == [(attempts,)]
    must_have_one_charge(world)
    counts("take-overs from a paused server", 1)


def test_w2_a_client_that_hangs_up_changes_nothing(world: World) -> None:
    request_key = new_key()
    ada = world.people["ada"]
    server = world.serve(fault="F6=pause:0.5")
    request = httpx.Request(
        "POST",
        f"{server.url}/v1/queries",
        json=QUESTION,
        headers={"Authorization": f"Bearer {ada.key}", "Idempotency-Key": request_key},
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((request.url.host, request.url.port or 0)) as connection:
        connection.sendall(f"POST /v1/queries HTTP/1.1\r\n{head}\r\n".encode() + request.content)
        wait_until((world.ledger.folder / "fired").exists, 20, "the question was not begun")

    def is_answered() -> bool:
        return [state for state, _ in stored(world.ledger)] == ["answered"]

    wait_until(is_answered, 20, "the answer was not stored")
    reply = ask(world.client(ada), QUESTION, request_key)
    assert reply.status_code == 200
    assert [("answered", reply.text)] == stored(world.ledger)
    must_have_one_charge(world)


# W3: the engine fails


def must_be_forfeited(world: World, question: Json, price: Decimal = PRICE) -> None:
    """The question is charged, and gives one constant failure under its key for ever."""
    request_key = new_key()
    client = world.client("ada")
    replies = [ask(client, question, request_key) for _ in range(3)]
    assert {reply.status_code for reply in replies} == {503}, replies[0].text
    assert {reply.json()["type"] for reply in replies} == {"/problems/question-forfeited"}
    assert len({reply.content for reply in replies}) == 1
    assert stored(world.ledger) == [("forfeited", None)]
    must_have_one_charge(world, price)


def test_w3_a_question_whose_prepared_data_are_garbage_is_forfeited(world: World) -> None:
    for version in (world.ledger.home / "versions").glob("*.duckdb"):
        version.write_bytes(b"this is no database" * 1000)
    must_be_forfeited(world, QUESTION)


def test_w3_a_question_that_takes_too_long_is_forfeited(world: World) -> None:
    path = world.ledger.data / f"{new_key()}.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT (i * 7919) % 120 AS age, (i * 104729) % 200000 AS income "
            f"FROM range(3000000) AS t(i)) TO '{path}' (FORMAT parquet)"
        )
    columns = [
        {"name": "age", "type": "integer", "low": 0, "high": 120},
        {"name": "income", "type": "number", "low": 0, "high": 200000},
    ]
    dataset = world.dataset(path.name, columns=columns)
    path.unlink()
    world.grant(dataset, "*", 1)
    world.grant(dataset, "ada", 1)
    world.server.stop()
    world.serve(BURSAR_ENGINE_TIMEOUT_SECONDS="0.001", BURSAR_ENGINE_THREADS="1")
    edges = [number / 100 for number in range(0, 12001)]
    question = {
        "dataset": dataset,
        "query": {"kind": "sum", "column": "income", "group_by": [{"column": "age", "edges": edges}]},
        "privacy": {"epsilon": float(PRICE)},
    }
    reply = ask(world.client("ada"), question, new_key())
    assert reply.status_code == 503
    assert reply.json()["type"] == "/problems/question-forfeited"
    assert world.spent(dataset, "ada") == PRICE
    assert world.entries(dataset, "void") == []
    world.must_be_sound()


def test_a_question_whose_data_are_gone_is_given_back_by_a_void_entry(world: World) -> None:
    rows = some_rows()
    path = world.write_csv(rows)
    dataset = world.dataset(path)
    world.grant(dataset, "*", 1)
    world.grant(dataset, "ada", 1)
    world.server.stop()
    source = world.ledger.data / path
    text = source.read_text()
    source.unlink()
    for version in (world.ledger.home / "versions").glob("*.duckdb"):
        version.unlink()

    world.serve()
    client = world.client("ada")
    request_key = new_key()
    question = count(dataset, float(PRICE))
    replies = [ask(client, question, request_key) for _ in range(3)]
    assert {reply.status_code for reply in replies} == {503}
    assert {reply.json()["type"] for reply in replies} == {"/problems/question-voided"}
    assert len({reply.content for reply in replies}) == 1
    charge, void = world.entries(dataset, "charge", "void")
    assert (charge["kind"], void["kind"]) == ("charge", "void")
    assert void["body"]["charge"] == charge["body"]["charge"] == replies[0].json()["id"]
    assert (void["body"]["epsilon"], void["body"]["accounts"]) == (units(PRICE), ["ada", "*"])
    assert world.spent(dataset, "ada") == world.spent(dataset, "*") == 0
    world.must_be_sound()

    source.write_text(text)
    assert ask(client, question, new_key()).status_code == 200
    assert world.spent(dataset, "ada") == PRICE
    world.must_be_sound()


def test_a_charge_whose_vanished_attempt_had_read_data_is_never_given_back(world: World) -> None:
    path = world.write_csv(some_rows())
    dataset = world.dataset(path)
    world.grant(dataset, "*", 1)
    world.grant(dataset, "ada", 1)
    world.server.stop()
    armed = world.serve(fault="F6=kill", lease_seconds=LEASE_SECONDS)
    request_key = new_key()
    question = count(dataset, float(PRICE))
    with pytest.raises(httpx.TransportError):
        ask(armed.client(world.people["ada"].key), question, request_key)
    assert armed.wait_dead() == -signal.SIGKILL
    (world.ledger.data / path).unlink()
    for version in (world.ledger.home / "versions").glob("*.duckdb"):
        version.unlink()

    world.serve(lease_seconds=LEASE_SECONDS)
    reply = ask_until_settled(world.client("ada"), question, request_key)
    assert reply.status_code == 503
    assert world.entries(dataset, "void") == []
    assert world.spent(dataset, "ada") == PRICE
    world.must_be_sound()


# D1 and D2: the storage fails


def test_d1_postgresql_killed_amid_questions_keeps_every_charge_that_was_answered(
    tmp_path: Path, counts: Counts
) -> None:
    postgres = PostgresServer.start(fsync=True)
    try:
        if not postgres.ours:
            pytest.skip("the PostgreSQL of BURSAR_TEST_POSTGRES_URL is not ours to kill")
        (tmp_path / "data").mkdir()
        ledger = new_ledger("postgresql", tmp_path / "ledger", tmp_path / "data", postgres)
        world = World(ledger)
        try:
            _kill_postgres_amid_questions(world, postgres, counts)
        finally:
            ledger.stop()
    finally:
        postgres.stop()


def _kill_postgres_amid_questions(
    world: World, postgres: PostgresServer, counts: Counts
) -> None:
    price = Decimal("0.001")
    ada = world.person("ada")
    dataset = world.open_dataset(ada, epsilon=1000)
    question = count(dataset, str(price), fresh=True)
    server = world.server
    stop = threading.Event()

    def stream() -> list[tuple[str, bytes, int]]:
        """Questions one after another, each repeated under its key until it is answered."""
        answers = []
        client = server.client(ada.key)
        while not stop.is_set():
            request_key, tries = new_key(), 0
            while True:
                tries += 1
                reply = ask(client, question, request_key)
                if reply.status_code == 200:
                    answers.append((request_key, reply.content, tries))
                    break
                assert reply.status_code in (409, 503), reply.text
                assert tries < 200
                time.sleep(0.1)
        return answers

    with ThreadPoolExecutor(4) as pool:
        streams = [pool.submit(stream) for _ in range(4)]
        for _ in range(2):
            time.sleep(0.7)
            postgres.kill()
            time.sleep(0.2)
            postgres.restart()
        time.sleep(0.7)
        stop.set()
        answers = [answer for each in streams for answer in each.result()]

    assert any(tries > 1 for _, _, tries in answers) or len(answers) > 4
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
    counts("answers around two deaths of PostgreSQL, kept", len(paid))


def test_d2_on_a_full_disk_nothing_is_half_done_and_the_same_key_works_once_it_is_freed(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        server = world.serve()
        client = world.client("ada")
        free = count("people", float(PRICE), fresh=True)
        assert ask(client, free, new_key()).status_code == 200
        process = psutil.Process(server.process.pid)
        process.rlimit(psutil.RLIMIT_FSIZE, (4096, psutil.RLIM_INFINITY))  # no file may grow
        request_key = new_key()
        reply = ask(client, free, request_key)
        assert reply.status_code == 503, reply.text
        assert reply.json()["type"] == "/problems/store-unavailable"
        assert len(stored(world.ledger)) == 1

        process.rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        freed = ask_until_settled(client, free, request_key)
        assert freed.status_code == 200, freed.text
        assert ask(client, free, request_key).content == freed.content
        assert len(world.entries("people", "charge")) == 2
        assert world.spent("people", "ada") == 2 * PRICE
        world.must_be_sound()
    finally:
        world.ledger.stop()


def test_a_killed_worker_is_replaced_and_its_question_is_answered(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        server = world.serve(fault="F7=kill", lease_seconds=LEASE_SECONDS, BURSAR_WORKERS="2")
        ada = world.people["ada"]
        request_key = new_key()
        assert ask_and_lose_the_server(server, ada.key, request_key) is None
        assert server.process.poll() is None
        time.sleep(LEASE_SECONDS)
        reply = ask_until_settled(server.client(ada.key), QUESTION, request_key)
        assert reply.status_code == 200
        must_have_one_charge(world)
    finally:
        world.ledger.stop()
