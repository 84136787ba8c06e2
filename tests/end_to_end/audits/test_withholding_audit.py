"""A black-box audit through HTTP of what may be withheld: answers prove no more than was charged.

A real server is asked 400 times about each of two neighbouring tables, fresh each time. Events are
that the answer was withheld, or told with a value of t and more, or less; one is chosen on the
first 100 answers of each and counted on the other 300. Its chances are bounded by Clopper and
Pearson, each wrong with probability 1e-8, and must not prove more than (epsilon, delta), in no
direction. No account could pay for so many answers if each might fail often, so delta is small.
Pairs are of three kinds: safe and told nearly always, so that the noise shows; at the threshold, so
that the test shows; and unsafe, where what is told at all is told with probability delta at most.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.audit import cases
from tests.conftest import Counts, Template
from tests.crowd import answers
from tests.mechanisms.noise.noise_law import lower_chance, upper_chance
from tests.server import COLUMNS, HEADER, Json, World, made

pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]
RUNS = 400
CHOOSING = 100
ERROR = 1e-8
EPSILON, DELTA = 2.0, 0.002


@dataclass(frozen=True)
class Case:
    """A question, and two neighbouring tables: ages, or votes, one of which is of north's."""

    query: Json
    mechanism: Json
    one: tuple[Any, ...]
    other: tuple[Any, ...]
    neighbours: str = "add_remove"


def proposed(bound: float | None, **more: Any) -> Json:
    given = {} if bound is None else {"bound": bound}
    return {"kind": "propose_test_release", **given, **more}


STABLE: Json = {"kind": "stable_value"}
MEDIAN: Json = {"kind": "median", "column": "age"}
WHOLE: Json = {**MEDIAN, "missing": 0}
MODE: Json = {"kind": "mode", "column": "region"}
NEAR, FAR = (30,) * 20 + (34,) * 20, (0, 120)
CASES = {
    "median, safe": Case(MEDIAN, proposed(4), NEAR, (*NEAR, 34)),
    "median, Gaussian": Case(MEDIAN, proposed(4, noise="gaussian"), NEAR, (*NEAR, 34)),
    "median, at the threshold": Case(MEDIAN, proposed(4), (30,) * 5, (30,) * 6),
    "median, unsafe": Case(MEDIAN, proposed(4), FAR, (*FAR, 120)),
    "median, a bound chosen": Case(MEDIAN, proposed(None), NEAR, (*NEAR, 34)),
    "median replaced, safe": Case(
        WHOLE, proposed(4), (30,) * 20 + (34,) * 19, (30,) * 19 + (34,) * 20, "replace_one"
    ),
    "median replaced, unsafe": Case(WHOLE, proposed(4), (0, 0, 120), (0, 120, 120), "replace_one"),
    "iqr, unsafe": Case({"kind": "iqr", "column": "age"}, proposed(4), (0, *FAR), (0, 0, *FAR)),
    "mean, safe": Case(
        {"kind": "mean", "column": "age"}, proposed(12), (0,) * 15, (*((0,) * 15), 120)
    ),
    "mean, unsafe": Case({"kind": "mean", "column": "age"}, proposed(6), (0,), (0, 120)),
    "mode, unsafe": Case(MODE, STABLE, ("north", "south"), ("north", "south", "south")),
    "mode, at the threshold": Case(MODE, STABLE, ("south",) * 6, ("south",) * 7),
    "top_k, unsafe": Case(
        {"kind": "top_k", "column": "region", "k": 1},
        STABLE,
        ("north", "south"),
        ("north", "south", "south"),
    ),
}


def table_of(case: Case, rows: tuple[Any, ...]) -> list[list[object]]:
    """Rows that no other case has: each has a body of data and budgets of its own."""
    own = list(CASES.values()).index(case)
    vote = case.query["kind"] in ("mode", "top_k")
    return [
        [40 if vote else row, own, row if vote else "west", "true", "2021-01-01"] for row in rows
    ]


class Audit:
    """A server and what it says of tables, each registered once."""

    def __init__(self, world: World) -> None:
        self.world, self.person = world, world.person()
        self._names: dict[str, str] = {}

    def told(self, case: Case, rows: tuple[Any, ...]) -> tuple[list[float], float]:
        """A number for each answer, NaN if it was withheld; and the delta charged."""
        lines = table_of(case, rows)
        if (key := str((case, rows))) not in self._names:
            public = {"rows": len(rows)} if case.neighbours == "replace_one" else {}
            path = self.world.write_csv(lines, HEADER)
            name = self.world.dataset(path, columns=COLUMNS, neighbours=case.neighbours, **public)
            grant = {
                "currency": "zcdp",
                "rho": 1_000_000,
                "delta": "0.999",
                "failure_delta": "0.9",
            }
            for holder in (self.person.name, "*"):
                made(self.world.admin.put(f"/v1/datasets/{name}/budgets/{holder}", json=grant))
            self._names[key] = name
        question = {
            "dataset": self._names[key],
            "query": case.query,
            "privacy": {"epsilon": EPSILON, "delta": DELTA},
            "mechanism": case.mechanism,
        }
        found = answers(self.world.server, self.person.key, question, RUNS)
        assert len({answer["id"] for answer in found}) == RUNS
        return [_number(answer) for answer in found], found[0]["charged"]["delta"]


def _number(answer: Json) -> float:
    value = answer["value"]
    if value is None:
        assert answer["status"] == "withheld"
        return math.nan
    if isinstance(value, list):
        (value,) = value
    return float(value) if isinstance(value, int | float) else float(value == "south")


Event = tuple[float, int]  # a threshold and a side; NaN stands for being withheld


def hits(numbers: list[float], event: Event) -> int:
    threshold, side = event
    if math.isnan(threshold):
        return sum(math.isnan(each) == (side > 0) for each in numbers)
    return sum(side * each >= side * threshold for each in numbers)


def events(one: list[float], two: list[float]) -> Iterator[Event]:
    for side in (1, -1):
        yield math.nan, side
        for threshold in sorted({each for each in (*one, *two) if not math.isnan(each)}):
            yield threshold, side


def accused(one: list[float], two: list[float], delta: float) -> bool:
    """Is some event of one more likely than (epsilon, delta) allows, surely?"""
    first = one[:CHOOSING], two[:CHOOSING]
    best = max(
        events(*first),
        key=lambda e: hits(first[0], e) - math.exp(EPSILON) * (hits(first[1], e) + 1),
    )
    size = RUNS - CHOOSING
    low = lower_chance(size, hits(one[CHOOSING:], best), ERROR)
    high = upper_chance(size, hits(two[CHOOSING:], best), ERROR)
    return low > math.exp(EPSILON) * high + delta


def proves_more(audit: Audit, case: Case) -> bool:
    (one, delta), (two, again) = (audit.told(case, rows) for rows in (case.one, case.other))
    assert delta == again <= DELTA  # the price does not depend on data
    return accused(one, two, delta) or accused(two, one, delta)


@pytest.fixture(scope="module")
def audit(live: World) -> Audit:
    return Audit(live)


SUITE = {
    *("median, safe", "median, at the threshold", "median, unsafe", "median, a bound chosen"),
    *("median replaced, safe", "mean, safe", "mode, unsafe", "mode, at the threshold"),
}


@pytest.mark.parametrize("name", cases(CASES, SUITE))
def test_answers_about_neighbours_prove_no_more_than_was_charged(
    audit: Audit, name: str, counts: Counts
) -> None:
    assert not proves_more(audit, CASES[name])
    counts("answers audited over HTTP", 2 * RUNS)


LOWER_BAR = """
from app.mechanisms.propose_test_release.distance_test import DistanceTest
passed = DistanceTest.passed
DistanceTest.passed = lambda self, distance, noise: passed(self, distance + 7, noise)
"""
NARROWER_NOISE = """
from app.mechanisms.sampling.system import SystemRandom
draw = SystemRandom.discrete_laplace
SystemRandom.discrete_laplace = lambda self, scale, size: draw(self, scale / 20, size)
"""


@contextmanager
def world_of(peopled: Template, folder: Path, sabotage: str) -> Iterator[World]:
    world = peopled("sqlite", folder / "ledger")
    world.serve(sabotage=sabotage)
    try:
        yield world
    finally:
        world.ledger.stop()


@pytest.mark.saboteur
@pytest.mark.parametrize(
    ("sabotage", "names"),
    [
        pytest.param(LOWER_BAR, ["median, unsafe", "iqr, unsafe", "mode, unsafe"], id="bar"),
        pytest.param(NARROWER_NOISE, ["median, safe"], id="noise"),
    ],
)
def test_a_server_that_cheats_is_caught(
    peopled: Template, tmp_path: Path, sabotage: str, names: list[str], counts: Counts
) -> None:
    """A bar seven lower lets unsafe tables pass with more than half; and a twentieth of the noise
    leaves medians of 30 and 34 as they are, but with probability below 1e-4. Less cheating would
    not be seen for sure: so few answers bound a chance of nothing by 0.06."""
    with world_of(peopled, tmp_path, sabotage) as world:
        audit = Audit(world)
        for name in names:
            assert proves_more(audit, CASES[name]), name
            counts("answers of saboteurs", 2 * RUNS)
