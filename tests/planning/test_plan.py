"""Plans: priced from public facts alone, equal for equal questions, with valid intervals."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.accounting.losses import pure_loss
from app.accounting.units import PICO
from app.data.card import Dataset, Source, Version
from app.data.columns import NumberColumn
from app.errors import Invalid
from app.mechanisms.sampling.system import SystemRandom
from app.planning.mechanism_choice import options
from app.planning.plan import Plan, Planner, make_plan
from app.planning.request import Question
from tests.mechanisms.noise.noise_law import binomial_tail
from tests.queries.cards import additive, card, question
from tests.queries.reference import Row, tallied

CARD = card()
DATASET = Dataset(
    id="d_1",
    name="people",
    description="",
    book_id="b_1",
    card=CARD,
    source=Source("duckdb", "people.csv"),
    version=Version("v_1", 1, "digest", "seed"),
    closed=False,
    created_at=0,
)
WHERE = {"column": "member", "op": "==", "value": True}


def planned(planner: Planner, asked: Question, dataset: Dataset = DATASET) -> Plan:
    return planner.plan("a_1", asked, dataset, asked.model_dump_json(by_alias=True))


# One question, one plan

SAME: list[Question] = [
    question({"kind": "count", "where": WHERE}, epsilon="0.1"),
    question({"where": dict(reversed(WHERE.items())), "kind": "count"}, epsilon=0.1),
    question({"kind": "count", "where": WHERE, "group_by": []}, epsilon="1e-1"),
    question({"kind": "count", "where": WHERE}, epsilon="0.10", mechanism={"kind": "laplace"}),
    question({"kind": "count", "where": WHERE}, epsilon="0.1", fresh=True, confidence=0.95),
    question({"kind": "count", "where": WHERE}, epsilon="0.0999999999999"),  # rounds up to 0.1
]
OTHERS: list[Question] = [
    question({"kind": "count"}, epsilon="0.1"),
    question({"kind": "count", "where": WHERE}, epsilon="0.2"),
    question({"kind": "count", "where": WHERE}, epsilon="0.100000000001"),
    question({"kind": "count", "where": WHERE}, epsilon="0.1", confidence=0.9),
    question({"kind": "count", "where": {**WHERE, "value": False}}, epsilon="0.1"),
    question({"kind": "count", "where": {"not": WHERE}}, epsilon="0.1"),
    question({"kind": "count", "where": WHERE, "group_by": ["city"]}, epsilon="0.1"),
    question({"kind": "sum", "column": "age", "where": WHERE}, epsilon="0.1"),
    question({"kind": "mean", "column": "age", "where": WHERE}, epsilon="0.1"),
    question({"kind": "sum", "column": "income", "where": WHERE}, epsilon="0.1"),
    question({"kind": "histogram", "column": "city", "where": WHERE}, epsilon="0.1"),
]


def test_the_same_question_has_the_same_digest_in_every_notation() -> None:
    digests = {make_plan(asked, CARD).digest for asked in SAME}
    assert len(digests) == 1
    (digest,) = digests
    assert len(digest) == 64


def test_different_questions_have_different_digests() -> None:
    digests = {make_plan(asked, CARD).digest for asked in [SAME[0], *OTHERS]}
    assert len(digests) == 1 + len(OTHERS)


def test_a_cached_plan_equals_a_new_one() -> None:
    planner = Planner()
    for asked in [*SAME, *OTHERS] * 2:
        assert planned(planner, asked) == make_plan(asked, CARD)
    assert planned(planner, SAME[0]) is planned(planner, SAME[0])


def test_questions_that_python_considers_equal_are_planned_separately() -> None:
    """1 == True == 1.0; a refusal must not depend on earlier questions of others."""
    planner = Planner()
    planned(planner, question({"kind": "count", "where": WHERE}))
    with pytest.raises(Invalid):
        planned(planner, question({"kind": "count", "where": {**WHERE, "value": 1}}))
    whole = {"column": "age", "op": "==", "value": 1}
    planned(planner, question({"kind": "count", "where": whole}))
    with pytest.raises(Invalid):
        planned(planner, question({"kind": "count", "where": {**whole, "value": True}}))
    fraction = question({"kind": "count", "where": {**whole, "value": 1.0}})
    assert planned(planner, fraction).digest == make_plan(fraction, CARD).digest


def test_plans_of_one_dataset_are_not_used_for_another() -> None:
    planner = Planner()
    asked = question({"kind": "sum", "column": "age"})
    first = planned(planner, asked)
    wider = [{"name": "age", "type": "integer", "low": 0, "high": 1000}]
    second = planned(planner, asked, replace(DATASET, id="d_2", card=card(wider)))
    assert additive(first).parts[0].scale * 10 == additive(second).parts[0].scale


def test_a_planner_caches_a_bounded_number_of_plans() -> None:
    planner = Planner(plans_max=3)
    for asked in OTHERS:
        planned(planner, asked)
    assert len(planner._plans) == 3


def test_plans_of_large_grids_are_not_cached() -> None:
    planner = Planner()
    for count, kept in ((100, True), (60_000, False)):
        grid = {"low": 0, "high": 1000, "count": count}
        asked = question({"kind": "median", "column": "income", "candidates": grid})
        assert (planned(planner, asked) is planned(planner, asked)) == kept


def test_a_planner_refuses_more_groups_than_its_server_allows() -> None:
    def price_question(count: int) -> Question:
        grid = {"low": 1, "high": 1000, "count": count}
        return question({"kind": "price", "column": "income", "candidates": grid})

    planner = Planner(groups_max=100)
    planned(planner, price_question(100))
    with pytest.raises(Invalid, match="at most 100 groups"):
        planned(planner, price_question(101))


# The price


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5", "0.3333333333333"])
def test_the_price_is_the_requested_epsilon_rounded_up_for_every_question(epsilon: str) -> None:
    for query in (OTHERS[0], OTHERS[6], OTHERS[8], OTHERS[10]):
        priced = query.model_copy(
            update={"privacy": question({"kind": "count"}, epsilon=epsilon).privacy}
        )
        assert priced.privacy.epsilon is not None
        units = -(-int(priced.privacy.epsilon * 10**20) // 10**8)
        loss = make_plan(priced, CARD).loss
        assert (loss.epsilon, loss.delta, loss.pure, loss.failure) == (units, 0, units, 0)


def test_a_record_is_plain_json_with_the_kind_of_the_question() -> None:
    for asked in OTHERS:
        record = make_plan(asked, CARD).record
        assert json.loads(json.dumps(record)) == record
        assert record["query"] == asked.query.kind


def test_a_description_is_in_the_units_of_the_column() -> None:
    plan = make_plan(question({"kind": "sum", "column": "income"}, epsilon="1"), CARD)
    (noise,) = plan.mechanism["noise"]
    assert noise["sensitivity"] == pytest.approx(1000.25, abs=1e-6)
    assert noise["scale"] == pytest.approx(1000.25, abs=1e-6)
    column = CARD.column("income")
    assert isinstance(column, NumberColumn)
    assert noise["grid"] == 2.0**-column.grid_exponent < 1e-6


# The answer


def row(age: int | None, city: str | None = "Bern") -> Row:
    return {"age": age, "income": 1.0, "city": city, "member": True, "born": None}


def test_an_answer_has_a_value_and_an_interval_that_covers_noise() -> None:
    plan = make_plan(question({"kind": "count"}, confidence=0.9), CARD)
    answer = plan.answer(((1000,),), SystemRandom())
    assert set(answer) == {"value", "interval"}
    assert type(answer["value"]) is int
    assert answer["interval"]["confidence"] == 0.9
    assert answer["interval"]["covers"] == "noise"


def test_a_grouped_answer_has_every_group_in_order_including_empty_ones() -> None:
    plan = make_plan(question({"kind": "histogram", "column": "city"}), CARD)
    exact = tallied(CARD, plan.release.tally, [])
    answer = plan.answer(exact, SystemRandom())
    assert answer["interval"] is None
    assert [each["group"] for each in answer["value"]] == [
        {"city": "Bern"},
        {"city": "Chur"},
        {"city": "Zürich"},
    ]


def test_missing_values_count_as_rows_and_add_nothing() -> None:
    rows = [row(None), row(10), row(None, None), row(30, None)]
    count = make_plan(question({"kind": "count"}), CARD)
    total = make_plan(question({"kind": "sum", "column": "age"}), CARD)
    mean = make_plan(question({"kind": "mean", "column": "age"}), CARD)
    assert tallied(CARD, count.release.tally, rows) == ((4,),)
    assert tallied(CARD, total.release.tally, rows) == ((40,),)
    assert tallied(CARD, mean.release.tally, rows) == ((40,), (2,))


INTERVALS: dict[str, tuple[dict[str, Any], list[Row], float]] = {
    "count": ({"kind": "count"}, [row(1)] * 30, 30),
    "sum": ({"kind": "sum", "column": "age"}, [row(a) for a in range(40)], 780),
    "mean": ({"kind": "mean", "column": "age"}, [row(a) for a in range(0, 100, 2)] * 4, 49),
    "mean of few": ({"kind": "mean", "column": "age"}, [row(90), row(100), row(None)], 95),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_cover_the_exact_value_at_the_stated_rate(name: str) -> None:
    """2,000 answers at 90 %. If the rate is true, fewer hold with probability below 1e-6."""
    query, rows, exact_value = INTERVALS[name]
    plan = make_plan(question(query, epsilon="1", confidence=0.9), CARD)
    exact = tallied(CARD, plan.release.tally, rows)
    noise = SystemRandom()
    runs = 2000
    held = 0
    for _ in range(runs):
        interval = plan.answer(exact, noise)["interval"]
        held += interval["low"] <= exact_value <= interval["high"]
    assert binomial_tail(runs, 0.1, runs - held) > 1e-6


@pytest.mark.statistical
def test_an_interval_a_fifth_too_narrow_is_noticed() -> None:
    """The saboteur of the test above: at 90 %, four fifths of the width cover some 84 %."""
    plan = make_plan(question({"kind": "count"}, epsilon="0.05", confidence=0.9), CARD)
    noise = SystemRandom()
    runs = 2000
    missed = 0
    for _ in range(runs):
        interval = plan.answer(((30,),), noise)["interval"]
        middle = (interval["low"] + interval["high"]) / 2
        half = 0.8 * (interval["high"] - interval["low"]) / 2
        missed += not middle - half <= 30 <= middle + half
    assert binomial_tail(runs, 0.1, missed) < 1e-6


def test_an_interval_of_a_count_is_no_wider_than_necessary() -> None:
    plan = make_plan(question({"kind": "count"}, epsilon="1", confidence=0.95), CARD)
    interval = plan.answer(((30,),), SystemRandom())["interval"]
    assert interval["high"] - interval["low"] == 2 * 3
    assert plan.loss == pure_loss(PICO)


def test_every_noise_of_a_noisy_max_is_listed_and_the_planner_takes_none() -> None:
    parsed = question({"kind": "mode", "column": "city"})
    listed = options(parsed, CARD, frozenset({"zcdp"}), include_named=True)
    noises = [
        option.release.describe().get("noise") for option in listed if option.kind == "noisy_max"
    ]
    assert noises == ["exponential", "gumbel", "laplace"]
    assert {"permute_and_flip", "exponential"} < {option.kind for option in listed}
    kinds = {option.kind for option in options(parsed, CARD, frozenset({"zcdp"}))}
    assert "noisy_max" not in kinds
    named = question({"kind": "mode", "column": "city"}, mechanism={"kind": "exponential"})
    assert [option.kind for option in options(named, CARD, frozenset(), include_named=True)] == [
        "exponential"
    ]
