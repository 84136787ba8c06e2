"""The stability-based histogram: the price of its noise, its intervals, half-widths."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from app.accounting import COMPOSITION_RULES
from app.accounting.curves.orders import ORDERS
from app.accounting.losses import discrete_laplace_loss
from app.accounting.precise import INFINITE
from app.accounting.units import ATTO, PICO
from app.errors import Invalid
from app.mechanisms.noise.tail_threshold import failure_units, least_threshold
from app.mechanisms.noise.tails import GaussianTail
from app.mechanisms.private_keys.stability_histogram import width_above
from app.mechanisms.sampling.system import SystemRandom
from app.planning.mechanism_choice import options
from app.planning.plan import make_plan
from app.queries.tally import KeyBatch
from tests.mechanisms.noise.test_tails import gaussian_true
from tests.mechanisms.private_keys.key_law import Counts, neighbours
from tests.mechanisms.private_keys.key_releases import COLUMNS, key_question, release_of
from tests.queries.cards import card, promised_width

NOISE = SystemRandom()
RELATIONS = pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
ROWS = pytest.mark.parametrize("rows", [1, 2, 3])

# Gaussian noise


def gaussian_key_law(count: int, threshold: int, weights: np.ndarray[Any, Any]) -> Any:
    """Probabilities of 0 (withheld), T, T + 1, ...: noise from -n to n by its weights."""
    reach = len(weights) // 2
    size = (
        threshold + 4 * reach
    )  # larger values have almost no probability for the counts used here
    law = np.zeros(size + 1)
    if count == 0:
        law[0] = 1.0
        return law
    for z, weight in zip(range(-reach, reach + 1), weights, strict=True):
        noisy = count + z
        law[min(noisy - threshold + 1, size) if noisy >= threshold else 0] += weight
    return law


def noise_weights(scale: float) -> np.ndarray[Any, Any]:
    reach = math.ceil(12 * scale)
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    return np.asarray(weights / weights.sum())


@RELATIONS
def test_gaussian_noise_is_within_its_promise_for_all_neighbours_of_two_keys(relation: str) -> None:
    release = release_of({"epsilon": "1", "delta": "0.01"}, relation, 1, "gaussian")
    weights, threshold = noise_weights(release.scale), release.threshold
    epsilon, charged = release.loss.epsilon / PICO, release.loss.delta / ATTO
    assert charged <= 0.01

    def needed(pair: tuple[Counts, Counts], bar: int) -> float:
        laws = [[gaussian_key_law(table[key], bar, weights) for key in "ab"] for table in pair]
        one, two = (np.outer(*each) for each in laws)
        return float(np.maximum(one - math.exp(epsilon) * two, 0).sum())

    def largest(bar: int) -> float:
        others = [0, 1, bar - 1, bar + 2, 2 * bar]
        return max(needed(pair, bar) for pair in neighbours(relation, 1, others, keys="ab"))

    assert largest(threshold) <= charged + 1e-12
    # The threshold takes half of the delta: a threshold far too low breaks the promise.
    assert largest(threshold - 3) > 0.01


@RELATIONS
@ROWS
def test_shared_keys_cost_the_rho_and_other_keys_the_failure_of_gaussian_noise(
    relation: str, rows: int
) -> None:
    """Shared counts move by at most sqrt(D^2) in L2. Their exact divergence is checked at some
    orders.
    """
    release = release_of({"rho": "0.1", "delta": "0.001"}, relation, rows, "gaussian")
    weights, threshold = noise_weights(release.scale), release.threshold
    assert release.loss.rho <= PICO // 10
    assert release.loss.epsilon == INFINITE
    assert release.loss.failure == failure_units(GaussianTail(release.scale), rows, threshold)
    assert release.loss.failure <= ATTO // 1000
    for order in (1.5, 4.0, 16.0):
        largest = 0.0
        for moves in [(rows, 0), (rows, -rows)] if relation == "replace_one" else [(rows, 0)]:
            total = 0.0
            for move in moves:
                base = threshold + len(weights)  # far enough above that both are released
                one, two = (
                    gaussian_key_law(count, threshold, weights) for count in (base, base + move)
                )
                seen = (one > 1e-290) & (two > 1e-290)
                logs = order * np.log(one[seen]) + (1 - order) * np.log(two[seen])
                total += math.log(np.exp(logs).sum()) / (order - 1)
            largest = max(largest, total)
        assert largest <= order * release.loss.rho / PICO * (1 + 1e-9)
        assert largest > 0.99 * order * release.loss.rho / PICO


def test_gaussian_thresholds_are_minimal() -> None:
    for scale in (0.5, 3.0, 40.0):
        threshold = least_threshold(GaussianTail(scale), 1, ATTO // 10**6)
        assert gaussian_true(scale, threshold - 1) <= 1e-6 < gaussian_true(scale, threshold - 2)


# The price


def test_laplace_noise_costs_its_epsilon_and_the_failure_of_the_threshold() -> None:
    release = release_of({"epsilon": "0.7", "delta": "1e-6"}, "replace_one", 3)
    noise = discrete_laplace_loss(7 * PICO // 10, (Fraction(6),))
    assert release.loss.replace(delta=0, failure=0) == noise
    assert 0 < release.loss.failure <= 10**12
    assert release.loss.delta == release.loss.failure


def test_gaussian_noise_pays_its_half_of_delta_in_the_promise_and_never_in_the_curve() -> None:
    release = release_of({"epsilon": "1", "delta": "1e-6"}, noise="gaussian")
    assert release.loss.failure <= 10**12 // 2
    assert release.loss.delta == 10**12 // 2 + release.loss.failure
    assert release.loss.pure == INFINITE
    rho = 1 / (2 * Fraction(release.scale) ** 2)
    assert release.loss.curve == tuple(math.ceil(rho * order * PICO) for order in ORDERS)


@pytest.mark.parametrize(
    ("privacy", "noise", "able"),
    [
        ({"epsilon": "1", "delta": "1e-6"}, "laplace", "approximate zcdp renyi gdp"),
        ({"rho": "0.1", "delta": "1e-6"}, "laplace", "approximate zcdp renyi gdp"),
        ({"epsilon": "1", "delta": "1e-6"}, "gaussian", "approximate zcdp renyi"),
        ({"rho": "0.1", "delta": "1e-6"}, "gaussian", "zcdp renyi"),
        ({"half_width": 20, "delta": "1e-6"}, "gaussian", "zcdp renyi"),
    ],
)
def test_every_currency_except_pure_can_pay(privacy: dict[str, Any], noise: str, able: str) -> None:
    loss = release_of(privacy, noise=noise).loss
    can = [name for name, rule in COMPOSITION_RULES.items() if rule.can_pay(rule.read(loss))]
    assert " ".join(can) == able


def test_a_release_without_a_promise_reports_its_failure_beside_its_rho() -> None:
    shown = release_of({"rho": "0.1", "delta": "1e-6"}, noise="gaussian").loss.to_json()
    assert shown["epsilon"] is None
    assert 0 < float(shown["delta"] or 0) <= 1e-6
    assert float(shown["rho"] or 0) == pytest.approx(0.1, rel=1e-9)


def test_the_default_noise_is_the_one_that_releases_smaller_counts() -> None:
    made = card(COLUMNS)
    for privacy, kind in (
        ({"epsilon": "1", "delta": "1e-6"}, "laplace"),
        ({"rho": "0.005", "delta": "1e-9"}, "gaussian"),
    ):
        question = key_question(privacy)
        plan = make_plan(question, made, frozenset({"renyi"}))
        assert plan.mechanism["noise"] == kind
        both = options(question, made, frozenset({"renyi"}))
        assert [each.release.describe()["noise"] for each in both] == ["laplace", "gaussian"]
        assert plan.release.standard_deviations == min(
            each.release.standard_deviations for each in both
        )


REFUSED: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "no delta": ({"epsilon": 1}, None, "/privacy/delta"),
    "no delta with a rho": ({"rho": 1}, None, "/privacy/delta"),
    "no delta with a width": ({"half_width": 10}, None, "/privacy/delta"),
    "half a person": ({"half_width": 0.5, "delta": "1e-6"}, None, "/privacy"),
    "no noise at all": ({"epsilon": 100000, "delta": "1e-6"}, "laplace", "/privacy/epsilon"),
    "too much noise": ({"epsilon": "1e-12", "delta": "1e-6"}, None, "/privacy/epsilon"),
    "a delta that cannot be shared": ({"epsilon": 1, "delta": "1e-18"}, "gaussian", "/privacy"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_unsupported_question_names_its_field(what: str) -> None:
    privacy, noise, pointer = REFUSED[what]
    mechanism = {"kind": "stability_histogram", **({"noise": noise} if noise else {})}
    made = card(COLUMNS, rows_max=100_000) if what == "too much noise" else card(COLUMNS)
    with pytest.raises(Invalid) as refused:
        make_plan(key_question(privacy, mechanism=mechanism), made)
    assert refused.value.fields[0].pointer == pointer


@pytest.mark.parametrize("delta", ["1e-18", "0.5", "0.9999999999999999999"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [1, 1000])
def test_deltas_at_both_ends_of_their_range_are_priced(delta: str, noise: str, rows: int) -> None:
    if (delta, noise) == ("1e-18", "gaussian"):
        delta = "2e-18"
    release = release_of({"epsilon": "1", "delta": delta}, rows=rows, noise=noise)
    assert release.threshold > rows
    assert 0 < release.loss.delta <= ATTO


# Intervals and half-widths


def batch(counts: list[int]) -> KeyBatch:
    return [(0, f"k{i:06}", count) for i, count in enumerate(counts)]


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("confidence", [0.95, 0.7])
def test_released_counts_are_in_their_intervals_for_every_key(
    noise: str, confidence: float
) -> None:
    """Keys far below, around and above the threshold are tested separately.

    Given that a key is released, its interval holds with the confidence. False alarms: 1e-6 for
    each, by Hoeffding.
    """
    release = release_of({"epsilon": "0.5", "delta": "0.05"}, noise=noise)
    width = width_above(release.noise, release.scale, 1 - confidence)
    bar = release.threshold
    size = 15_000
    for count in (1, max(1, bar - width), bar - 1, bar, bar + width // 2, bar + 2 * width):
        counts = batch([count] * size)
        keys = sorted(release.released(counts, NOISE))
        released = release.shown_keys(keys, confidence)
        held = sum(
            each["interval"]["low"] <= count <= each["interval"]["high"] for each in released
        )
        margin = math.sqrt(len(released) * math.log(1e6) / 2)
        assert len(released) > 100
        assert held >= confidence * len(released) - margin


def test_an_interval_near_the_threshold_extends_down_to_one() -> None:
    release = release_of({"epsilon": "1", "delta": "1e-6"})
    width = width_above("laplace", release.scale, 0.05)
    assert width == math.ceil(math.log(40))
    items = release.shown_keys([(0, "a", 15), (0, "b", 15 + width), (0, "c", 500)], 0.95)
    ends = [(each["interval"]["low"], each["interval"]["high"]) for each in items]
    assert ends == [(1, 15 + width), (15, 15 + 2 * width), (500 - width, 500 + width)]
    assert [each["group"] for each in items] == [{"note": "a"}, {"note": "b"}, {"note": "c"}]


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 50.0])
def test_gaussian_widths_are_wide_enough(scale: float) -> None:
    """P(Z > w) <= (alpha / 2) P(Z > 0), exactly."""
    for alpha in (0.5, 0.05, 1e-6):
        width = width_above("gaussian", scale, alpha)
        assert gaussian_true(scale, width + 1) <= alpha / 2 * gaussian_true(scale, 1)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_preview_shows_the_count_from_which_keys_are_released(noise: str) -> None:
    """False alarms 1e-6, by Hoeffding."""
    release = release_of({"epsilon": "1", "delta": "1e-6"}, rows=2, noise=noise)
    error = release.expected_error(0.95).details
    assert error["threshold"] == release.threshold < error["told_from"]
    size = 20_000
    kept = list(release.released(batch([error["told_from"]] * size), NOISE))
    assert len(kept) >= 0.95 * size - math.sqrt(size * math.log(1e6) / 2)
    fewer = list(release.released(batch([release.threshold - 2] * size), NOISE))
    assert len(fewer) < 0.5 * size


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_half_width_is_kept_at_the_least_price_and_wider_is_cheaper(noise: str) -> None:
    prices = []
    for wide in (5, 10, 100):
        release = release_of({"half_width": wide, "delta": "1e-6"}, "replace_one", 2, noise)
        assert promised_width(release, 0.95) <= wide
        assert width_above(release.noise, release.scale * 1.01, 0.05) >= wide
        prices.append(release.loss.rho)
    assert prices == sorted(prices, reverse=True)
    assert prices[0] > prices[-1]


def test_an_answer_holds_the_first_keys_in_order_for_all_batches() -> None:
    release = release_of({"epsilon": "1", "delta": "1e-6"})
    texts = ["ß", "a", "Z", "😀", "z", "é"]
    big = [(0, text, 10_000) for text in texts]
    answer = release.answer(
        iter([big[:2], [], big[2:]]),
        NOISE,
        query=key_question({"rho": 1}).query,
        card=card(),
        confidence=0.95,
    )
    assert answer["interval"] is None
    assert [each["group"]["note"] for each in answer["value"]] == sorted(texts)
    assert release.answer(
        iter([]), NOISE, query=key_question({"rho": 1}).query, card=card(), confidence=0.95
    ) == {"value": [], "interval": None}
