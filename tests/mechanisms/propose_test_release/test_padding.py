"""Withheld and released answers: equal size, equal draws and equal reads; intervals that hold."""

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typing_extensions import override

from app.mechanisms.propose_test_release.padding import padded, text_size
from app.mechanisms.propose_test_release.propose_test_release import ProposedRelease
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import Plan, make_plan
from app.planning.request import Question
from app.queries.tally import Exact, StepCounts, StepHistogram, Tally
from tests.mechanisms.noise.noise_law import DRAWS, FALSE_ALARM, chi_square, upper_chance
from tests.mechanisms.propose_test_release.proposals import TableData
from tests.queries.cards import card, promised_width

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": 0, "high": 40},
    {"name": "income", "type": "number", "low": -1e-9, "high": 1e15},
    {"name": "kept", "type": "boolean"},
    {"name": "city", "type": "category", "values": ["Zürich", 'a"\\', "日本", "b"]},
]
BOTH = {"epsilon": "2", "delta": "1e-3"}


class Counting:
    """A sampler that records law, scale and size of every draw."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, float, int]] = []
        self._noise = SystemRandom()

    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        self.drawn.append(("laplace", scale, size))
        return self._noise.discrete_laplace(scale, size)

    def discrete_gaussian(self, scale: float, size: int) -> list[int]:
        self.drawn.append(("gaussian", scale, size))
        return self._noise.discrete_gaussian(scale, size)

    def below(self, bound: int) -> int:
        return self._noise.below(bound)

    def words(self, size: int) -> Sequence[int]:
        return self._noise.words(size)


class CountingData(TableData):
    """Data that record every read."""

    asked: list[object] = []  # noqa: RUF012  # of the one test that reads it

    @override
    def exact(self, tally: Tally) -> Exact:
        self.asked.append(tally)
        return super().exact(tally)

    @override
    def steps(self, wanted: StepHistogram) -> StepCounts:
        self.asked.append(wanted.shift)
        return super().steps(wanted)


def plan(query: dict[str, Any], mechanism: dict[str, Any], **more: Any) -> Plan:
    question = {
        "dataset": "d",
        "query": query,
        "privacy": more.pop("privacy", BOTH),
        "mechanism": mechanism,
        **more,
    }
    return make_plan(Question.model_validate(question), card(COLUMNS))


def drawn(made: Plan, table: tuple[int, ...], noise: RandomSource) -> dict[str, Any]:
    return made.answer(made.release.read(TableData(made.card, table)), noise)


SAFE: tuple[int, ...] = (20,) * 200
UNSAFE: tuple[int, ...] = (0, 40)
PROPOSED: dict[str, Any] = {"kind": "propose_test_release"}
ASKED = {
    "median": ({"kind": "median", "column": "x"}, {**PROPOSED, "bound": 2}),
    "median, Gaussian": (
        {"kind": "median", "column": "x"},
        {**PROPOSED, "bound": 2, "noise": "gaussian"},
    ),
    "median, a bound chosen": ({"kind": "median", "column": "x"}, PROPOSED),
    "iqr": ({"kind": "iqr", "column": "x"}, {**PROPOSED, "bound": 2}),
    "mean": ({"kind": "mean", "column": "x"}, {**PROPOSED, "bound": 2}),
    "mean, a bound chosen": ({"kind": "mean", "column": "x"}, PROPOSED),
}


@pytest.mark.parametrize("name", ASKED)
def test_withheld_answers_have_the_same_length_draws_and_reads(name: str) -> None:
    """A safe table fails with probability e-9, and an unsafe one passes with 1e-3.

    Twenty answers each must have equal sizes and draws. A chosen bound and its noise may differ.
    """
    made = plan(*ASKED[name])
    sizes, draws, statuses = set(), set(), []
    for table in (SAFE, UNSAFE) * 20:
        noise = Counting()
        answer = drawn(made, table, noise)
        sizes.add(text_size(answer))
        chosen = "chosen" in name
        draws.add(tuple((law, None if chosen else scale, n) for law, scale, n in noise.drawn))
        statuses.append(answer["status"])
        if answer["status"] == "withheld":
            assert answer["value"] is None
            assert answer["interval"] is None
    assert len(sizes) == len(draws) == 1
    assert {"answered"} == set(statuses[::2])
    if "chosen" not in name:  # a chosen bound is one that is safe
        assert statuses[1::2].count("withheld") > 15
    passes: list[list[object]] = []
    read: list[tuple[int, ...]] = [SAFE, UNSAFE, ()]
    for table in read:
        CountingData.asked.clear()
        made.release.read(CountingData(made.card, table))
        passes.append(list(CountingData.asked))
    assert passes[0] == passes[1] == passes[2]


def test_a_value_of_any_length_fits_the_size() -> None:
    """The column bounds make numbers as long as possible."""
    made = plan({"kind": "median", "column": "income"}, {**PROPOSED, "bound": 1234567.89})
    low, high = card(COLUMNS).columns[1].steps  # type: ignore[union-attr]
    sizes = set()
    for value in (low, high, 0, 1, 123456789, high - 1):
        exact = made.release.read(TableData(made.card, (value,) * 100))
        sizes |= {text_size(made.answer(exact, SystemRandom())) for _ in range(50)}
    assert len(sizes) == 1
    with pytest.raises(ArithmeticError):
        padded({"value": "x" * 100}, 100)


@pytest.mark.parametrize("query", [{"kind": "mode"}, {"kind": "top_k", "k": 3}])
def test_stable_values_are_padded_to_the_longest_name(query: dict[str, Any]) -> None:
    made = plan({**query, "column": "city"}, {"kind": "stable_value"})
    sizes, values = set(), []
    for counts in ((99, 0, 50, 0), (0, 99, 0, 50), (99, 90, 80, 0), (5, 5, 5, 5), (0, 0, 0, 0)):
        for _ in range(20):
            answer = made.answer((counts,), SystemRandom())
            sizes.add(text_size(answer))
            values.append(answer["value"])
    assert len(sizes) == 1
    assert None in values
    if query["kind"] == "mode":
        assert "Zürich" in values
        assert 'a"\\' in values
    else:
        assert ["Zürich", 'a"\\', "日本"] in values


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", ["median", "mean"])
def test_intervals_of_released_answers_hold_as_often_as_stated(kind: str, noise: str) -> None:
    """False alarm 1e-6."""
    made = plan(
        {"kind": kind, "column": "x"}, {**PROPOSED, "bound": 2, "noise": noise}, confidence=0.9
    )
    runs, missed, released = 3000, 0, 0
    system = SystemRandom()
    exact = made.release.read(TableData(made.card, SAFE))
    for _ in range(runs):
        answer = made.answer(exact, system)
        if answer["status"] == "answered":
            released += 1
            missed += not answer["interval"]["low"] <= 20 <= answer["interval"]["high"]
    assert released > 0.99 * runs
    assert upper_chance(released, released - missed, 1e-6) >= 0.9
    half = promised_width(made.release, 0.9)
    assert 0 < half < 20


@pytest.mark.statistical
def test_released_answers_have_the_charged_noise_and_a_tenth_more_or_less_is_rejected() -> None:
    """The bound is the proposed one. False alarms as in `noise_law.py`.

    The column's ends are ten scales away; everything beyond them is in the last bins.
    """
    release = plan({"kind": "median", "column": "x"}, {**PROPOSED, "bound": 2}).release
    assert isinstance(release, ProposedRelease)
    safe = SimpleNamespace(  # a statistic that needs no computation
        value=lambda exact: 20,
        distance=lambda exact, bound, cap: cap,
        limits=release.statistic.limits,
        grid_exponent=release.statistic.grid_exponent,
    )
    far = replace(release, statistic=cast(Any, safe))
    noise = SystemRandom()
    answers = [
        far.answer(None, noise, query=cast(Any, None), card=cast(Any, None), confidence=0.95)
        for _ in range(DRAWS)
    ]
    draws = [answer["value"] - 20 for answer in answers if answer["status"] == "answered"]
    assert len(draws) > 0.99 * DRAWS
    scale = release.describe()["scale"]
    assert scale == 2.0
    assert chi_square(draws, scale) > FALSE_ALARM
    assert chi_square(draws, 1.1 * scale) < FALSE_ALARM
    assert chi_square(draws, 0.9 * scale) < FALSE_ALARM


def test_released_answers_stay_within_the_range_of_the_statistic() -> None:
    made = plan(
        {"kind": "iqr", "column": "x"},
        {**PROPOSED, "bound": 30},
        privacy={"epsilon": "0.5", "delta": "0.2"},
    )
    for _ in range(200):
        answer = drawn(made, SAFE, SystemRandom())
        if answer["status"] == "answered":
            assert 0 <= answer["interval"]["low"] <= answer["value"]
            assert answer["value"] <= answer["interval"]["high"] <= 40


def test_the_requested_half_width_is_that_of_the_released_answer() -> None:
    for noise in ("laplace", "gaussian"):
        made = plan(
            {"kind": "mean", "column": "x"},
            {**PROPOSED, "bound": 2, "noise": noise},
            privacy={"half_width": 7.5, "delta": "1e-6", "confidence": 0.9},
        )
        half = promised_width(made.release, 0.9)
        assert half <= 7.5
        assert math.isclose(half, 7.5, rel_tol=1e-4)


def test_empty_and_constant_tables_are_released_or_withheld_like_others() -> None:
    for query, mechanism in ASKED.values():
        made = plan(query, mechanism)
        for table in ((), (40,), (0,) * 5):
            assert drawn(made, table, SystemRandom())["status"] in ("answered", "withheld")
