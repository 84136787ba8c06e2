"""A black-box audit through HTTP of answers that may be withheld: they prove no more than charged.

A real server answers 400 fresh questions about each of two neighbouring tables. The events are
"withheld", "released with a value of at least t" and "released with less". The first 100 answers
per table choose an event, and the other 300 count it. Clopper and Pearson bound its probabilities,
each wrong with probability 1e-8. They must not prove more than (epsilon, delta), in either
direction. Delta is small, since no account could pay for 400 answers that often fail.

There are three kinds of pairs. Safe tables are nearly always released, so the noise shows. Tables
at the threshold show the test. Unsafe tables are released with probability at most delta.
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
    """A question and two neighbouring tables of ages or votes, where one row differs."""

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
    """Rows that no other case has, so each case has its own data and budgets."""
    own = list(CASES.values()).index(case)
    vote = case.query["kind"] in ("mode", "top_k")
    return [
        [40 if vote else row, own, row if vote else "west", "true", "2021-01-01"] for row in rows
    ]


class Audit:
    """A server and its answers about tables, each registered once."""

    def __init__(self, world: World) -> None:
        self.world, self.person = world, world.person()
        self._names: dict[str, str] = {}

    def numbers(self, case: Case, rows: tuple[Any, ...]) -> tuple[list[float], float]:
        """A number per answer, NaN if it was withheld; and the charged delta."""
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


Event = tuple[float, int]  # a threshold and a side; NaN stands for a withheld answer


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
    """True if some event is certainly more likely than (epsilon, delta) allows."""
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
    (one, delta), (two, again) = (audit.numbers(case, rows) for rows in (case.one, case.other))
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
def test_saboteur_a_lower_bar_or_less_noise_is_caught(
    peopled: Template, tmp_path: Path, sabotage: str, names: list[str], counts: Counts
) -> None:
    """A bar lowered by seven lets more than half of the unsafe tables pass.

    A twentieth of the noise leaves medians of 30 and 34 apart, except with probability 1e-4.
    Smaller bugs might escape: this few answers bound the probability of an unseen event by 0.06.
    """
    with world_of(peopled, tmp_path, sabotage) as world:
        audit = Audit(world)
        for name in names:
            assert proves_more(audit, CASES[name]), name
            counts("answers of saboteurs", 2 * RUNS)
