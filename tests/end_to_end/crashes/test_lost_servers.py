"""Servers that vanish or pause, and clients that disconnect.

W1 and W2 are rows of the table of crash points in the safety notes.
"""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait

import httpx
import pytest

from tests.bursard import wait_until
from tests.conftest import Counts
from tests.end_to_end.crashes.lost_parts import (
    LEASE_SECONDS,
    QUESTION,
    lose_a_server,
    must_fail_alike,
    must_have_one_charge,
    stored,
)
from tests.server import Json, World, ask, ask_and_hang_up, ask_until_settled, count, new_key

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I17")]
LOCKED_SECONDS = 1  # PostgreSQL ends a transaction that is idle for ten


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
