"""Black-box audits of streams through HTTP, like those of questions in `test_audits.py`.

The tests open and ask many streams on each of two neighbouring tables. One number per stream gives
a lower bound on the loss. It exceeds the charge of a sound server with probability at most 1e-6.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.audit import runs
from tests.conftest import Counts, Template
from tests.end_to_end.audits.audit_bounds import log_ratio, loss_at_least
from tests.server import (
    Json,
    World,
    above_threshold,
    ask_stream,
    made,
    open_stream,
    post_ask,
    running_count,
    some_rows,
)

pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]
RUNS = runs(400)
CLIENTS = 8
ASKS = 3
ROWS = 5
Read = Callable[[httpx.Client, str], float]


def first_above(client: httpx.Client, dataset: str) -> float:
    """Index of the first answer above a threshold that needs the additional row.

    That row makes every answer more likely to be above.
    """
    opening = above_threshold(dataset, "1.5", threshold=ROWS + 1, asks_max=ASKS)
    stream = made(open_stream(client, opening))["id"]
    for place in range(ASKS):
        if made(ask_stream(client, stream))["above"]:
            return float(place)
    return float(ASKS)


def counted(client: httpx.Client, dataset: str) -> float:
    """Count of a tree with one level: its single released node takes the whole charge."""
    opening = running_count(dataset, "1.5", epochs_max=1)
    stream = made(open_stream(client, opening))["id"]
    return float(made(post_ask(client, stream, {}))["value"])


READS: dict[str, Read] = {"above_threshold": first_above, "running_count": counted}


def audited(world: World, read: Read) -> float:
    person = world.person()
    rows = some_rows(ROWS + 1)
    numbers = []
    for table in (rows[:-1], rows):
        dataset = world.dataset(world.write_csv(table))
        for holder in ("*", person.name):
            world.grant(dataset, holder, 10_000)
        clients = [world.client(person) for _ in range(CLIENTS)]

        def several(client: httpx.Client, dataset: str = dataset) -> list[float]:
            return [read(client, dataset) for _ in range(RUNS // CLIENTS)]

        with ThreadPoolExecutor(CLIENTS) as pool:
            numbers.append([each for found in pool.map(several, clients) for each in found])
        assert world.spent(dataset, person.name) == RUNS * 3 / 2
    return loss_at_least(numbers[0], numbers[1], log_ratio)


@pytest.mark.parametrize("kind", READS)
def test_streams_about_neighbours_prove_no_more_loss_than_was_charged(
    live: World, kind: str, counts: Counts
) -> None:
    bound = audited(live, READS[kind])
    print(f"{kind}: at least {bound:.2f}, charged 1.5")
    assert bound <= 1.5
    counts("streams audited over HTTP", 2 * RUNS)


QUIET = """
import app.mechanisms.sampling.system as sampling
whole = sampling.SystemRandom.discrete_laplace
sampling.SystemRandom.discrete_laplace = lambda self, scale, size: whole(self, scale / 6, size)
"""


@pytest.mark.saboteur
def test_saboteur_streams_with_too_little_noise_are_caught(
    peopled: Template, tmp_path: Path, counts: Counts
) -> None:
    """With a sixth of the noise, nearly all streams of one table say what few of the other's
    say.
    """
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        world.serve(sabotage=QUIET)
        for kind, read in READS.items():
            bound = audited(world, read)
            print(f"{kind}: at least {bound:.2f}, charged 1.5")
            assert bound > 1.5, kind
            counts("streams of saboteurs", 2 * RUNS)
    finally:
        world.ledger.stop()


def test_every_kind_of_stream_is_audited(live: World) -> None:
    described: Json = live.server.client().get("/openapi.json").json()["components"]["schemas"]
    kinds = {
        name: schema["properties"]["kind"]["const"]
        for name, schema in described.items()
        if name.endswith("Stream") and "kind" in schema.get("properties", {})
    }
    assert set(kinds.values()) == set(READS)
