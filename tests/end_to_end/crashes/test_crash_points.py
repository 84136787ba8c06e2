"""A real server is killed at every fault point: nothing is lost, paid twice or drawn twice.

F1 to F12 are the rows of the table of crash points in the safety notes. The tests read the database
after a crash, before any server recovers it.

The server that recovers one point is already armed with the next. A file disarms it until the next
test removes that file. So every point costs one start, not two.
"""

import secrets
import signal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from tests.bursard import Server
from tests.conftest import STORES, Counts, Template
from tests.server import Person, World, ask, ask_until_settled, count, new_key

pytestmark = [pytest.mark.crash, pytest.mark.invariant("I34")]

PRICE = Decimal("0.25")
PRICE_UNITS = 250_000_000_000
LEASE_SECONDS = 0.3  # short, so that a restarted server finds it expired
POINTS = [f"F{number}" for number in range(1, 13)]
UNCHARGED = {"F1", "F2"}
CHARGED = {"F3", "F4", "F5", "F6", "F7", "F8"}
QUESTION = count("people", float(PRICE))


class Rig:
    """A world whose servers are armed before they are needed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._armed_with = ""
        self._disarmed: Path | None = None

    def start(self, point: str) -> Server:
        """Start a server armed with the point, which does not fire yet."""
        self._armed_with = point
        self._disarmed = self.world.ledger.folder / f"disarmed-{secrets.token_hex(4)}"
        self._disarmed.touch()
        return self.world.serve(
            fault=f"{point}=kill",
            lease_seconds=LEASE_SECONDS,
            BURSAR_FAULT_ONCE=str(self._disarmed),
        )

    def ready_to_die_at(self, point: str) -> Server:
        alive = self._disarmed is not None and self.world.server.process.poll() is None
        if not alive or self._armed_with != point:
            self.start(point)
        return self.world.server

    def arm(self) -> None:
        assert self._disarmed is not None
        self._disarmed.unlink()

    # Rows of the database

    def stored(self, person: Person) -> list[tuple[str, str | None]]:
        """State and answer of every charge of this person."""
        rows = self.world.ledger.rows(
            "SELECT state, answer FROM charges JOIN analysts ON analysts.id = charges.analyst_id "
            f"WHERE name = '{person.name}'"
        )
        return [(row[0], row[1]) for row in rows]

    def paid(self, person: Person) -> tuple[int, int]:
        """Number of charge entries of this person, and the account's spend."""
        entries = self.world.ledger.rows("SELECT text FROM entries WHERE kind = 'charge'")
        spent = self.world.ledger.rows(
            f"SELECT epsilon_spent FROM accounts WHERE holder = '{person.name}'"
        )
        return sum(f'"actor":"{person.name}"' in row[0] for row in entries), spent[0][0]


@pytest.fixture(scope="module", params=STORES)
def rig(
    peopled: Template, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Rig]:
    world = peopled(request.param, tmp_path_factory.mktemp("rig") / "ledger")
    made = Rig(world)
    made.start(POINTS[0])
    yield made
    world.ledger.stop()


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_server_loses_no_charge_and_draws_no_second_answer(
    rig: Rig, point: str, counts: Counts
) -> None:
    counts("crash points", 1)
    world = rig.world
    server = rig.ready_to_die_at(point)
    person = world.person()
    world.grant("people", person.name, 1)
    total_before = world.spent("people", "*")
    request_key = new_key()
    client = server.client(person.key)
    rig.arm()
    heard: bytes | None = None
    try:
        heard = ask(client, QUESTION, request_key).content
    except httpx.TransportError:
        assert heard is None
    assert server.wait_dead() == -signal.SIGKILL
    assert heard is None or point == "F12"  # at F12 the crash comes after the last byte

    # After the crash
    before = rig.stored(person)
    if point in UNCHARGED:
        assert before == []
        assert rig.paid(person) == (0, 0)
    elif point in CHARGED:
        assert before == [("charged", None)]
        assert rig.paid(person) == (1, PRICE_UNITS)
    else:
        assert [state for state, _ in before] == ["answered"]
        assert rig.paid(person) == (1, PRICE_UNITS)

    # After the next start
    rig.start(POINTS[(POINTS.index(point) + 1) % len(POINTS)])
    charged = Decimal(0) if point in UNCHARGED else PRICE
    assert world.spent("people", person.name) == charged
    assert world.spent("people", "*") == total_before + charged
    world.must_be_sound()

    # After a repeat with the same key
    client = world.client(person)
    first = ask_until_settled(client, QUESTION, request_key)
    assert first.status_code == 200, first.text
    again = ask(client, QUESTION, request_key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    if point not in UNCHARGED | CHARGED:
        assert before == [("answered", first.text)]
        assert heard in (None, first.content)
    assert rig.stored(person) == [("answered", first.text)]
    assert rig.paid(person) == (1, PRICE_UNITS)
    (entry,) = [e for e in world.entries("people", "charge") if e["actor"] == person.name]
    assert first.json()["receipt"] == {"entry": entry["seq"], "hash": entry["hash"]}
    assert world.entries("people", "void") == []
    assert world.spent("people", person.name) == PRICE
    assert world.spent("people", "*") == total_before + PRICE
    world.must_be_sound()
    counts("crash points recovered", 1)


AT_ONCE = ["F2", "F3", "F6", "F7", "F8", "F9", "F10", "F11", "F12"]
NEITHER = {"F2", "F6", "F7", "F8"}


@pytest.mark.parametrize("point", AT_ONCE)
def test_a_crash_leaves_both_or_neither_of_charge_and_answer_in_one_commit(
    rig: Rig, point: str, counts: Counts
) -> None:
    """The same question again, whose statistics the analyst has already paid for (decision
    0003).
    """
    counts("crash points of one commit", 1)
    world = rig.world
    server = rig.ready_to_die_at(point)
    person = world.person()
    world.grant("people", person.name, 1)
    client = server.client(person.key)
    assert ask(client, QUESTION, new_key()).status_code == 200
    again, request_key = {**QUESTION, "fresh": True}, new_key()
    (first,) = rig.stored(person)
    rig.arm()
    heard: bytes | None = None
    try:
        heard = ask(client, again, request_key).content
    except httpx.TransportError:
        assert heard is None
    assert server.wait_dead() == -signal.SIGKILL
    assert heard is None or point == "F12"

    # After the crash
    left = [row for row in rig.stored(person) if row != first]
    assert [state for state, _ in left] == ([] if point in NEITHER else ["answered"])
    assert rig.paid(person) == (1 + len(left), PRICE_UNITS * (1 + len(left)))

    # After the next start; that server has an empty cache and so takes two commits
    rig.start(AT_ONCE[(AT_ONCE.index(point) + 1) % len(AT_ONCE)])
    world.must_be_sound()
    client = world.client(person)
    reply = ask_until_settled(client, again, request_key)
    assert reply.status_code == 200, reply.text
    assert ask(client, again, request_key).content == reply.content
    if left:
        assert left == [("answered", reply.text)]
        assert heard in (None, reply.content)
    assert sorted(rig.stored(person)) == sorted([first, ("answered", reply.text)])
    assert rig.paid(person) == (2, 2 * PRICE_UNITS)
    assert world.entries("people", "void") == []
    world.must_be_sound()
    counts("crash points of one commit recovered", 1)
