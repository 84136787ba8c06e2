"""Several choices, and the mechanisms that draw them."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from app.accounting.losses import bounded_range_loss, pure_loss
from app.accounting.units import PICO
from app.errors import Invalid
from app.mechanisms import MECHANISMS
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from tests.mechanisms.noise.noise_law import FALSE_ALARM
from tests.mechanisms.selection.selection_law import (
    chi_square,
    exponential_law,
    first_two_law,
    permute_and_flip_law,
)
from tests.mechanisms.selection.selection_questions import AGE, CITY, choice_question, chosen
from tests.queries.cards import card, choice_shape, measured_shape, question

# Several choices


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["permute_and_flip", "exponential"])
def test_two_choices_are_made_one_after_the_other_at_half_the_rate(kind: str) -> None:
    query = {"kind": "top_k", "column": "city", "k": 2}
    plan = make_plan(question(query, epsilon="2", mechanism={"kind": kind}), card())
    release = chosen(plan)
    assert release.rate == 1
    assert plan.mechanism["choices"] == 2
    law_of = permute_and_flip_law if kind == "permute_and_flip" else exponential_law
    joint = first_two_law(law_of, [3, 2, 2], 1.0)
    names = ["Bern", "Chur", "Zürich"]
    drawn: Counter[tuple[int, int]] = Counter()
    for _ in range(6000):
        first, second = plan.answer(((3, 2, 2),), SystemRandom())["value"]
        drawn[names.index(first), names.index(second)] += 1
    counts = [drawn[pair] for pair in joint]
    assert chi_square(counts, list(joint.values())) > FALSE_ALARM


def test_all_categories_can_be_requested_and_none_comes_twice() -> None:
    query = {"kind": "top_k", "column": "city", "k": 3}
    plan = make_plan(question(query), card())
    for _ in range(20):
        value = plan.answer(((0, 0, 0),), SystemRandom())["value"]
        assert sorted(value) == ["Bern", "Chur", "Zürich"]
    one = make_plan(question({**query, "k": 1}, epsilon="900"), card())
    assert one.answer(((0, 9, 0),), SystemRandom())["value"] == ["Chur"]


# Mechanisms


def test_pure_accounts_use_permute_and_flip_and_those_with_curves_gumbel() -> None:
    for currencies, kind in [
        ({"pure"}, "permute_and_flip"),
        ({"approximate"}, "permute_and_flip"),
        ({"pure", "zcdp"}, "permute_and_flip"),
        ({"approximate", "renyi"}, "permute_and_flip"),
        ({"zcdp"}, "exponential"),
        ({"renyi"}, "exponential"),
        ({"zcdp", "renyi"}, "exponential"),
        ({"gdp"}, "permute_and_flip"),
    ]:
        for privacy in ({"epsilon": 1}, {"half_width": 5.0}):
            for query in (CITY, AGE):
                plan = make_plan(choice_question(query, privacy), card(), frozenset(currencies))
                assert plan.mechanism["kind"] == kind, (currencies, privacy)


def test_the_exponential_mechanism_spends_a_rho_best() -> None:
    for currencies in ({"zcdp"}, {"renyi"}, {"pure"}):
        plan = make_plan(choice_question(CITY, {"rho": "0.125"}), card(), frozenset(currencies))
        assert plan.mechanism["kind"] == "exponential"
        assert PICO - 1 <= plan.loss.epsilon <= 1.01 * PICO


def test_additive_mechanisms_refuse_choices_and_vice_versa() -> None:
    numbers, outcomes = measured_shape({"kind": "count"}, card()), choice_shape(CITY, card())
    one = PrivacyTarget(epsilon=Decimal(1), delta=Decimal("1e-6"), noise="laplace")
    for kind, prepare in MECHANISMS.items():
        wrong = outcomes if kind in ("laplace", "gaussian") else numbers
        with pytest.raises(CannotServe):
            prepare(wrong, one)
    for kind in ("laplace", "gaussian"):
        with pytest.raises(Invalid, match="/mechanism/kind"):
            make_plan(question(CITY, mechanism={"kind": kind}), card())
    with pytest.raises(Invalid, match="/mechanism/kind"):
        make_plan(question({"kind": "count"}, mechanism={"kind": "exponential"}), card())


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
def test_a_noisy_max_is_drawn_if_its_noise_is_named(noise: str) -> None:
    mechanism = {"kind": "noisy_max", "noise": noise}
    plan = make_plan(question(CITY, epsilon="9", mechanism=mechanism), card())
    assert plan.mechanism["noise"] == plan.record["noise"] == noise
    assert plan.record["mechanism"] == plan.mechanism["kind"] == "noisy_max"
    # Another is chosen with probability below 1e-30.
    assert plan.answer(((1, 19, 1),), SystemRandom()) == {"value": "Chur", "interval": None}
    charged = bounded_range_loss if noise == "gumbel" else pure_loss
    assert plan.loss == charged(9 * PICO)


@pytest.mark.parametrize(
    "mechanism", [{"kind": "noisy_max"}, {"kind": "exponential", "noise": "gumbel"}]
)
def test_only_a_noisy_max_takes_a_noise(mechanism: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="noise"):
        question(CITY, mechanism=mechanism)


def test_a_record_holds_the_drawn_parameters() -> None:
    query = {"kind": "top_k", "column": "city", "k": 2}
    plan = make_plan(question(query), card(rows_max=3, neighbours="replace_one"))
    assert plan.record == {
        "query": "top_k",
        "mechanism": "exponential",
        "outcomes": 3,
        "score_range": "6",
        "choices": 2,
    }
    assert chosen(plan).rate == Fraction(1, 12)
