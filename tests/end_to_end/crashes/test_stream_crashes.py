"""A real server is killed while it opens or answers a stream: nothing is drawn or sent twice.

The points are rows of the table of crash points in the safety notes. For an ask, CLAIM replaces
CHARGE. The tests read the database after a crash, before any server recovers it.
"""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.conftest import STORES, Counts, Template
from tests.end_to_end.crashes.test_crash_points import LEASE_SECONDS, PRICE, PRICE_UNITS, Rig
from tests.server import (
    Person,
    World,
    above_threshold,
    ask_stream,
    made,
    new_key,
    open_stream,
)

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I14")]
OPENING_POINTS = ["F2", "F3", "F4", "F7", "F8", "F9", "F10", "F11"]
ASKING_POINTS = ["F1", "F2", "F3", "F5", "F6", "F7", "F8", "F9", "F11"]
NOTHING_DONE = {"F1", "F2"}
STORED = {"F9", "F10", "F11"}
OPENING = above_threshold("people", float(PRICE), crossings=5, asks_max=10)


@pytest.fixture(scope="module", params=STORES)
def rig(
    peopled: Template, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Rig]:
    world = peopled(request.param, tmp_path_factory.mktemp("rig") / "ledger")
    made = Rig(world)
    made.start(OPENING_POINTS[0])
    yield made
    world.ledger.stop()


def next_of(points: list[str], point: str) -> str:
    return points[(points.index(point) + 1) % len(points)]


def patiently(send: Callable[[], httpx.Response]) -> httpx.Response:
    """Repeat a request like a client that obeys Retry-After."""
    for _ in range(300):
        reply = send()
        if reply.status_code != 409 or "Retry-After" not in reply.headers:
            return reply
        time.sleep(0.1)
    raise TimeoutError("every reply asked to wait")


def somebody(world: World) -> Person:
    person = world.person()
    world.grant("people", person.name, 1)
    return person


def streams(world: World, person: Person) -> list[tuple[object, ...]]:
    """Sealed secret, remaining crossings and asks, and version of this person's streams."""
    return world.ledger.rows(
        "SELECT secret, crossings_left, asks_left FROM streams "
        "JOIN analysts ON analysts.id = streams.analyst_id "
        f"WHERE name = '{person.name}'"
    )


def asks(world: World, stream: str) -> list[tuple[object, ...]]:
    return world.ledger.rows(f"SELECT state, answer FROM asks WHERE stream_id = '{stream}'")


@pytest.mark.parametrize("point", OPENING_POINTS)
def test_a_server_killed_while_it_opens_a_stream_leaves_one_charge_and_one_threshold(
    rig: Rig, point: str, counts: Counts
) -> None:
    world = rig.world
    server = rig.ready_to_die_at(point)
    person = somebody(world)
    key, client = new_key(), server.client(person.key)
    rig.arm()
    with pytest.raises(httpx.TransportError):
        open_stream(client, OPENING, key)
    assert server.wait_dead() == -signal.SIGKILL
    before = streams(world, person)
    assert rig.paid(person) == ((0, 0) if point in NOTHING_DONE else (1, PRICE_UNITS))
    assert len(before) == (point in STORED)
    assert [state for state, _ in rig.stored(person)] == (
        [] if point in NOTHING_DONE else ["answered" if point in STORED else "charged"]
    )

    rig.start(next_of(OPENING_POINTS, point))
    client = world.client(person)
    opened = patiently(lambda: open_stream(client, OPENING, key))
    assert opened.status_code == 201, opened.text
    assert open_stream(client, OPENING, key).content == opened.content
    after = streams(world, person)
    assert len(after) == 1
    assert before in ([], after), "a stored threshold must not be drawn again"
    assert rig.stored(person) == [("answered", opened.text)]
    assert rig.paid(person) == (1, PRICE_UNITS)
    assert world.spent("people", person.name) == PRICE
    answer = made(ask_stream(client, opened.json()["id"]))
    assert answer["asks_left"] == 9
    world.must_be_sound()
    counts("crash points of openings", 1)


@pytest.mark.parametrize("point", ASKING_POINTS)
def test_a_server_killed_during_an_ask_leaves_one_answer_and_uses_one_ask(
    rig: Rig, point: str, counts: Counts
) -> None:
    world = rig.world
    server = rig.ready_to_die_at(point)
    person = somebody(world)
    key, client = new_key(), server.client(person.key)
    stream = made(open_stream(client, OPENING))["id"]
    (fresh,) = streams(world, person)
    rig.arm()
    with pytest.raises(httpx.TransportError):
        ask_stream(client, stream, None, key)
    assert server.wait_dead() == -signal.SIGKILL
    (secret, crossings, left), stored = streams(world, person)[0], asks(world, stream)
    assert secret == fresh[0]
    if point in NOTHING_DONE:
        assert (stored, crossings, left) == ([], 5, 10)
    elif point in STORED:
        assert [state for state, _ in stored] == ["answered"]
    else:
        assert (stored, crossings, left) == ([("charged", None)], 5, 9)

    rig.start(next_of(ASKING_POINTS, point))
    client = world.client(person)
    first = patiently(lambda: ask_stream(client, stream, None, key))
    assert first.status_code == 200, first.text
    again = ask_stream(client, stream, None, key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    if point in STORED:
        assert stored == [("answered", first.text)]
    assert asks(world, stream) == [("answered", first.text)]
    answer = first.json()
    assert (answer["crossings_left"], answer["asks_left"]) == (5 - answer["above"], 9)
    assert streams(world, person) == [(secret, answer["crossings_left"], 9)]
    assert rig.paid(person) == (1, PRICE_UNITS), "asking costs nothing"
    world.must_be_sound()
    counts("crash points of asks", 1)


@pytest.mark.invariant("I16")
def test_w1_an_ask_that_resumes_after_its_lease_overwrites_nothing(
    world: World,
) -> None:
    """While the first server sleeps with its answer drawn, a second server answers another ask."""
    ada = world.people["ada"]
    slow = world.serve(fault=world.ledger.hold("F7"), lease_seconds=LEASE_SECONDS)
    quick = world.serve(elsewhere=True, lease_seconds=LEASE_SECONDS)
    opening = above_threshold("people", 0.5, crossings=5, asks_max=10)
    fired = world.ledger.folder / "fired"
    fired.touch()  # disarmed while the stream is opened
    stream = made(open_stream(slow.client(ada.key), opening))["id"]
    fired.unlink()
    clients = slow.client(ada.key), quick.client(ada.key)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(ask_stream, clients[0], stream, None, "sleeps")
        world.ledger.wait_fired()
        meanwhile = patiently(lambda: ask_stream(clients[1], stream, None, "is quick"))
        assert meanwhile.status_code == 200, meanwhile.text
        world.ledger.let_go()
        woken = late.result()
    assert woken.status_code == 409, "its stream has moved on"
    resumed = patiently(lambda: ask_stream(clients[1], stream, None, "sleeps"))
    assert resumed.status_code == 200, resumed.text
    answers = [meanwhile.json(), resumed.json()]
    left = 5
    for answer in answers:
        left -= answer["above"]
        assert answer["crossings_left"] == left
    assert [answer["asks_left"] for answer in answers] == [8, 8], (
        "both were claimed before either was answered"
    )
    rows = world.ledger.rows("SELECT crossings_left, asks_left FROM streams")
    assert rows == [(left, 8)]
    for client in clients:
        assert ask_stream(client, stream, None, "sleeps").content == resumed.content
    world.must_be_sound()


@pytest.mark.invariant("I17")
def test_after_three_vanished_attempts_an_ask_is_forfeited_and_the_stream_continues(
    world: World,
) -> None:
    stream = made(open_stream(world.client("ada"), OPENING))["id"]
    for _ in range(3):
        armed = world.serve(fault="F6=kill", once=False, lease_seconds=LEASE_SECONDS)
        client = world.client("ada")
        with pytest.raises(httpx.TransportError):
            patiently(lambda: ask_stream(client, stream, None, "dies"))  # noqa: B023  # at once
        assert armed.wait_dead() == -signal.SIGKILL
    world.serve(lease_seconds=LEASE_SECONDS)
    client = world.client("ada")
    lost = [patiently(lambda: ask_stream(client, stream, None, "dies")) for _ in range(2)]
    assert {reply.status_code for reply in lost} == {503}
    assert {reply.json()["type"] for reply in lost} == {"/problems/question-forfeited"}
    assert lost[0].content == lost[1].content
    assert made(ask_stream(client, stream))["asks_left"] == 8
    world.must_be_sound()


@pytest.mark.invariant("I17")
def test_w3_an_ask_whose_prepared_data_are_garbage_is_forfeited_and_uses_one_ask(
    world: World,
) -> None:
    client = world.client("ada")
    stream = made(open_stream(client, OPENING))["id"]
    for version in (world.ledger.home / "versions").glob("*.duckdb"):
        version.unlink()
        version.write_bytes(b"this is no database" * 1000)
    lost = [ask_stream(client, stream, None, "fails") for _ in range(2)]
    assert {reply.json()["type"] for reply in lost} == {"/problems/question-forfeited"}
    assert lost[0].content == lost[1].content
    shown = made(client.get(f"/v1/streams/{stream}"))
    assert (shown["asks_left"], shown["crossings_left"]) == (9, 5)
