"""Black-box audits through HTTP: a lower bound on the loss, from answers alone, is below the
charge.

For every kind of question and mechanism, a real server answers 400 fresh questions about each of
two tiny neighbouring tables. `make test` does so for some cases, `make audit` for all and with more
answers. The first 100 answers per table choose an event, and the others count it. Clopper and
Pearson bound both probabilities, in both directions. All bounds of all cases together are wrong
with probability at most 1e-6. So this also bounds the false accusations of sound mechanisms.

Pure mechanisms are held to the charged epsilon: the probabilities of an event differ by a factor of
at most exp(epsilon). Gaussian noise is held to its rho, which bounds the Kullback-Leibler
divergence of the answers, and hence of any event. If a single number moves (counts, sums, choices,
reports), these sizes reveal a loss of two to four times the charge. Answers made of many
measurements show less of each, so they are asked at a larger loss.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.mechanisms import MECHANISMS
from app.queries import QUERIES
from tests.audit import cases as audited_cases
from tests.audit import runs
from tests.conftest import Counts, Template
from tests.crowd import answers
from tests.mechanisms.noise.noise_law import lower_chance, upper_chance
from tests.server import COLUMNS, HEADER, Json, Person, World, made

pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]
RUNS = runs(400)
CHOOSING = 100  # or a tenth of the answers, if there are more than a thousand
ASKERS = 32
FALSE_ALARM = 1e-6
Read = Callable[[Json], float]
# of an event's two probabilities, the larger one first
Divergence = Callable[[float, float], float]
Rows = tuple[tuple[Any, ...], ...]


def row(
    age: object = 30, income: object = 1000, region: str = "north", smoker: str = "true"
) -> Any:
    return age, income, region, smoker


# Statistics of an answer: one number, whose large and small values are the events


def value(answer: Json) -> float:
    return float(answer["value"])


def first(answer: Json) -> float:
    return float(answer["value"][0]["value"])


def first_less_second(answer: Json) -> float:
    return float(answer["value"][0]["value"] - answer["value"][1]["value"])


def count_and_sum(answer: Json) -> float:
    """Both aggregates, each divided by the contribution of one row."""
    return float(answer["value"][0]["value"] + answer["value"][1]["value"] / 120)


def reported(answer: Json) -> float:
    return float(answer["value"][0]["reported"])


def south_before_north(answer: Json) -> float:
    places = [*answer["value"], "south", "north"]
    return float(places.index("north") - places.index("south"))


def moments(answer: Json) -> float:
    """Three of the five moments that one row moves.

    With such a large ridge, the slope is the sum of products over the ridge. The intercept is the
    sum of outcomes over the number of rows.
    """
    fit = answer["value"]
    intercept, slope = (item["value"] for item in fit["coefficients"])
    rows = fit["rows"]["value"]
    outcomes = (intercept - 60.0) / 60.0 * max(rows, 1)
    products = slope * RIDGE
    return float(rows + min(max(outcomes, -50.0), 50.0) + min(max(products, -50.0), 50.0))


@dataclass(frozen=True)
class Case:
    """A question, two neighbouring tables, and the requested loss."""

    query: Json
    mechanism: Json
    one: Rows
    other: Rows
    read: Read
    neighbours: str = "add_remove"
    loss: str = "1.5"  # epsilon, or rho for Gaussian noise

    @property
    def privacy(self) -> Json:
        return {"rho" if self.by_rho else "epsilon": self.loss}

    @property
    def by_rho(self) -> bool:
        return self.mechanism["kind"] == "gaussian" or "normal" in self.mechanism.get("noise", "")


RIDGE = 1e12
FEW = (row(20), row(90, region="south"), row())
MANY = (row(5),) * 20 + (row(80),) * 20
NORTH, SOUTH = row(smoker="true"), row(region="south", smoker="false")
IN_NORTH: Json = {"column": "region", "op": "==", "value": "north"}
OF_BLOCKS: Json = {
    "kind": "sample_aggregate",
    "statistic": {"kind": "max", "column": "age"},
    "blocks": 2,
    "low": 0,
    "high": 120,
}
ADDED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "count": ({"kind": "count"}, FEW, (*FEW, row()), value),
    "sum": ({"kind": "sum", "column": "age"}, FEW, (*FEW, row(120)), value),
    "aggregates": (
        {"kind": "aggregates", "of": [{"kind": "count"}, {"kind": "sum", "column": "age"}]},
        FEW,
        (*FEW, row(120)),
        count_and_sum,
    ),
    "variance": (
        {"kind": "variance", "column": "age"},
        (row(60), row(60)),
        (row(60), row(60), row(120)),
        value,
    ),
    "ratio of sums": (
        {
            "kind": "ratio",
            "numerator": {"column": "age"},
            "denominator": {"column": "household"},
        },
        (row(0),) * 3,
        ((*row(120), 2),) + (row(0),) * 3,
        value,
    ),
    "ratio of the added": (
        {"kind": "ratio", "numerator": {"where": IN_NORTH}},
        (SOUTH,) * 4,
        (*(SOUTH,) * 4, NORTH),
        value,
    ),
    "reciprocal": ({"kind": "reciprocal"}, MANY, (*MANY, row(1)), value),
    "workload": (
        {
            "kind": "workload",
            "predicates": [
                {"name": "north", "where": IN_NORTH},
                {"name": "all", "where": {"all": []}},
            ],
        },
        FEW,
        (*FEW, NORTH),
        first,
    ),
    "cdf": (
        {"kind": "cdf", "column": "age", "edges": [0, 60, 120], "strategy": "cells"},
        MANY,
        (*MANY, row(5)),
        first,
    ),
    "prediction_variance": (
        {
            "kind": "prediction_variance",
            "features": ["age"],
            "point": {"age": 120},
            "ridge": 0.1,
        },
        (),
        (row(120),),
        value,
    ),
    "sample_aggregate": (
        {**OF_BLOCKS, "aggregate": "mean"},
        (row(0),) * 20,
        ((row(0),) * 20 + (row(120),)),
        value,
    ),
    "linear_regression": (
        {
            "kind": "linear_regression",
            "outcome": "age",
            "features": ["smoker"],
            "ridge": RIDGE,
        },
        (),
        (row(120),),
        moments,
    ),
}
REPLACED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "mean": (
        {"kind": "mean", "column": "age"},
        (*FEW, row(0)),
        (*FEW, row(120)),
        value,
    ),
    "ratio": (
        {"kind": "ratio", "numerator": {"where": IN_NORTH}},
        (SOUTH, NORTH),
        (SOUTH, SOUTH),
        value,
    ),
    "histogram": (
        {"kind": "histogram", "column": "region"},
        (*FEW, NORTH),
        (*FEW, SOUTH),
        first_less_second,
    ),
}
# One row raises one score and lowers the other, so the better one becomes the worse.
UPPER, LOWER = (row(0), row(50), row(120), row(120)), (row(0), row(0), row(50), row(120))
CHOSEN: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "mode": ({"kind": "mode", "column": "smoker"}, (NORTH,), (SOUTH,), value),
    "top_k": (
        {"kind": "top_k", "column": "region", "k": 2},
        (NORTH,),
        (SOUTH,),
        south_before_north,
    ),
    "quantile": (
        {"kind": "quantile", "column": "age", "q": 0.5, "candidates": [10, 110]},
        UPPER,
        LOWER,
        value,
    ),
    "median": (
        {"kind": "median", "column": "age", "candidates": [10, 110]},
        UPPER,
        LOWER,
        value,
    ),
    "min": (
        {"kind": "min", "column": "age", "rank": 1, "candidates": [10, 110]},
        (row(50), row(120)),
        (row(0), row(50)),
        value,
    ),
    "max": (
        {"kind": "max", "column": "age", "rank": 1, "candidates": [10, 110]},
        (row(50), row(120)),
        (row(0), row(50)),
        value,
    ),
    "sample_aggregate": (
        OF_BLOCKS,
        (row(0),) * 20,
        (row(0),) * 19 + (row(120),),
        value,
    ),
    "price": (
        {"kind": "price", "column": "age", "candidates": [1, 120]},
        (row(0),),
        (row(120),),
        value,
    ),
}
REPORTED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "randomized_column": (
        {"kind": "randomized_column", "column": "smoker", "missing": False},
        (NORTH,),
        (SOUTH,),
        reported,
    ),
    "randomized_column on a grid": (
        {
            "kind": "randomized_column",
            "column": "region",
            "missing": "north",
            "grid": {"rows": 2, "columns": 2},
        },
        (row(region="north"),),
        (row(region="west"),),
        reported,
    ),
}
# Values at ranks: half of the rows are at either bound, so one row moves the value from one bound
# to the other. The smooth sensitivity is equal on both sides, or smaller by the factor that beta
# allows.
ENDS = (row(0),) * 3 + (row(120),) * 3
SPLIT = (row(0),) * 5 + (row(120),) * 2
SMOOTH: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "median": ({"kind": "median", "column": "age"}, ENDS, (*ENDS, row(120)), value),
    "median of a smaller scale": (
        {"kind": "median", "column": "age"},
        (row(0),) * 9,
        (row(0),) * 9 + (row(120),),
        value,
    ),
    "max": ({"kind": "max", "column": "age"}, (row(0),) * 4, (*(row(0),) * 4, row(120)), value),
    "iqr": ({"kind": "iqr", "column": "age"}, SPLIT[:-1], SPLIT, value),
}
SMOOTH_REPLACED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "median of rows replaced": (
        {"kind": "median", "column": "age", "missing": 0},
        (*ENDS, row(0)),
        (*ENDS, row(120)),
        value,
    ),
    "trimmed_mean": (
        {"kind": "trimmed_mean", "column": "age", "trim": "0.34"},
        (row(0), row(0), row(120)),
        (row(0), row(120), row(120)),
        value,
    ),
}
# Heavy tails show little of a shift, so these ask for more loss. Normal noise is priced by rho.
SCALED: dict[str, tuple[str, ...]] = {
    "student_t": (*SMOOTH, *SMOOTH_REPLACED),
    "cauchy": ("median of rows replaced",),
    "uniform_log_normal": ("median",),
    "laplace_log_normal": ("median",),
    "arsinh_normal": ("median",),
}
CHOOSERS: dict[str, Json] = {
    "permute_and_flip": {"kind": "permute_and_flip"},
    "exponential": {"kind": "exponential"},
    "noisy_max-exponential": {"kind": "noisy_max", "noise": "exponential"},
    "noisy_max-laplace": {"kind": "noisy_max", "noise": "laplace"},
    "noisy_max-gumbel": {"kind": "noisy_max", "noise": "gumbel"},
}
# An answer made of several measurements shows little of each, so these ask for more loss.
LOSSES: dict[str, dict[str, str]] = {
    "laplace": {
        "linear_regression": "9",
        "variance": "6",
        "ratio of sums": "6",
        "mean": "3",
        "histogram": "3",
    },
    "gaussian": {"linear_regression": "4", "variance": "4", "ratio of sums": "4"},
}


def cases() -> Iterator[tuple[str, Case]]:
    for kind, usual in (("laplace", "1.5"), ("gaussian", "0.5")):
        for neighbours, table in (("add_remove", ADDED), ("replace_one", REPLACED)):
            for name, parts in table.items():
                loss = LOSSES[kind].get(name, usual)
                yield f"{name}-{kind}", Case(parts[0], {"kind": kind}, *parts[1:], neighbours, loss)
    for label, mechanism in CHOOSERS.items():
        for name, parts in CHOSEN.items():
            if label in ("permute_and_flip", "exponential") or name in ("mode", "median"):
                case = Case(parts[0], mechanism, *parts[1:], "replace_one", loss="1")
                yield f"{name}-{label}", case
    for noise, names in SCALED.items():
        for name in names:
            neighbours = "replace_one" if name in SMOOTH_REPLACED else "add_remove"
            parts = {**SMOOTH, **SMOOTH_REPLACED}[name]
            mechanism = {"kind": "smooth_sensitivity", "noise": noise}
            yield f"{name}-{noise}", Case(parts[0], mechanism, *parts[1:], neighbours, loss="2")
    for name, parts in REPORTED.items():
        mechanism = {"kind": "randomized_response"}
        yield f"{name}-randomized_response", Case(parts[0], mechanism, *parts[1:], "replace_one")


CASES = dict(cases())
ERROR = FALSE_ALARM / (4 * len(CASES))  # of each bound: two probabilities in two directions
HOUSEHOLD: Json = {"name": "household", "type": "integer", "low": 1, "high": 2}


class Tables:
    """Tables registered on a server, each once, with unlimited budgets."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.person: Person = world.person()
        self._names: dict[tuple[Rows, str], str] = {}

    def name(self, rows: Rows, neighbours: str) -> str:
        if (rows, neighbours) not in self._names:
            # One body of data has one relation, so the tables differ in a column that no question
            # uses.
            seen = "2021-01-01" if neighbours == "add_remove" else "2022-02-02"
            lines = [[*each[:4], seen, *(each[4:] or (1,))] for each in rows]
            path = self.world.write_csv(lines, [*HEADER, "household"])
            public = {"rows": len(rows)} if neighbours == "replace_one" else {}
            columns = [*COLUMNS, HOUSEHOLD]
            dataset = self.world.dataset(path, neighbours=neighbours, columns=columns, **public)
            budget = {"currency": "zcdp", "rho": 1_000_000, "delta": "1e-6"}
            for holder in ("*", self.person.name):
                place = f"/v1/datasets/{dataset}/budgets/{holder}"
                made(self.world.admin.put(place, json=budget))
            self._names[rows, neighbours] = dataset
        return self._names[rows, neighbours]

    def read(self, case: Case, rows: Rows, runs: int) -> tuple[list[float], Json]:
        question = {
            "dataset": self.name(rows, case.neighbours),
            "query": case.query,
            "privacy": case.privacy,
            "mechanism": case.mechanism,
        }
        found = answers(self.world.server, self.person.key, question, runs, askers=ASKERS)
        assert len(found) == len({answer["id"] for answer in found}) == runs
        assert len({json.dumps(answer["charged"]["cells"]) for answer in found}) == 1
        return [case.read(answer) for answer in found], found[0]


def loss_at_least(one: list[float], other: list[float], divergence: Divergence) -> float:
    """A lower bound on the loss, over the events {number >= t} and {number <= t}."""
    loss, choosing = 0.0, max(CHOOSING, len(one) // 10)
    for ones, others in ((one, other), (other, one)):
        threshold, sign = _best(ones[:choosing], others[:choosing], divergence)
        a, b = (_hits(numbers[choosing:], threshold, sign) for numbers in (ones, others))
        size = len(ones) - choosing
        low, high = lower_chance(size, a, ERROR), upper_chance(size, b, ERROR)
        loss = max(loss, divergence(low, high))
    return loss


def log_ratio(chance: float, other: float) -> float:
    return math.log(chance / other) if chance > other else 0.0


def kullback_leibler(chance: float, other: float) -> float:
    """The larger of both directions; it grows with the first probability and falls with the
    second.
    """
    if not chance > other:
        return 0.0
    pairs = ((chance, other), (other, chance))
    return max(
        a * math.log(a / b) + ((1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0)
        for a, b in pairs
    )


def _hits(numbers: list[float], threshold: float, sign: int) -> int:
    return sum(sign * each >= sign * threshold for each in numbers)


def _best(ones: list[float], others: list[float], divergence: Divergence) -> tuple[float, int]:
    """The event that would prove the most loss if its probabilities were a tenth less and more."""
    best, chosen = -math.inf, (0.0, 1)
    for threshold in sorted({*ones, *others}):
        for sign in (1, -1):
            a, b = (_hits(numbers, threshold, sign) / len(ones) for numbers in (ones, others))
            proof = divergence(max(a - 0.1, 0.0), min(b + 0.1, 1.0))
            if proof > best:
                best, chosen = proof, (threshold, sign)
    return chosen


def audited(tables: Tables, case: Case, runs: int = RUNS) -> tuple[float, float]:
    """The lower bound and the charge: both epsilon, or both rho."""
    (one, answer), (other, _) = (tables.read(case, rows, runs) for rows in (case.one, case.other))
    if case.by_rho:
        return loss_at_least(one, other, kullback_leibler), answer["charged"]["rho"]
    return loss_at_least(one, other, log_ratio), answer["charged"]["epsilon"]


@pytest.fixture(scope="module")
def tables(live: World) -> Tables:
    return Tables(live)


# One case of each family and relation; some of them catch the saboteurs below.
SUITE = {
    *("count-laplace", "histogram-laplace", "linear_regression-laplace", "sum-gaussian"),
    *("mean-gaussian", "mode-permute_and_flip", "quantile-exponential"),
    *("mode-noisy_max-exponential", "median-noisy_max-laplace", "mode-noisy_max-gumbel"),
    *("median-student_t", "median of rows replaced-cauchy", "median-laplace_log_normal"),
    "randomized_column on a grid-randomized_response",
}


@pytest.mark.parametrize("name", audited_cases(CASES, SUITE))
def test_answers_about_neighbours_prove_no_more_loss_than_was_charged(
    tables: Tables, name: str, counts: Counts
) -> None:
    bound, charge = audited(tables, CASES[name])
    print(f"{name}: at least {bound:.2f}, charged {charge:.2f}")
    assert bound <= charge
    counts("answers audited over HTTP", 2 * RUNS)


# Other files audit the rest: test_keys_audit.py, test_persons_audit.py, test_regression_audit.py,
# test_withholding_audit.py.
KINDS_ELSEWHERE = {"count_distinct", "keys", "logistic_regression", "triangles"}
MECHANISMS_ELSEWHERE = {
    *("stability_histogram", "partition_selection", "noisy_gradient_descent"),
    *("propose_test_release", "stable_value", "noisy_bound"),
}


def test_every_kind_and_every_mechanism_is_audited() -> None:
    kinds = {case.query["kind"] for case in CASES.values()}
    mechanisms = {case.mechanism["kind"] for case in CASES.values()}
    assert kinds | KINDS_ELSEWHERE == set(QUERIES)
    assert mechanisms | MECHANISMS_ELSEWHERE == set(MECHANISMS)
    assert not kinds & KINDS_ELSEWHERE
    assert not mechanisms & MECHANISMS_ELSEWHERE
    assert {CASES[name].mechanism["kind"] for name in SUITE} == mechanisms


HALVED = """
import app.queries.shapes.measures as measures
whole = measures.sensitivity_l1
measures.sensitivity_l1 = lambda *a, **k: (whole(*a, **k) + 1) // 2
"""
QUIET = """
import app.mechanisms.sampling.system as sampling
import app.mechanisms.selection.release as selection
noise = sampling.SystemRandom
whole, bell = noise.discrete_laplace, noise.discrete_gaussian
noise.discrete_laplace = lambda self, scale, size: whole(self, scale / 2, size)
noise.discrete_gaussian = lambda self, scale, size: bell(self, scale / 2, size)
slow = selection._rate
selection._rate = lambda shape, epsilon: 4 * slow(shape, epsilon)
"""
NARROW = """
import app.mechanisms.smooth_sensitivity.rank_statistics as mechanism
bound = mechanism.smooth_bound
mechanism.smooth_bound = lambda *given: bound(*given) / 8
"""
CAUGHT = ["count-laplace", "count-gaussian", "mode-permute_and_flip", "quantile-exponential"]

SMOOTH_CAUGHT = ["median-student_t"]


@pytest.mark.saboteur
@pytest.mark.parametrize(
    ("sabotage", "names"),
    [
        pytest.param(HALVED, ["sum-laplace"], id="a sensitivity halved"),
        pytest.param(QUIET, CAUGHT, id="too little noise"),
        pytest.param(NARROW, SMOOTH_CAUGHT, id="a smooth sensitivity too small"),
    ],
)
def test_a_server_that_charges_too_little_is_caught(
    peopled: Template, tmp_path: Path, sabotage: str, names: list[str], counts: Counts
) -> None:
    """The bugs halve a sensitivity or the noise, choose at four times the rate, or use an eighth of
    a smooth sensitivity.

    With 1,000 answers per table, the bounds exceed the charge by more than five deviations.
    """
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        world.serve(sabotage=sabotage)
        tables = Tables(world)
        for name in names:
            bound, charge = audited(tables, CASES[name], runs=1000)
            print(f"{name}: at least {bound:.2f}, charged {charge:.2f}")
            assert bound > charge, name
            counts("answers of saboteurs", 2000)
    finally:
        world.ledger.stop()
