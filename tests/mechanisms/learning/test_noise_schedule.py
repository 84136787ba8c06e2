"""The price of the steps of a descent, and the noise for a price: from public numbers alone."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from app.accounting import COMPOSITION_RULES
from app.accounting.curves.conversion import epsilon_of_rho
from app.accounting.curves.orders import ORDERS
from app.accounting.precise import INFINITE, decimal
from app.accounting.sampled_steps import SampledSteps
from app.accounting.units import ATTO, PICO
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.learning.clipping import NORM
from app.mechanisms.learning.gradient_descent import COINS, GradientRelease
from app.mechanisms.learning.noise_schedule import COUNT_SHARE
from app.planning.plan import make_plan
from tests.queries.cards import card
from tests.queries.regression.regressions import (
    BY_DELTA,
    BY_RHO,
    COLUMNS,
    LOGISTIC,
    regression_question,
    release_of,
)

RELATIONS = [("add_remove", None), ("add_remove", 3), ("replace_one", None), ("replace_one", 3)]
SAMPLED: dict[str, Any] = {"sampling_rate": 0.05, "steps": 50}


def made(neighbours: str = "add_remove", rows_max: int | None = None) -> Card:
    return card(COLUMNS, neighbours=neighbours, rows_max=rows_max)


def spent(release: GradientRelease) -> Fraction:
    """The rho of a full batch, from the numbers in the ledger's entry."""
    record = release.ledger_entry()
    moved = Fraction(record["moves"] * int(record["norm"]))
    scale = Fraction(float.fromhex(record["scale"]))
    rho: Fraction = record["steps"] * moved**2 / (2 * scale**2)
    if record["count"] is not None:
        scale = Fraction(float.fromhex(record["count"]["scale"]))
        rho += Fraction(record["count"]["sensitivity"]) ** 2 / (2 * scale**2)
    return rho


def test_a_hundred_steps_with_ten_times_the_noise_cost_a_half() -> None:
    """Full batches cost rho = T / (2 sigma^2): T = 100, sigma = 10, rho = 0.5."""
    release = release_of(made(), BY_RHO, steps=100, expected_rows=1000)
    assert release.noise_multiplier == pytest.approx(10.0, rel=1e-12)
    assert release.loss.rho == PICO // 2
    described = release.describe()
    assert described["noise_per_coordinate"] == pytest.approx(10.0 * release.clipping_norm / 1000)


@pytest.mark.parametrize(("neighbours", "rows_max"), RELATIONS)
@pytest.mark.parametrize("expected_rows", [None, 500])
@pytest.mark.parametrize("privacy", [BY_RHO, BY_DELTA, {"rho": "0.01", "delta": "1e-9"}])
def test_a_full_batch_costs_the_sum_of_its_steps_and_the_row_count(
    neighbours: str, rows_max: int | None, expected_rows: int | None, privacy: dict[str, str]
) -> None:
    release = release_of(made(neighbours, rows_max), privacy, expected_rows=expected_rows)
    m = rows_max or 1
    assert release.shape.moves == (2 * m if neighbours == "replace_one" else m)
    assert (release.price.count_scale is None) == (
        expected_rows is not None or neighbours == "replace_one"
    )
    rho = spent(release)
    assert 0 <= release.loss.rho - rho * PICO <= 1
    for order, units in zip(ORDERS, release.loss.curve, strict=True):
        assert 0 <= units - rho * order * PICO <= 1
    assert release.loss.pure == release.loss.mu_squared == INFINITE
    if "rho" in privacy:
        assert Fraction(privacy["rho"]) * Fraction("0.999999") <= rho <= Fraction(privacy["rho"])
    if "delta" in privacy:
        epsilon = epsilon_of_rho(decimal(rho), Decimal(privacy["delta"]))
        assert 0 <= Decimal(release.loss.epsilon) / PICO - epsilon < Decimal("1e-5")
        assert release.loss.delta == Decimal(privacy["delta"]) * ATTO
    else:
        assert release.loss.epsilon == INFINITE


def test_the_row_count_takes_its_share_and_no_more() -> None:
    release = release_of(made(rows_max=3), BY_RHO)
    assert release.price.count_scale is not None
    rho = 9 / (2 * Fraction(release.price.count_scale) ** 2)
    assert rho == pytest.approx(COUNT_SHARE / 2, rel=1e-12)
    assert rho <= COUNT_SHARE / 2


def steps_of(release: GradientRelease, factor: float = 1.0) -> SampledSteps:
    """The price computed again, with the noise changed by a factor."""
    scale = Fraction(release.price.scale) * Fraction(factor)
    beside = Fraction(0)
    if release.price.count_scale is not None:
        beside = 1 / (2 * Fraction(release.price.count_scale) ** 2)
    return SampledSteps(
        release.steps,
        decimal(Fraction(release.threshold, COINS)),
        decimal(scale / NORM),
        release.shape.replaced,
        decimal(beside),
    )


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [
        ("1", "1e-6", 0.01, 1000),
        ("0.1", "1e-9", 0.05, 100),
        ("8", "1e-5", 0.5, 10),
        ("0.01", "1e-6", 0.001, 1),
        ("50", "0.01", 0.2, 30),
    ],
)
def test_samples_have_the_least_noise_that_fits_and_are_charged_its_curve(
    neighbours: str, epsilon: str, delta: str, rate: float, steps: int
) -> None:
    privacy = {"epsilon": epsilon, "delta": delta}
    release = release_of(made(neighbours), privacy, sampling_rate=rate, steps=steps)
    assert Decimal(release.loss.epsilon) == Decimal(epsilon) * PICO
    assert Decimal(release.loss.delta) == Decimal(delta) * ATTO
    found = steps_of(release)
    assert found.epsilon(Decimal(delta)) <= Decimal(epsilon)
    assert steps_of(release, 0.999).epsilon(Decimal(delta)) > Decimal(epsilon)
    assert release.loss.curve == found.loss((0, 0)).curve
    assert release.loss.rho == INFINITE


def test_a_sample_needs_less_noise_than_a_full_batch() -> None:
    whole = release_of(made(), BY_DELTA, steps=50)
    sample = release_of(made(), BY_DELTA, **SAMPLED)
    assert sample.noise_multiplier < whole.noise_multiplier / 3


@pytest.mark.parametrize(
    ("requested", "threshold"),
    [
        (1.0, COINS),
        (1, COINS),
        (0.5, COINS // 2),
        (0.01, math.ceil(Fraction(0.01) * COINS)),
        (1e-9, 5),
        (1.0 - 2.0**-40, COINS),
    ],
)
def test_the_rate_is_rounded_up_to_a_possible_coin_and_reported(
    requested: float, threshold: int
) -> None:
    release = release_of(made(), BY_DELTA, sampling_rate=requested)
    assert release.threshold == threshold
    described = release.describe()["sampling_rate"]
    assert described == (None if threshold == COINS else threshold / COINS)
    assert release.sampling_rate >= requested


def test_accounts_that_can_count_the_curve_can_pay() -> None:
    whole, sample = release_of(made(), BY_DELTA), release_of(made(), BY_DELTA, **SAMPLED)
    by_rho = release_of(made(), BY_RHO)

    def payers(release: GradientRelease) -> set[str]:
        rules = COMPOSITION_RULES.items()
        return {name for name, rule in rules if rule.can_pay(rule.read(release.loss))}

    assert payers(whole) == {"approximate", "zcdp", "renyi"}
    assert payers(by_rho) == {"zcdp", "renyi"}
    assert payers(sample) == {"approximate", "renyi"}
    assert "rho" not in sample.loss.to_json()
    assert "rho" in whole.loss.to_json()


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "epsilon without delta": ({"epsilon": "1"}, {}, "/privacy"),
    "a half width": ({"half_width": 0.1}, {}, "/privacy"),
    "epsilon without delta on samples": ({"epsilon": "1"}, SAMPLED, "/privacy"),
    "a half width on samples": ({"half_width": 0.1}, SAMPLED, "/privacy"),
    "a rho on samples": (BY_RHO, SAMPLED, "/privacy"),
    "a rho so large that there is no noise": ({"rho": "9000000"}, {}, "/privacy"),
    "so much on samples": ({"epsilon": "9000000", "delta": "0.5"}, SAMPLED, "/privacy"),
    "so little that it does not fit": ({"epsilon": "1e-12", "delta": "1e-18"}, {}, "/privacy"),
    "so little on samples": ({"epsilon": "1e-12", "delta": "1e-18"}, SAMPLED, "/privacy"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_an_unsupported_question_names_the_field(why: str) -> None:
    privacy, mechanism, pointer = REFUSED[why]
    for question in (regression_question(LOGISTIC, privacy, **mechanism),):
        with pytest.raises(Invalid) as refused:
            make_plan(question, made())
        assert [field.pointer for field in refused.value.fields] == [pointer]


def test_persons_with_several_rows_cannot_be_sampled() -> None:
    with pytest.raises(Invalid) as refused:
        release_of(made(rows_max=2), BY_DELTA, **SAMPLED)
    assert refused.value.fields[0].pointer == "/mechanism/sampling_rate"
    assert (
        release_of(made(rows_max=2), BY_DELTA, sampling_rate=1).describe()["sampling_rate"] is None
    )


def test_work_is_bounded_if_the_number_of_rows_is_public() -> None:
    public = Card.model_validate(made("replace_one").model_dump() | {"rows": 10**8})
    release_of(public, BY_RHO, steps=250)
    with pytest.raises(Invalid) as refused:
        release_of(public, BY_RHO, steps=251)
    assert refused.value.fields[0].pointer == "/mechanism/steps"
    assert release_of(made(), BY_RHO, steps=10_000).steps == 10_000


def test_the_same_question_has_the_same_plan_and_every_parameter_changes_it() -> None:
    def digest(**mechanism: Any) -> str:
        return make_plan(regression_question(LOGISTIC, BY_DELTA, **mechanism), made()).digest

    changes: list[dict[str, Any]] = [
        {},
        {"steps": 101},
        {"clipping_norm": 0.5},
        {"learning_rate": 0.1},
        {"sampling_rate": 0.5},
        {"expected_rows": 7},
    ]
    digests = [digest(**change) for change in changes]
    assert len(set(digests)) == len(changes)
    assert digests == [digest(**change) for change in changes]
    assert digest(steps=100) == digests[0]


@pytest.mark.parametrize(
    ("query", "rows"),
    [(LOGISTIC, 100), (LOGISTIC | {"where": {"column": "kept", "op": "==", "value": True}}, None)],
)
def test_a_public_number_of_rows_is_the_divisor_unless_a_filter_makes_it_private(
    query: dict[str, Any], rows: int | None
) -> None:
    release = release_of(made("replace_one"), BY_RHO, query)
    assert release.rows == rows
    assert (release.price.count_scale is None) == (rows is not None)
    assert release_of(made("replace_one"), BY_RHO, query, expected_rows=7).rows == 7
    assert release_of(made(), BY_RHO, query).rows is None
