"""Two servers are restarted one after the other behind the proxy, and no request is lost."""

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from tests.bursard import Server, wait_until
from tests.conftest import Counts, Template
from tests.operations.caddy import needs_caddy
from tests.operations.pair import NUMBER, Pair, served_pair
from tests.server import World, count, new_key

pytestmark = needs_caddy
CALLERS = 4
EPSILON = Decimal("0.0001")
PATIENCE_SECONDS = 120
RETRIED = {409, 429, 502, 503, 504}  # those that the client tries again with the same key
IN_A_ROW = 20


def is_led_past(pair: Pair, times: int = IN_A_ROW) -> bool:
    """True if the proxy sends nothing to a server that is not ready."""
    with pair.proxy.client() as client:
        return all(client.get("/readyz").status_code == 200 for _ in range(times))


def is_ready(server: Server) -> bool:
    return server.client().get("/readyz").status_code == 200


@pytest.fixture
def forever(peopled: Template, tmp_path: Path) -> Iterator[Pair]:
    """Servers that drain until a second signal."""
    with served_pair(peopled, tmp_path, BURSAR_DRAIN_SECONDS="3600") as pair:
        yield pair


def test_the_proxy_leaves_a_draining_server_before_it_stops(forever: Pair) -> None:
    first, second = forever.servers
    first.process.send_signal(signal.SIGTERM)
    wait_until(lambda: is_led_past(forever), PATIENCE_SECONDS, "the proxy stays at the first")
    assert first.process.poll() is None
    assert not is_ready(first)
    assert is_ready(second)


class Load:
    """Callers who ask one question after another, each until it is answered."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._enough = threading.Event()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(CALLERS)
        self.answered = 0
        self.retries = 0
        self._running = [self._threads.submit(self._call) for _ in range(CALLERS)]

    def stop(self) -> None:
        self._enough.set()
        for running in self._running:
            running.result(PATIENCE_SECONDS)

    def _call(self) -> None:
        key = self._pair.world.people["ada"].key
        with self._pair.proxy.client(key) as client:
            while not self._enough.is_set():
                attempts = self._ask(client, new_key())
                with self._lock:
                    self.answered += 1
                    self.retries += attempts - 1

    def _ask(self, client: httpx.Client, key: str) -> int:
        """Ask until there is an answer; the number of attempts."""
        question = count("people", float(EPSILON), fresh=True)
        for attempt in range(1, 200):
            try:
                reply = client.post("/v1/queries", json=question, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                continue
            if reply.status_code == 200:
                assert reply.json()["status"] == "answered"
                return attempt
            assert reply.status_code in RETRIED, reply.text
            self._enough.wait(0.25)
        raise AssertionError("a request was lost")

    def has_grown_by(self, number: int) -> "Growth":
        return Growth(self, number)


class Growth:
    """True once as many more questions have been answered."""

    def __init__(self, load: Load, number: int) -> None:
        self._load, self._goal = load, load.answered + number

    def __call__(self) -> bool:
        return self._load.answered >= self._goal


def restart(pair: Pair, number: int) -> None:
    old = pair.servers[number]
    old.process.send_signal(signal.SIGTERM)
    assert old.wait_dead(PATIENCE_SECONDS) in (0, -signal.SIGTERM)
    assert "before the ledger had settled" not in old.output()
    pair.servers[number] = pair.start(number)


def test_restarting_both_servers_loses_no_request_and_doubles_no_charge(
    peopled: Template, tmp_path: Path, counts: Counts
) -> None:
    settings = {"BURSAR_DRAIN_SECONDS": "2", "BURSAR_STOP_SECONDS": "20"}
    with served_pair(peopled, tmp_path, **settings) as pair:
        pair.world.grant("people", "ada", 100)
        load = Load(pair)
        try:
            for number in range(NUMBER):
                wait_until(load.has_grown_by(20), PATIENCE_SECONDS, "nothing is answered")
                restart(pair, number)
            wait_until(load.has_grown_by(20), PATIENCE_SECONDS, "nothing is answered")
        finally:
            load.stop()
        after = World(pair.world.ledger, pair.world.people)
        after.use(pair.servers[0])
        assert load.answered >= 3 * 20
        assert after.spent("people", "ada") == load.answered * EPSILON
        assert len(after.entries("people", "charge")) == load.answered
        assert after.entries("people", "void", "forfeit") == []
        after.must_be_sound()
        counts("answers while servers were restarted", load.answered)
        counts("attempts repeated meanwhile", load.retries)
