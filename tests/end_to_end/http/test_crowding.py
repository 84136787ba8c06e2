"""One caller cannot block others: bodies, lists, sockets, and fair turns among analysts."""

import contextlib
import select
import socket
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.bursard import wait_until
from tests.end_to_end.time.questions import predicates
from tests.server import World, ask, count, made, new_key

LARGE = "[" + "[]," * 90_000 + "[]]"
LATER = "respond-async"


# Bodies


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/queries/preview", "/v1/accounting/compose"])
def test_a_large_body_without_a_grant_is_refused_unread(live: World, path: str) -> None:
    """The server parses neither a viewer's body nor that of an analyst without a budget."""
    for role in ("viewer", "analyst"):
        client = live.client(live.person(role=role))
        for sent in (LARGE.encode(), iter([LARGE.encode()])):  # with and without a declared length
            reply = client.post(path, content=sent)
            assert reply.status_code == 413, reply.text
            assert "65536" in reply.json()["detail"]


@pytest.mark.parametrize(
    "query",
    [
        '{"kind":"workload","predicates":%s}',
        '{"kind":"median","column":"income","candidates":%s}',
        '{"kind":"count","where":{"all":%s}}',
        '{"kind":"count","where":{"column":"age","op":"in","value":%s}}',
        '{"kind":"count","group_by":%s}',
        '{"kind":"histogram","column":"income","edges":%s}',
    ],
)
def test_a_list_of_many_bad_items_has_one_error(live: World, query: str) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    body = f'{{"dataset":"{dataset}","privacy":{{"epsilon":1}},"query":{query % LARGE}}}'
    reply = live.client(person).post("/v1/queries", content=body.encode())
    assert reply.status_code == 422, reply.text
    assert len(reply.json()["errors"]) <= 3  # those of one item, which may match several types


def test_a_body_of_too_many_values_is_not_parsed(live: World) -> None:
    person = live.person()
    live.open_dataset(person)
    client = live.client(person)
    few = f"[{'[],' * 110_000}0]"
    for sent, most in (
        (f"[{'0,' * 300_000}0]", "250000 values"),
        (few, "100000 lists and objects"),
    ):
        reply = client.post("/v1/queries", content=sent.encode())
        assert reply.status_code == 413
        assert most in reply.text


def test_large_bodies_beyond_an_analysts_places_are_refused_unread(live: World) -> None:
    """Four bodies hang half sent. A fifth is refused by its length, and somebody else's is read."""
    one, other = live.person(), live.person()
    live.open_dataset(one, other)
    large = b" " * 100_000
    head = f"POST /v1/queries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {one.key}\r\n"
    half = f"{head}Content-Length: {len(large)}\r\n\r\n".encode() + large[:1000]
    client = live.client(one)

    def refused() -> bool:
        return client.post("/v1/queries", content=large).status_code == 429

    def held() -> socket.socket:
        connection = places.enter_context(connected(live))
        connection.sendall(half)
        return connection

    with contextlib.ExitStack() as places:
        waiting = [held() for _ in range(4)]

        def full() -> bool:
            """Bodies that were refused, because a check came before them, are sent again."""
            for answered in select.select(waiting, [], [], 0)[0]:
                waiting[waiting.index(answered)] = held()
            return refused()

        wait_until(full, 30, "a fifth body was read")
        assert live.client(other).post("/v1/queries", content=large).status_code == 400
    wait_until(lambda: not refused(), 30, "the places were never given back")


def test_a_list_of_previews_is_bounded_before_it_starts(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    candidates = {"low": 0, "high": 200_000, "count": 100_000}
    one = count(dataset) | {
        "query": {"kind": "median", "column": "income", "candidates": candidates}
    }
    reply = live.client(person).post("/v1/queries/preview", json=[one] * 100)
    assert reply.status_code == 422
    assert "1000000" in reply.json()["detail"]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_the_largest_single_requests_leave_the_server_below_a_gigabyte(world: World) -> None:
    world.serve(BURSAR_RELEASE_GRID_MS="0")
    person = world.person()
    dataset = world.open_dataset(person, epsilon=100, total=100)
    client = world.client(person)
    edges = [2 * i for i in range(100_001)]
    grid = {"low": 0, "high": 200_000, "count": 100_000}
    median = {"kind": "median", "column": "income", "candidates": grid}
    histogram = {"kind": "histogram", "column": "income", "edges": edges}
    for query in (median, histogram):
        made(ask(client, count(dataset) | {"query": query}, new_key()))
    previews = [count(dataset, 1 + number / 100) | {"query": median} for number in range(9)]
    made(client.post("/v1/queries/preview", json=previews))
    status = Path(f"/proc/{world.server.process.pid}/status").read_text()
    peak_kilobytes = int(status.split("VmHWM:")[1].split()[0])
    assert peak_kilobytes < 1_000_000


# Turns


HELD = """
import pathlib, time
from app.mechanisms.noise.workload_release import WorkloadRelease
read = WorkloadRelease.read
def held(self, data):
    while not pathlib.Path({path!r}).exists():
        time.sleep(0.01)
    return read(self, data)
WorkloadRelease.read = held
"""


@pytest.mark.parametrize("grid", ["100", "0"])
def test_others_are_answered_while_all_questions_of_one_analyst_hang(
    world: World, grid: str
) -> None:
    """Sixty workloads never end. Another analyst's count waits for none of them."""
    sign = world.ledger.folder / "go-on"
    world.serve(BURSAR_RELEASE_GRID_MS=grid, sabotage=HELD.format(path=str(sign)))
    busy, other = world.person(), world.person()
    dataset = world.open_dataset(busy, other)
    client = world.client(busy)
    for number in range(60):
        where = {"column": "age", "op": ">=", "value": number / 1000}
        workload = {"kind": "workload", "predicates": predicates(3, 2, where)}
        question = count(dataset, 0.001) | {"query": workload}
        assert ask(client, question, new_key(), LATER).status_code == 202
    assert ask(world.client(other), count(dataset, 0.001), new_key()).status_code == 200
    items = made(client.get("/v1/queries?limit=100"))["items"]
    assert [item["status"] for item in items] == ["running"] * 60
    sign.touch()


HELD_SAMPLES = """
import pathlib, time
from app.api import datasets
drawn = datasets.sample_rows
def held(card, rows, choice):
    while rows == 999 and not pathlib.Path({path!r}).exists():
        time.sleep(0.01)
    return drawn(card, rows, choice)
datasets.sample_rows = held
"""


def test_free_reads_beyond_an_analysts_limit_are_refused(world: World) -> None:
    """One sample of an analyst hangs, eight wait, and three are refused. Others are served."""
    sign = world.ledger.folder / "go-on"
    world.serve(sabotage=HELD_SAMPLES.format(path=str(sign)))
    busy, other = world.person(), world.person()
    dataset = world.open_dataset(busy, other)
    statuses: list[int] = []

    def read() -> None:
        reply = world.client(busy).get(f"/v1/datasets/{dataset}/sample?rows=999")
        statuses.append(reply.status_code)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(12)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(statuses) >= 3, 60, "nothing was refused")
    assert made(world.client(other).get(f"/v1/datasets/{dataset}/sample?rows=1"))["made_up"]
    assert ask(world.client(other), count(dataset, 0.001), new_key()).status_code == 200
    curve = world.client(busy).get(f"/v1/datasets/{dataset}/budgets/{busy.name}/tradeoff")
    assert (curve.status_code, "8 of your requests" in curve.text) == (429, True)
    assert statuses == [429] * 3
    sign.touch()
    for thread in threads:
        thread.join(60)
    assert sorted(statuses) == [200] * 9 + [429] * 3


def test_questions_beyond_an_analysts_limit_are_refused_uncharged(
    world: World,
) -> None:
    world.serve(BURSAR_RUNNING_EACH="3", fault="F5=pause:600", once=False)
    one, other = world.person(), world.person()
    dataset = world.open_dataset(one, other)
    client = world.client(one)

    def later(number: int) -> dict[str, object]:
        where = {"column": "age", "op": ">=", "value": number}
        return count(dataset, 0.25) | {"query": {"kind": "count", "where": where}}

    for number in range(3):
        assert ask(client, later(number), new_key(), LATER).status_code == 202
    refused = ask(client, later(4), new_key(), LATER)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert world.spent(dataset, one.name) == Decimal("0.75")
    assert ask(world.client(other), later(5), new_key(), LATER).status_code == 202
    world.server.kill()


# Sockets


@contextlib.contextmanager
def connected(world: World) -> Iterator[socket.socket]:
    address = urlsplit(world.server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as made_one:
        yield made_one


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        b"POST /v1/queries HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["nothing", "half of the headers", "half of the body"],
)
def test_an_incomplete_request_is_closed(world: World, sent: bytes) -> None:
    """The request would wait forever: the test ends because the server closes it."""
    world.serve(BURSAR_HEADER_SECONDS="0.5", BURSAR_BODY_SECONDS="0.5")
    with connected(world) as half:
        half.sendall(sent)
        while half.recv(4096):
            pass
    # A slow client is closed too, and tries again.
    wait_until(world.server._is_ready, 60, "the server is gone")


def test_connections_per_address_are_limited(world: World) -> None:
    world.serve(BURSAR_CONNECTIONS_EACH="4", BURSAR_HEADER_SECONDS="3600")
    with contextlib.ExitStack() as held:
        ours = [held.enter_context(connected(world)) for _ in range(8)]
        closed = []

        def read(one: socket.socket) -> None:
            with contextlib.suppress(OSError):
                if one.recv(1) == b"":
                    closed.append(one)

        threads = [threading.Thread(target=read, args=(one,), daemon=True) for one in ours]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(closed) >= 4, 30, "no connection was closed")
