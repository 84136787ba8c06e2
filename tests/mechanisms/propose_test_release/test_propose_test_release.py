"""Propose-test-release: by the exact law of its answer, no neighbours need more than was charged.

The tests compare every pair of neighbouring tables of up to three rows with values 0, 1, 2 and 40.
They repeat this with many more rows of one value. They cover every statistic, both relations, and
persons with one and two rows.
"""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from app.accounting.curves.orders import ORDERS
from app.accounting.units import ATTO, PICO
from app.mechanisms.propose_test_release.local_statistic import RankStatistic
from app.mechanisms.propose_test_release.propose_test_release import ProposedRelease
from tests.effort import thorough_except
from tests.mechanisms.propose_test_release.proposals import (
    KEPT,
    Case,
    Part,
    Table,
    TableData,
    hockey_stick,
    law,
    tables,
)

SLACK = Decimal("1e-30")
MEDIAN: dict[str, Any] = {"kind": "median", "column": "x"}
WHOLE: dict[str, Any] = {**MEDIAN, "missing": 0}
UPPER: dict[str, Any] = {"kind": "quantile", "column": "x", "q": 0.6}
IQR: dict[str, Any] = {"kind": "iqr", "column": "x"}
MEAN: dict[str, Any] = {"kind": "mean", "column": "x"}
TRIMMED: dict[str, Any] = {"kind": "trimmed_mean", "column": "x", "trim": 0.2}
CASES: dict[str, tuple[Case, float]] = {
    "median": (Case(MEDIAN), 1),
    "median, two rows a person": (Case(MEDIAN, rows_max=2), 2),
    "median, a row replaced": (Case({**MEDIAN, "where": KEPT}, "replace_one"), 1),
    "median of the whole table": (Case(WHOLE, "replace_one", fixed=True), 1),
    "median of persons replaced": (Case(MEDIAN, "replace_one", rows_max=2), 1),
    "upper quantile": (Case(UPPER), 2),
    "upper quantile, two rows a person": (Case(UPPER, rows_max=2), 1),
    "smallest": (Case({"kind": "min", "column": "x"}), 1),
    "iqr": (Case(IQR), 2),
    "iqr, two rows a person": (Case(IQR, rows_max=2), 3),
    "iqr of the whole table": (Case({**IQR, "missing": 2}, "replace_one", fixed=True), 1),
    "mean": (Case(MEAN), 4),
    "mean, two rows a person": (Case({**MEAN, "where": KEPT}, rows_max=2), 8),
    "mean, a row replaced": (Case({**MEAN, "where": KEPT}, "replace_one"), 4),
    "mean of persons replaced": (Case(MEAN, "replace_one", rows_max=2), 8),
    "trimmed mean": (Case(TRIMMED, "replace_one", fixed=True), 0.5),
}
# By `make check`: one of each kind, both relations, and persons of one and two rows.
CHECKED = [
    *("median", "median, two rows a person", "median of the whole table", "upper quantile"),
    *("smallest", "iqr", "mean, a row replaced", "trimmed mean"),
]


@cache
def prepared(name: str, noise: str = "laplace") -> ProposedRelease:
    case, bound = CASES[name]
    return case.release({"bound": bound, "noise": noise})


def worst(name: str, release: ProposedRelease, **sabotage: Any) -> Decimal:
    """Largest delta that any neighbours need."""
    case = CASES[name][0]
    law_of = cache(lambda table: law(release, case.card, table, **sabotage))
    promised = Decimal(release.loss.epsilon) / PICO
    return max(hockey_stick(law_of(x), law_of(y), promised) for x, y in pairs(name))


@pytest.mark.parametrize("name", thorough_except(CHECKED, CASES))
def test_no_neighbours_need_more_than_was_charged(name: str) -> None:
    release = prepared(name)
    charged = Decimal(release.loss.delta) / ATTO
    assert worst(name, release) <= charged + SLACK
    assert charged <= Decimal("0.1")
    assert release.loss.failure == release.loss.delta == release.test.failure


def changed(name: str, x: Table, y: Table) -> int:
    return abs(number(name, x) - number(name, y))


@cache
def number(name: str, x: Table) -> int:
    case, release = CASES[name][0], prepared(name)
    return release.statistic.value(release.statistic.read(TableData(case.card, x), release.cap))


@cache
def pairs(name: str) -> list[tuple[Table, Table]]:
    return list(CASES[name][0].pairs())


def distance(case: Case, release: ProposedRelease, x: Table) -> int:
    found = release.statistic.read(TableData(case.card, x), release.cap)
    return release.statistic.distance(found, release.bounds[0], release.cap)


@pytest.mark.parametrize("name", thorough_except(CHECKED, CASES))
def test_a_person_changes_a_distance_by_one_and_the_statistic_by_at_most_the_bound(
    name: str,
) -> None:
    """If the statistic changes by more, both distances are 0. Some tables are safe, and some are
    not.
    """
    case, release = CASES[name][0], prepared(name)
    d = cache(lambda x: distance(case, release, x))
    unsafe = 0
    for x, y in pairs(name):
        assert abs(d(x) - d(y)) <= 1, (x, y)
        if changed(name, x, y) > release.bounds[0]:
            assert d(x) == d(y) == 0, (x, y)
            unsafe += 1
    assert unsafe
    assert max(d(x) for x in tables()) > release.test.threshold


@pytest.mark.parametrize("name", thorough_except(CHECKED, CASES))
def test_safe_neighbours_need_no_delta(name: str) -> None:
    case, release = CASES[name][0], prepared(name)
    law_of = cache(lambda table: law(release, case.card, table))
    promised = Decimal(release.loss.epsilon) / PICO
    for x, y in pairs(name):
        if changed(name, x, y) <= release.bounds[0]:
            assert hockey_stick(law_of(x), law_of(y), promised) <= SLACK, (x, y)


# Saboteurs


@pytest.mark.parametrize("name", thorough_except(CHECKED, CASES))
def test_a_threshold_one_too_low_is_caught(name: str) -> None:
    """A distance one too large, or a release at T itself, has the same effect."""
    release = prepared(name)
    needed = worst(name, release, threshold=release.test.threshold - 1)
    assert needed > 2 * Decimal(release.loss.delta) / ATTO


@pytest.mark.parametrize("name", thorough_except(CHECKED, CASES))
def test_noise_for_a_quarter_of_the_bound_is_caught(name: str) -> None:
    """Half of the noise would still pass, because the test loses nothing if both tables pass
    equally.
    """
    case, release = CASES[name][0], prepared(name)
    d = cache(lambda x: distance(case, release, x))
    safe = max(changed(name, x, y) for x, y in pairs(name) if d(x) > 0)
    assert 0 < safe <= release.bounds[0]
    narrower = safe / release.bounds[0] / 4
    assert worst(name, release, narrower=narrower) > Decimal(release.loss.delta) / ATTO + SLACK


def test_a_test_of_the_local_sensitivity_alone_is_caught() -> None:
    """It takes d = 1 for every safe table, even next to an unsafe one, and adds no noise.

    The same law results from a threshold that every safe table passes and no other.
    """
    release = prepared("median")
    assert worst("median", release, threshold=0, distance=lambda d: 99 if d else -99) > Decimal(
        "0.9"
    )


@pytest.mark.parametrize("name", ["median, two rows a person", "iqr, two rows a person"])
def test_distances_in_rows_are_caught_for_persons_with_two_rows(name: str) -> None:
    release = prepared(name)
    assert isinstance(release.statistic, RankStatistic)
    wrong = replace(release.statistic.shape, moves=1)
    sabotaged = replace(release, statistic=RankStatistic(wrong))
    assert worst(name, sabotaged) > Decimal(release.loss.delta) / ATTO + SLACK


# The curve, and other noise


@pytest.mark.parametrize("name", ["median", "median of the whole table", "iqr, two rows a person"])
def test_safe_neighbours_are_within_the_curve(name: str) -> None:
    case, release = CASES[name][0], prepared(name)
    span = range(-10, 51)
    logs_of = cache(lambda table: _logs(law(release, case.card, table)[0], span))
    for x, y in pairs(name):
        if changed(name, x, y) > release.bounds[0]:
            continue
        one, two = logs_of(x), logs_of(y)
        for order, units in zip(ORDERS, release.loss.curve, strict=True):
            if order in (Fraction(3, 2), 2, 8, 32):
                a = float(order)
                logs = [a * p + (1 - a) * q for p, q in zip(one, two, strict=True)]
                top = max(logs)
                divergence = (top + math.log(sum(math.exp(z - top) for z in logs))) / (a - 1)
                assert divergence <= units / PICO + 1e-9


def _logs(part: Part, span: range) -> list[float]:
    """Logarithms of the probabilities of "withheld" and of each number, as far as floats reach."""
    p = math.exp(-1 / part.scale)
    each = math.log((1 - p) / (1 + p)) + float(part.passed.ln())
    logarithms = [each - abs(v - part.centre) / part.scale for v in span]
    return [float((1 - part.passed).ln()), *logarithms]


@pytest.mark.parametrize("name", ["median", "iqr", "median of the whole table"])
def test_gaussian_noise_needs_the_larger_of_two_deltas_not_their_sum(name: str) -> None:
    case, release = CASES[name][0], prepared(name, "gaussian")
    promised = math.exp(release.loss.epsilon / PICO)
    scale = release.scales[0]
    span = range(-200, 241)

    @cache
    def probabilities(x: Table) -> list[float]:
        part = law(release, case.card, x)[0]
        bell = [math.exp(-((v - part.centre) ** 2) / (2 * scale**2)) for v in span]
        whole = sum(bell)
        passed = float(part.passed)
        return [1 - passed, *(passed * each / whole for each in bell)]

    needed = max(
        sum(
            max(0.0, p - promised * q)
            for p, q in zip(probabilities(x), probabilities(y), strict=True)
        )
        for x, y in pairs(name)
    )
    assert release.loss.delta == ATTO // 10
    assert release.loss.failure == release.test.failure < release.loss.delta
    assert needed <= 0.1 * (1 + 1e-12)
    assert release.loss.rho < 2**62


# A privately chosen bound


CHOSEN = ["median", "median of the whole table", "iqr", "mean", "median, two rows a person"]


@pytest.mark.parametrize("name", thorough_except(CHECKED, CHOSEN))
def test_no_neighbours_need_more_if_the_bound_is_chosen(name: str) -> None:
    release = CASES[name][0].release({}, {"epsilon": "12", "delta": "0.1"})
    assert release.chosen is not None
    assert release.loss.epsilon == 12 * PICO
    needed = worst(name, release)
    assert needed <= Decimal(release.loss.delta) / ATTO + Decimal("1e-9")


def chosen(name: str) -> ProposedRelease:
    return CASES[name][0].release({}, {"epsilon": "12", "delta": "0.1"})


def test_a_choice_at_four_times_its_rate_is_caught() -> None:
    """It acts as if scores moved by half a step against each other, at the correct charge."""
    release = chosen("median")
    assert release.chosen is not None
    hasty = replace(release, chosen=replace(release.chosen, epsilon=4 * release.chosen.epsilon))
    assert hasty.loss == release.loss
    assert worst("median", hasty) > 10 * Decimal(release.loss.delta) / ATTO


@pytest.mark.parametrize("name", ["median", "median of the whole table", "iqr"])
def test_noise_for_a_quarter_of_the_chosen_bound_is_caught(name: str) -> None:
    release = chosen(name)
    assert worst(name, release, narrower=0.25) > 10 * Decimal(release.loss.delta) / ATTO
