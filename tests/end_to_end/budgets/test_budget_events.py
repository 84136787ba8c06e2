"""Budgets as server-sent events, on both stores."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import Empty, Queue

import httpx
import pytest

from tests.bursard import wait_until
from tests.conftest import Counts
from tests.server import Json, Person, World, count, made

WATCHERS = 500
SECONDS = 60


class Stream:
    """An open stream of events, read by a thread."""

    def __init__(self, world: World, key: str, last: str | None = None, url: str = "") -> None:
        self.events: Queue[tuple[str, str, Json]] = Queue()
        self.ended = threading.Event()
        headers = {"Authorization": f"Bearer {key}"}
        headers |= {} if last is None else {"Last-Event-ID": last}
        self._client = httpx.Client(base_url=url or world.server.url, headers=headers, timeout=60)
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert self._opened.wait(SECONDS), "the stream did not open"

    def _read(self) -> None:
        with (
            suppress(httpx.HTTPError, RuntimeError),
            self._client.stream("GET", "/v1/budgets/events") as reply,
        ):
            assert reply.headers["content-type"].startswith("text/event-stream")
            fields: dict[str, str] = {}
            for line in reply.iter_lines():
                self._opened.set()  # the first line comes at once
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "data" in fields:
                    event = fields.get("id", ""), fields["event"], json.loads(fields["data"])
                    self.events.put(event)
                    fields = {}
        self.ended.set()

    def next(self) -> tuple[str, str, Json]:
        return self.events.get(timeout=SECONDS)

    def has_more(self, seconds: float) -> bool:
        try:
            self.events.get(timeout=seconds)
        except Empty:
            return False
        return True

    def close(self) -> None:
        self._client.close()


@contextmanager
def watching(world: World, who: str | Person, last: str | None = None) -> Iterator[Stream]:
    key = world.ledger.admin_key if who == "admin" else ""
    if not key:
        key = (world.people[who] if isinstance(who, str) else who).key
    stream = Stream(world, key, last)
    yield stream
    stream.close()


def spend(world: World, name: str, epsilon: float) -> None:
    made(world.client(name).post("/v1/queries", json=count("people", epsilon, fresh=True)))


def test_everybody_sees_what_they_may_and_nothing_else(world: World) -> None:
    with (
        watching(world, "vera") as vera,
        watching(world, "ada") as ada,
        watching(world, "bob") as bob,
    ):
        spend(world, "ada", 0.25)
        _, kind, budget = ada.next()
        assert (kind, budget["holder"], budget["used"]) == ("budget", "ada", 0.25)
        seen = {event[2]["holder"]: event[2] for event in (vera.next(), vera.next())}
        assert set(seen) == {"ada", "*"}
        for holder, event in seen.items():
            shown = world.admin.get(f"/v1/datasets/people/budgets/{holder}")
            expected = {**made(shown), "etag": shown.headers["etag"]}
            assert event == expected
        assert not bob.has_more(1.0)


def test_a_break_is_caught_up_by_the_last_event_id(world: World) -> None:
    with watching(world, "ada") as ada:
        spend(world, "ada", 0.1)
        last, _, _ = ada.next()
    spend(world, "ada", 0.2)
    with watching(world, "ada", last) as ada:
        _, _, budget = ada.next()
        assert budget["spent"]["epsilon"] == 0.3
    reply = world.client("ada").get("/v1/budgets/events", headers={"Last-Event-ID": "x"})
    assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid")


HELD_LOOKS = """
import pathlib, time
from app.store.history.balance_changes import SqlBalanceChanges
head = SqlBalanceChanges.head
def held(self):
    pathlib.Path({entered!r}).touch()
    while not pathlib.Path({sign!r}).exists():
        time.sleep(0.01)
    return head(self)
SqlBalanceChanges.head = held
"""


def test_a_charge_during_the_first_look_of_a_stream_is_not_missed(world: World) -> None:
    """The stream is opened, the first look at the ledger hangs, and meanwhile somebody charges."""
    entered, sign = (world.ledger.folder / name for name in ("entered", "sign"))
    world.ledger.folder.mkdir(parents=True, exist_ok=True)
    world.serve(sabotage=HELD_LOOKS.format(entered=str(entered), sign=str(sign)))
    since = str(time.time_ns() // 1000)
    with ThreadPoolExecutor() as threads:
        opening = threads.submit(Stream, world, world.people["ada"].key, since)
        wait_until(entered.exists, SECONDS, "nobody looks at the ledger")
        spend(world, "ada", 0.25)
        sign.touch()
        stream = opening.result()
    assert stream.next()[2]["used"] == 0.25
    stream.close()


def test_charges_of_another_server_are_seen(world: World) -> None:
    with watching(world, "ada") as ada:
        other = world.ledger.serve(elsewhere=world.ledger.kind == "postgresql")
        client = other.client(world.people["ada"].key)
        made(client.post("/v1/queries", json=count("people", 0.25)))
        _, _, budget = ada.next()
        assert budget["used"] == 0.25


def test_a_revoked_key_ends_its_stream(world: World) -> None:
    person = world.person()
    world.grant("people", person.name, 1)
    with watching(world, person) as stream:
        (key,) = made(world.admin.get(f"/v1/analysts/{person.name}"))["keys"]
        assert world.admin.delete(f"/v1/keys/{key['id']}").status_code == 204
        world.grant("people", person.name, 2)  # a change that the key may not see any more
        assert stream.next()[1] == "end"
        assert stream.ended.wait(SECONDS)


def test_a_stream_follows_the_rights_of_its_reader(world: World) -> None:
    """A viewer becomes an analyst, and then a member of a group, while the stream is open."""
    reader, asker = world.person(role="viewer"), world.person()
    groups = {"groups": ["readers"]}
    assert world.admin.patch(f"/v1/analysts/{asker.name}", json=groups).status_code == 200
    for holder in (asker.name, "group:readers"):
        world.grant("people", holder, 1)
    with watching(world, reader) as stream:
        spend(world, asker.name, 0.1)
        seen: set[str] = set()
        while not {asker.name, "group:readers", "*"} <= seen:
            seen.add(stream.next()[2]["holder"])
        while stream.has_more(1):
            pass
        path = f"/v1/analysts/{reader.name}"
        assert world.admin.patch(path, json={"role": "analyst"}).status_code == 200
        spend(world, asker.name, 0.1)
        assert world.admin.patch(path, json=groups).status_code == 200
        wait_until(lambda: shows_group(world, stream), SECONDS, "the group's budget never came")
        assert stream.events.empty()


def shows_group(world: World, stream: Stream) -> bool:
    """Change the group's budget until the stream shows it; it shows no other."""
    world.grant("people", "group:readers", 1 + time.time() % 1)
    with suppress(Empty):
        while True:
            assert stream.events.get(timeout=1)[2]["holder"] == "group:readers"
            return True
    return False


def test_without_a_key_there_is_no_stream(live: World) -> None:
    assert live.server.client().get("/v1/budgets/events").status_code == 401


@pytest.mark.thorough
def test_hundreds_of_watchers_see_a_charge(live: World, counts: Counts) -> None:
    """They all see it; the slowest of them is printed, because a busy machine decides it."""
    live.serve(BURSAR_CONNECTIONS_EACH="1000")
    person = live.person()
    live.grant("people", person.name, 10)
    streams = [Stream(live, person.key) for _ in range(WATCHERS)]
    began = time.monotonic()
    made(live.client(person).post("/v1/queries", json=count("people", 0.1)))
    for stream in streams:
        assert stream.next()[2]["holder"] == person.name
    counts("milliseconds until 500 watchers saw a charge", int(1000 * (time.monotonic() - began)))
    for stream in streams:
        stream.close()


def test_a_stop_ends_open_streams(world: World, counts: Counts) -> None:
    """The grace period is long; open streams must not use it up."""
    world.serve(BURSAR_STOP_SECONDS="60")
    with watching(world, "ada") as ada:
        began = time.monotonic()
        world.server.stop()
        assert ada.ended.wait(SECONDS)
        counts("milliseconds of a stop with an open stream", int(1000 * (time.monotonic() - began)))
    assert "Traceback" not in world.server.output()
