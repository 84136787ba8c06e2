"""A black-box audit of private keys through a real server: answers prove no more than was charged.

Keys are independent. A table with 10,000 keys of c rows therefore samples 10,000 times how a key of
c rows appears. Neighbouring tables have keys of c and of c + 1 rows. Clopper and Pearson bound
every probability, wrong with probability 1e-7. A sound server is accused with probability below
1e-5.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import Counts, Template
from tests.mechanisms.noise.noise_law import lower_chance, upper_chance
from tests.server import Json, Person, World, ask, exact, made, new_key

SIZE = 10_000
ERROR = 1e-7
COUNTS = (1, 6, 7)  # a single person; and two neighbours, both above the threshold
PERSONS = (1, 2, 3, 4, 5, 6)
PRIVACY = {"epsilon": 1, "delta": "0.02"}
LOWER_BAR = """
import app.mechanisms.private_keys.stability_histogram as mechanism
sample = mechanism.sample_counts_above
mechanism.sample_counts_above = lambda counts, bar, **more: sample(counts, bar - 2, **more)
"""
NARROWER_NOISE = """
from app.mechanisms.sampling.system import SystemRandom
draw = SystemRandom.discrete_laplace
SystemRandom.discrete_laplace = lambda self, scale, size: draw(self, scale / 3, size)
"""
ONE_PERSON_MORE = """
import app.mechanisms.private_keys.partition_selection as mechanism
table = mechanism._table
mechanism._table = lambda *given: table(*given)[1:]
"""
pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]


@contextmanager
def world_of(peopled: Template, folder: Path, sabotage: str) -> Iterator[World]:
    world = peopled("sqlite", folder / "ledger")
    world.serve(sabotage=sabotage)
    try:
        yield world
    finally:
        world.ledger.stop()


def released_counts(
    world: World, person: Person, rows: int, query: Json, mechanism: Json
) -> tuple[list[int], float]:
    """Released counts of keys with this many rows each, 0 if withheld, and the charged delta."""
    lines = ([f"key {i}"] for i in range(SIZE) for _ in range(rows))
    path = world.write_csv(list(lines), ["note"])
    dataset = world.dataset(path, columns=[{"name": "note", "type": "text"}])
    for holder in (person.name, "*"):
        body = {"currency": "approximate", "epsilon": 10, "delta": "0.5"}
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=body))
    question = {"dataset": dataset, "query": query, "privacy": PRIVACY, "mechanism": mechanism}
    answer = made(ask(world.client(person), question, new_key()))
    assert exact(answer["charged"]) == 1
    released = answer["value"]
    values = [1 if isinstance(item, str) else item["value"] for item in released]
    return values + [0] * (SIZE - len(values)), answer["charged"]["delta"]


def chances(values: list[int], least: int) -> tuple[float, float]:
    """Bounds on the probability that a released count reaches `least`."""
    hits = sum(value >= least for value in values)
    return lower_chance(SIZE, hits, ERROR), upper_chance(SIZE, hits, ERROR)


def accused(one: tuple[float, float], two: tuple[float, float], delta: float) -> bool:
    """True if bounds on one event's probabilities prove more than (1, delta), in any direction."""
    grown = math.e
    return any(
        low > grown * high + delta
        for low, high in (
            (one[0], two[1]),
            (two[0], one[1]),
            (1 - one[1], 1 - two[0]),
            (1 - two[1], 1 - one[0]),
        )
    )


def audit_counts(world: World, noise: str) -> bool:
    person = world.person()
    query: Json = {"kind": "histogram", "column": "note"}
    mechanism: Json = {"kind": "stability_histogram", "noise": noise}
    released, deltas = {}, set()
    for rows in COUNTS:
        released[rows], delta = released_counts(world, person, rows, query, mechanism)
        deltas.add(delta)
    (delta,) = deltas  # the price does not depend on the data
    assert delta <= 0.02
    alone = accused((0.0, 0.0), chances(released[1], 1), delta)
    # For keys in both tables, Laplace noise needs no delta.
    failing = 0.0 if noise == "laplace" else delta
    shared = [
        accused(chances(released[6], t), chances(released[7], t), failing) for t in range(5, 11)
    ]
    return alone or any(shared)


def audit_keys(world: World) -> bool:
    person = world.person()
    query: Json = {"kind": "keys", "column": "note"}
    bounds = [(0.0, 0.0)]
    for persons in PERSONS:
        kept, delta = released_counts(
            world, person, persons, query, {"kind": "partition_selection"}
        )
        assert delta == 0.02
        bounds.append(chances(kept, 1))
    assert bounds[-1][0] > 0.5  # the audit has enough power
    return any(accused(one, two, 0.02) for one, two in pairwise(bounds))


def test_an_audit_of_a_sound_server_proves_no_more_than_was_charged(
    live: World, counts: Counts
) -> None:
    assert not audit_counts(live, "laplace")
    assert not audit_counts(live, "gaussian")
    assert not audit_keys(live)
    counts("keys audited over HTTP", SIZE * (2 * len(COUNTS) + len(PERSONS)))


@pytest.mark.saboteur
@pytest.mark.parametrize(
    ("sabotage", "noise"),
    [(LOWER_BAR, "laplace"), (NARROWER_NOISE, "laplace"), (LOWER_BAR, "gaussian")],
    ids=["bar", "noise", "bar-gaussian"],
)
def test_saboteur_counts_with_too_little_noise_are_caught(
    peopled: Template, tmp_path: Path, sabotage: str, noise: str
) -> None:
    """The audit misses it with probability below 1e-6, since probabilities exceed their limits
    several times.
    """
    with world_of(peopled, tmp_path, sabotage) as world:
        assert audit_counts(world, noise)


@pytest.mark.saboteur
def test_saboteur_keys_with_too_low_a_threshold_are_caught(
    peopled: Template, tmp_path: Path
) -> None:
    with world_of(peopled, tmp_path, ONE_PERSON_MORE) as world:
        assert audit_keys(world)
