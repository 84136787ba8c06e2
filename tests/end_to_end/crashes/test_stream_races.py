"""Many clients and two servers on one stream.

Asks are ordered, no crossing is counted twice, and one request key is one answer.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import httpx
import pytest

from tests.bursard import Server
from tests.conftest import STORES, Counts, Template
from tests.server import Json, World, above_threshold, ask_stream, made, new_key, open_stream

CLIENTS = 12
SURE = "100"
NOBODY: Json = {"column": "age", "op": "<", "value": 0}


@pytest.fixture(scope="module", params=STORES)
def servers(
    peopled: Template, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[World, list[Server]]]:
    world = peopled(request.param, tmp_path_factory.mktemp("race") / "ledger")
    yield world, [world.serve(), world.serve(elsewhere=True)]
    world.ledger.stop()


def opened(world: World, running: list[Server], **more: int) -> tuple[str, list[httpx.Client]]:
    """A stream, and clients of its owner spread over the servers."""
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1000)
    clients = [running[i % len(running)].client(person.key) for i in range(CLIENTS)]
    stream = made(open_stream(clients[0], above_threshold(dataset, SURE, **more)))
    return stream["id"], clients


def all_at_once(
    clients: list[httpx.Client], stream: str, asks_per_client: int
) -> list[httpx.Response]:
    """Every client sends its asks at once, alternating between everybody and nobody, with new
    keys.
    """
    start = Barrier(len(clients))

    def send(client: httpx.Client) -> list[httpx.Response]:
        start.wait()
        wheres = [None, NOBODY] * asks_per_client
        return [ask_stream(client, stream, where, new_key()) for where in wheres[:asks_per_client]]

    with ThreadPoolExecutor(len(clients)) as pool:
        return [reply for replies in pool.map(send, clients) for reply in replies]


def in_order(replies: list[httpx.Response]) -> list[Json]:
    """Answers in the order in which they used up asks."""
    answers = [reply.json() for reply in replies if reply.status_code == 200]
    return sorted(answers, key=lambda answer: -answer["asks_left"])


def are_ordered(answers: list[Json], crossings: int, asks_max: int) -> bool:
    """True if each answer uses one ask and counts each crossing once."""
    if [answer["asks_left"] for answer in answers] != [
        asks_max - 1 - i for i in range(len(answers))
    ]:
        return False
    for answer in answers:
        crossings -= answer["above"]
        if answer["crossings_left"] != crossings:
            return False
    return crossings >= 0


@pytest.mark.invariant("I14")
def test_asks_of_one_stream_are_ordered_and_no_crossing_is_counted_twice(
    servers: tuple[World, list[Server]], counts: Counts
) -> None:
    world, running = servers
    stream, clients = opened(world, running, crossings=20, asks_max=1000)
    replies = all_at_once(clients, stream, 6)
    statuses = Counter(reply.status_code for reply in replies)
    assert set(statuses) <= {200, 409}
    answers = in_order(replies)
    assert are_ordered(answers, 20, 1000)
    assert sum(answer["above"] for answer in answers) == 20
    shown = made(clients[0].get(f"/v1/streams/{stream}"))
    assert (shown["status"], shown["crossings_left"]) == ("ended", 0)
    assert shown["asks_left"] == 1000 - len(answers)
    ended = {reply.json()["type"] for reply in replies if reply.status_code == 409}
    assert ended == {"/problems/stream-ended"}
    world.must_be_sound()
    counts("races on streams: answers", len(answers))
    counts("races on streams: refused after the end", statuses[409])


@pytest.mark.invariant("I5")
def test_one_request_key_sent_by_all_clients_at_once_is_one_ask_and_one_answer(
    servers: tuple[World, list[Server]], counts: Counts
) -> None:
    world, running = servers
    stream, clients = opened(world, running, crossings=50, asks_max=50)
    keys, start = [new_key() for _ in range(8)], Barrier(CLIENTS)

    def send(client: httpx.Client) -> list[tuple[int, bytes]]:
        replies = []
        for key in keys:
            start.wait()
            reply = ask_stream(client, stream, None, key)
            replies.append((reply.status_code, reply.content))
        return replies

    with ThreadPoolExecutor(CLIENTS) as pool:
        by_client = list(pool.map(send, clients))
    for number, key in enumerate(keys):
        replies = [replies[number] for replies in by_client]
        assert {status for status, _ in replies} <= {200, 409}
        later = ask_stream(clients[0], stream, None, key)
        assert {content for status, content in replies if status == 200} == {later.content}
    shown = made(clients[0].get(f"/v1/streams/{stream}"))
    assert (shown["crossings_left"], shown["asks_left"]) == (42, 42)
    counts("races on streams: keys", len(keys))


# Each ask takes a moment, so that some overlap.
UNFENCED = """
import time
from dataclasses import replace
from app.actions.asking.ask_stream import AskStream
from app.store.writer import stream_decisions as settle_asks
read = AskStream._read
def read_slowly(*given):
    time.sleep(0.05)
    return read(*given)
AskStream._read = read_slowly
settle = settle_asks.StreamDecisions._settle
def settle_whatever_came_since(batch, order, state, answer, *stored):
    stream = batch._streams[order.stream_id]
    return settle(batch, replace(order, fence=stream.version), state, answer, *stored)
settle_asks.StreamDecisions._settle = settle_whatever_came_since
settle_asks.StreamDecisions._held = lambda batch, stream: None
"""


@pytest.mark.invariant("I16")
@pytest.mark.saboteur
def test_saboteur_asks_that_neither_lock_their_stream_nor_check_its_fence_are_caught(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        running = [world.serve(sabotage=UNFENCED) for _ in range(2)]
        stream, clients = opened(world, running, crossings=50, asks_max=1000)
        in_sequence = in_order(all_at_once(clients, stream, 6))
        assert not are_ordered(in_sequence, 50, 1000)
    finally:
        world.ledger.stop()
