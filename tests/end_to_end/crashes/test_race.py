"""Many clients and several server processes on one ledger.

No account exceeds its limit (I1, I2), and one request key is one charge (I5).
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier

import httpx
import pytest

from tests.bursard import Server
from tests.conftest import STORES, Counts, Template
from tests.server import Person, World, ask, ask_until_settled, count, exact, made, new_key

CLIENTS = 16
PRICE = Decimal("0.07")
AFFORDABLE = 111
LIMIT = PRICE * AFFORDABLE
REFUSALS_EACH = 2  # refusals after which a client stops


@pytest.fixture(scope="module", params=[*STORES, "sqlite with two workers"])
def servers(
    peopled: Template, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[World, list[Server]]]:
    """Two processes on one ledger: two servers, or one server with two workers."""
    kind = request.param.split()[0]
    world = peopled(kind, tmp_path_factory.mktemp("race") / "ledger")
    if request.param == kind:
        running = [world.serve(), world.serve(elsewhere=True)]
    else:
        running = [world.serve(BURSAR_WORKERS="2")]
    yield world, running
    world.ledger.stop()


def clients(running: list[Server], *people: Person) -> list[httpx.Client]:
    """One client per thread, spread over the servers and the people."""
    return [
        running[i % len(running)].client(people[i // len(running) % len(people)].key)
        for i in range(CLIENTS)
    ]


def ask_until_empty(asking: list[httpx.Client], dataset: str) -> Counter[int]:
    """All clients ask concurrently until they are refused; returns the count of each status."""
    start = Barrier(len(asking))

    def drain(client: httpx.Client) -> Counter[int]:
        seen: Counter[int] = Counter()
        start.wait()
        while seen[402] < REFUSALS_EACH:
            reply = ask(client, count(dataset, str(PRICE), fresh=True), new_key())
            seen[reply.status_code] += 1
            assert reply.status_code in (200, 402), reply.text
        return seen

    with ThreadPoolExecutor(len(asking)) as pool:
        return sum(pool.map(drain, asking), Counter())


@pytest.mark.invariant("I1")
def test_concurrent_clients_spend_exactly_the_limit_of_one_account(
    servers: tuple[World, list[Server]], counts: Counts
) -> None:
    world, running = servers
    person = world.person()
    dataset = world.open_dataset(person, epsilon=str(LIMIT))
    seen = ask_until_empty(clients(running, person), dataset)
    assert seen == {200: AFFORDABLE, 402: CLIENTS * REFUSALS_EACH}
    assert world.spent(dataset, person.name) == world.spent(dataset, "*") == LIMIT
    assert exact(world.budget(dataset, person.name)["remaining"]) == 0
    assert len(world.entries(dataset, "charge")) == AFFORDABLE
    world.must_be_sound()
    counts("races: affordable questions", AFFORDABLE)
    counts("races: answered questions", seen[200])
    counts("races: refused questions", seen[402])


@pytest.mark.invariant("I2")
def test_concurrent_analysts_spend_exactly_the_shared_limit(
    servers: tuple[World, list[Server]], counts: Counts
) -> None:
    world, running = servers
    people = [world.person() for _ in range(4)]
    dataset = world.open_dataset(*people, epsilon=1000, total=float(LIMIT))
    seen = ask_until_empty(clients(running, *people), dataset)
    assert seen == {200: AFFORDABLE, 402: CLIENTS * REFUSALS_EACH}
    assert world.spent(dataset, "*") == LIMIT
    assert sum(world.spent(dataset, person.name) for person in people) == LIMIT
    assert len(world.entries(dataset, "charge")) == AFFORDABLE
    world.must_be_sound()
    counts("races: affordable questions", AFFORDABLE)
    counts("races: answered questions", seen[200])
    counts("races: refused questions", seen[402])


@pytest.mark.invariant("I5")
def test_one_request_key_sent_eight_times_at_once_is_one_charge_and_one_answer(
    servers: tuple[World, list[Server]], counts: Counts
) -> None:
    world, running = servers
    person = world.person()
    dataset = world.open_dataset(person, epsilon=100)
    asking = clients(running, person)[:8]
    rounds = 10
    start = Barrier(len(asking))
    keys = [new_key() for _ in range(rounds)]

    def send(client: httpx.Client) -> list[tuple[int, bytes]]:
        replies = []
        for request_key in keys:
            start.wait()
            reply = ask(client, count(dataset, str(PRICE), fresh=True), request_key)
            replies.append((reply.status_code, reply.content))
        return replies

    with ThreadPoolExecutor(len(asking)) as pool:
        by_client = list(pool.map(send, asking))
    for number, request_key in enumerate(keys):
        replies = [replies[number] for replies in by_client]
        assert {status for status, _ in replies} <= {200, 409}
        bodies = {body for status, body in replies if status == 200}
        later = ask_until_settled(
            asking[0], count(dataset, str(PRICE), fresh=True), request_key
        ).content
        assert bodies == {later}
        counts("races for one key: deliveries", sum(status == 200 for status, _ in replies))
        counts("races for one key: asked to wait", sum(status == 409 for status, _ in replies))
    assert len(world.entries(dataset, "charge")) == rounds
    assert world.spent(dataset, person.name) == world.spent(dataset, "*") == PRICE * rounds
    world.must_be_sound()
    counts("races for one key: keys", rounds)
    counts("races for one key: charges", len(world.entries(dataset, "charge")))


BALANCES_FROM_MEMORY = """
from app.store.writer import batch as settle
load, writes, kept = settle.ChargeDecisions.load, settle.ChargeDecisions.writes, {}
def load_old(batch, rows):
    load(batch, rows)
    batch._accounts = {id: kept.get(id, account) for id, account in batch._accounts.items()}
def keep(batch):
    kept.update(batch._accounts)
    return writes(batch)
settle.ChargeDecisions.load, settle.ChargeDecisions.writes = load_old, keep
"""


@pytest.mark.invariant("I1")
@pytest.mark.saboteur
def test_saboteur_a_server_that_decides_from_a_cached_balance_is_caught(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        running = [world.serve(sabotage=BALANCES_FROM_MEMORY) for _ in range(2)]
        person = world.person()
        dataset = world.open_dataset(person, epsilon=str(LIMIT))
        asking = clients(running, person)
        for client in asking[: len(running)]:  # so that each server caches a balance
            made(ask(client, count(dataset, str(PRICE), fresh=True), new_key()))
        seen = ask_until_empty(asking, dataset)
        assert seen[200] > AFFORDABLE
        report = made(world.admin.get("/v1/ledger/verify"))
        assert not report["sound"]
        accounts = {finding["account"] for finding in report["findings"]}
        assert accounts == {person.name, "*"}
    finally:
        world.ledger.stop()
