"""Many clients over two servers on one stream: asks are ordered, no crossing is counted twice, and
one request key is one answer."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import httpx
import pytest

from tests.conftest import STORES, Counts, Template
from tests.server import (
    Json,
    Server,
    World,
    above_threshold,
    ask_stream,
    made,
    new_key,
    open_stream,
)

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
    """A stream, and clients of its owner over the servers in turn."""
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1000)
    clients = [running[i % len(running)].client(person.key) for i in range(CLIENTS)]
    stream = made(open_stream(clients[0], above_threshold(dataset, SURE, **more)))
    return stream["id"], clients


def all_at_once(clients: list[httpx.Client], stream: str, each: int) -> list[httpx.Response]:
    """Every client asks so often, of everybody and of nobody in turn, each under its own key."""
    start = Barrier(len(clients))

    def send(client: httpx.Client) -> list[httpx.Response]:
        start.wait()
        wheres = [None, NOBODY] * each
        return [ask_stream(client, stream, where, new_key()) for where in wheres[:each]]

    with ThreadPoolExecutor(len(clients)) as pool:
        return [reply for replies in pool.map(send, clients) for reply in replies]


def in_order(replies: list[httpx.Response]) -> list[Json]:
    """Answers in the order in which their asks were used up."""
    told = [reply.json() for reply in replies if reply.status_code == 200]
    return sorted(told, key=lambda each: -each["asks_left"])


def are_ordered(told: list[Json], crossings: int, asks_max: int) -> bool:
    """Each ask is used up once, and each crossing counted once, from one answer to the next."""
    if [each["asks_left"] for each in told] != [asks_max - 1 - i for i in range(len(told))]:
        return False
    for each in told:
        crossings -= each["above"]
        if each["crossings_left"] != crossings:
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
    told = in_order(replies)
    assert are_ordered(told, 20, 1000)
    assert sum(each["above"] for each in told) == 20
    shown = made(clients[0].get(f"/v1/streams/{stream}"))
    assert (shown["status"], shown["crossings_left"]) == ("ended", 0)
    assert shown["asks_left"] == 1000 - len(told)
    ended = {reply.json()["type"] for reply in replies if reply.status_code == 409}
    assert ended == {"/problems/stream-ended"}
    world.must_be_sound()
    counts("races on streams: answers", len(told))
    counts("races on streams: refused after the end", statuses[409])


@pytest.mark.invariant("I5")
def test_one_request_key_sent_by_all_at_once_is_one_ask_and_one_answer(
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


# Each ask takes a moment, so that some surely go on at once.
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
def test_saboteur_asks_that_neither_hold_their_stream_nor_are_fenced_by_it_are_caught(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        running = [world.serve(sabotage=UNFENCED) for _ in range(2)]
        stream, clients = opened(world, running, crossings=50, asks_max=1000)
        told = in_order(all_at_once(clients, stream, 6))
        assert not are_ordered(told, 50, 1000)
    finally:
        world.ledger.stop()
