"""A black-box audit of choices, as in `test_audit.py`: from answers alone, at epsilon = 1."""

from dataclasses import replace
from typing import Any

import pytest

from app.data.card import Card
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.selection.selection_release import SelectionRelease
from app.planning.plan import Plan, make_plan
from tests.conftest import Counts
from tests.mechanisms.test_audit import RUNS, loss_at_least, row, values
from tests.queries.cards import card, question
from tests.queries.reference import Row, tallied

pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]
MEMBERS: list[Row] = [{**row(5), "member": True}, {**row(5), "member": False}]
Case = tuple[Card, dict[str, Any], list[Row], list[Row]]
CASES: dict[str, Case] = {
    "mode": (
        card(neighbours="replace_one"),
        {"kind": "mode", "column": "member"},
        MEMBERS[:1],
        MEMBERS[1:],
    ),
    "mode of persons": (
        card(rows_max=2),
        {"kind": "mode", "column": "member"},
        MEMBERS[:1],
        [*MEMBERS[:1], *MEMBERS[1:] * 2],
    ),
    "median": (
        card(),
        {"kind": "median", "column": "age", "candidates": [10, 90]},
        [row(20), row(80)],
        [row(20), row(80), row(100)],
    ),
    "max": (
        card(neighbours="replace_one"),
        {"kind": "max", "column": "age", "rank": 1, "candidates": [10, 90]},
        [row(10), row(10)],
        [row(10), row(90)],
    ),
    "price": (
        card(neighbours="replace_one"),
        {"kind": "price", "column": "age", "candidates": [1, 10]},
        [row(0)],
        [row(100)],
    ),
}
KINDS: list[dict[str, Any]] = [
    {"kind": "permute_and_flip"},
    {"kind": "exponential"},
    {"kind": "noisy_max", "noise": "laplace"},
]


def audited(name: str, mechanism: dict[str, Any], times: int) -> float:
    made, query, one, other = CASES[name]
    plan = make_plan(question(query, epsilon="1", mechanism=mechanism), made)
    sharper = _sharper(plan, times)
    exacts = [tallied(made, plan.release.tally, rows) for rows in (one, other)]
    noise = SystemRandom()
    found = (values(sharper, exact, noise, lambda a: float(a["value"])) for exact in exacts)
    return loss_at_least(*found)


def _sharper(plan: Plan, times: int) -> Plan:
    """The planted bug: this many times the rate, for the same charge."""
    release = plan.release
    assert isinstance(release, SelectionRelease)
    loss = release.loss.replace(epsilon=times * release.loss.epsilon)
    return replace(plan, release=replace(release, loss=loss))


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        pytest.param(name, mechanism, id=f"{name}-{mechanism['kind']}")
        for name in CASES
        for mechanism in KINDS
        if name == "mode" or mechanism["kind"] != "noisy_max"  # its draws take longest
    ],
)
def test_answers_about_neighbours_prove_no_more_loss_than_was_charged(
    name: str, mechanism: dict[str, Any], counts: Counts
) -> None:
    assert audited(name, mechanism, 1) <= 1.0
    counts("answers audited in a process", 2 * RUNS)


@pytest.mark.saboteur
@pytest.mark.parametrize("name", CASES)
def test_a_rate_four_times_too_high_is_caught(name: str, counts: Counts) -> None:
    """Missed with probability below 1e-6."""
    assert audited(name, KINDS[0], 4) > 1.0
    counts("answers of saboteurs", 2 * RUNS)
