"""Stable values: distances by brute force, exact laws of the answers, golden distances."""

import math
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

import pytest

from app.accounting.units import ATTO, PICO
from app.errors import Invalid
from app.mechanisms.propose_test_release.stable_value import StableRelease, stability, winners
from app.planning.plan import make_plan
from app.planning.request import Question
from tests.mechanisms.propose_test_release.proposals import reaches
from tests.queries.cards import card

Counts = tuple[int, ...]
COLUMNS: list[dict[str, Any]] = [
    {"name": "vote", "type": "category", "values": ["a", "b", "c"]},
    {"name": "bid", "type": "integer", "low": 0, "high": 9},
]
MODE: dict[str, Any] = {"kind": "mode", "column": "vote"}
TWO: dict[str, Any] = {"kind": "top_k", "column": "vote", "k": 2}
RELATIONS = pytest.mark.parametrize("relation", ["add_remove", "replace_one"])


def made(
    query: dict[str, Any],
    relation: str = "add_remove",
    rows_max: int | None = None,
    privacy: dict[str, Any] | None = None,
    **mechanism: Any,
) -> StableRelease:
    question = {
        "dataset": "d",
        "query": query,
        "privacy": privacy or {"epsilon": "1", "delta": "0.01"},
        "mechanism": {"kind": "stable_value", **mechanism},
    }
    columns = card(COLUMNS, neighbours=relation, rows_max=rows_max)
    release = make_plan(Question.model_validate(question), columns).release
    assert isinstance(release, StableRelease)
    return release


def changes(counts: Counts, relation: str) -> Iterator[Counts]:
    """All tables with one row added, removed or replaced, also by a row that counts nowhere."""
    for i, n in enumerate(counts):
        less = (*counts[:i], n - 1, *counts[i + 1 :])
        more = (*counts[:i], n + 1, *counts[i + 1 :])
        yield more
        if n:
            yield less
            if relation == "replace_one":
                for j, other in enumerate(less):
                    if j != i:
                        yield (*less[:j], other + 1, *less[j + 1 :])


def released(counts: Counts, picks: int, ordered: bool) -> tuple[int, ...]:
    places = winners(list(counts), picks)
    return tuple(places if ordered else sorted(places))


def unsure(counts: Counts, picks: int, ordered: bool) -> bool:
    """True if two relevant counts tie, so that another tie-break would change the answer."""
    ranked = sorted(counts, reverse=True)
    pairs = range(picks) if ordered else [picks - 1]
    return any(i + 1 < len(ranked) and ranked[i] == ranked[i + 1] for i in pairs)


def distance(counts: Counts, picks: int, ordered: bool, score_range: int) -> int:
    found = stability(list(counts), winners(list(counts), picks), score_range, ordered=ordered)
    assert found is not None
    return found


# Distances


@RELATIONS
@pytest.mark.parametrize(("picks", "ordered"), [(1, False), (2, False), (2, True)])
def test_a_distance_is_the_number_of_changes_to_a_tie_less_one(
    relation: str, picks: int, ordered: bool
) -> None:
    """Checked for every vector of three counts, by a search from the ties outwards."""
    top = 7
    every = set(product(range(top + 4), repeat=3))
    frontier = {c for c in every if unsure(c, picks, ordered)}
    away = dict.fromkeys(frontier, 0)
    step = 0
    while frontier:
        step += 1
        frontier = {n for c in frontier for n in changes(c, relation) if n in every} - away.keys()
        away |= dict.fromkeys(frontier, step)
    moves = 2 if relation == "replace_one" else 1
    for counts in product(range(top), repeat=3):
        expected = max(0, away[counts] - 1)
        assert distance(counts, picks, ordered, moves) == expected, counts


@RELATIONS
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("picks", "ordered"), [(1, False), (2, False), (2, True)])
def test_a_person_changes_a_distance_by_one_and_it_is_0_if_they_could_change_the_winners(
    relation: str, rows: int, picks: int, ordered: bool
) -> None:
    score_range = rows * (2 if relation == "replace_one" else 1)

    def violations(counted_as: int) -> int:
        broken = 0
        for counts in product((0, 1, 4, 6, 8, 12), repeat=3):
            here = distance(counts, picks, ordered, counted_as)
            for other in persons(counts, relation, rows):
                there = distance(other, picks, ordered, counted_as)
                differ = released(counts, picks, ordered) != released(other, picks, ordered)
                broken += abs(here - there) > 1 or (differ and max(here, there) > 0)
        return broken

    assert violations(score_range) == 0
    if score_range > 1:
        assert violations(score_range - 1) > 0


@cache
def persons(counts: Counts, relation: str, rows: int) -> frozenset[Counts]:
    """All tables that differ in the rows of one person with this many rows."""
    found = {counts}
    for _ in range(rows):
        found |= {after for before in found for after in changes(before, relation)}
    return frozenset(found - {counts})


@pytest.mark.parametrize(
    ("counts", "picks", "score_range", "expected"),
    [((100, 80, 79), 1, 1, 19), ((50, 49), 1, 1, 0), ((30, 21), 1, 2, 4)],
)
def test_distances_are_the_golden_ones(
    counts: Counts, picks: int, score_range: int, expected: int
) -> None:
    """One less than the number of rows to change before two outcomes tie."""
    assert distance(counts, picks, False, score_range) == expected


def test_ties_go_to_the_first_and_a_set_of_all_is_always_stable() -> None:
    assert winners([3, 5, 5], 2) == [1, 2]
    assert winners([0, 0, 0], 1) == [0]
    assert stability([1, 2, 3], winners([1, 2, 3], 3), 1, ordered=False) is None
    assert stability([1, 2, 3], winners([1, 2, 3], 3), 1, ordered=True) == 0


# The law


def law(release: StableRelease, counts: Counts, threshold: int) -> dict[Any, Decimal]:
    picks = release.shape.picks or 1
    d = distance(counts, picks, release.ordered, release.shape.score_range)
    passed = reaches(threshold + 1 - d, release.test.scale)
    return {released(counts, picks, release.ordered): passed, None: 1 - passed}


def worst(release: StableRelease, relation: str, rows: int, lower: int = 0) -> Decimal:
    """Largest delta that any neighbours need."""
    grown = (Decimal(release.loss.epsilon) / PICO).exp()
    threshold = release.test.threshold - lower
    needed = Decimal(0)
    for counts in product((0, 1, 2, 9, 18), repeat=3):
        one = law(release, counts, threshold)
        for other in persons(counts, relation, rows):
            two = law(release, other, threshold)
            for a, b in ((one, two), (two, one)):
                more = [max(Decimal(0), p - grown * b.get(outcome, 0)) for outcome, p in a.items()]
                needed = max(needed, sum(more, Decimal(0)))
    return needed


@RELATIONS
@pytest.mark.parametrize("rows_max", [None, 2])
@pytest.mark.parametrize(("query", "ordered"), [(MODE, False), (TWO, False), (TWO, True)])
def test_no_neighbours_need_more_than_was_charged_and_some_need_all_of_it(
    relation: str, rows_max: int | None, query: dict[str, Any], ordered: bool
) -> None:
    release = made(query, relation, rows_max, ordered=ordered)
    charged = Decimal(release.loss.delta) / ATTO
    needed = worst(release, relation, rows_max or 1)
    assert charged - Decimal(2) / ATTO < needed <= charged + Decimal("1e-25")
    assert charged <= Decimal("0.01")
    assert release.loss.epsilon == PICO
    assert worst(release, relation, rows_max or 1, lower=1) > Decimal("0.01")


# Replies and refusals


def test_k_does_not_affect_the_price_and_only_the_highest_scores_are_served() -> None:
    one, two = made(MODE), made(TWO)
    assert one.loss == two.loss
    assert one.describe()["threshold"] == two.describe()["threshold"]
    assert one.expected_error(0.95).details["told_from"] > one.test.threshold
    prices = made({"kind": "price", "column": "bid", "candidates": [1, 5, 9]})
    assert prices.shape.score_range == 8
    for query in ({"kind": "median", "column": "bid"}, {"kind": "count"}):
        with pytest.raises(Invalid, match="/mechanism/kind"):
            made(query)


@pytest.mark.parametrize(
    ("query", "privacy", "mechanism", "pointer"),
    [
        (MODE, {"epsilon": "1"}, {}, "/privacy/delta"),
        (MODE, {"half_width": 2, "delta": "1e-6"}, {}, "/privacy"),
        (MODE, None, {"ordered": True}, "/mechanism/ordered"),
    ],
)
def test_an_unsupported_question_is_named(
    query: dict[str, Any], privacy: Any, mechanism: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        made(query, privacy=privacy, **mechanism)
    assert refused.value.fields[0].pointer == pointer


def test_the_rho_is_that_of_the_test() -> None:
    release = made(MODE, privacy={"rho": "0.1", "delta": "1e-6"})
    assert release.loss.rho <= PICO // 10
    assert math.isclose(release.loss.rho, PICO / 10, rel_tol=1e-9)
