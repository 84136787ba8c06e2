"""units.json: the price of every mechanism, in integer units and in each currency.

A refused question is recorded by the pointers of its problem, not by its text.
"""

from collections.abc import Iterator
from typing import Any

from tests.golden import queries
from tests.golden.cards import CARDS
from tests.golden.served import reach
from tests.golden.text import digest, lines

Json = dict[str, Any]
EPSILONS = ("0.01", "0.1", "0.5", "1", "3", "10")
DELTA: Json = {"delta": "1e-6"}
PURE = ("laplace", "permute_and_flip", "exponential", "noisy_max", "randomized_response")
OTHER_TERMS: list[Json] = [
    {"rho": "0.005"},
    {"rho": "0.5", **DELTA},
    {"half_width": "5"},
    {"half_width": "60", **DELTA},
    {"half_width": "60", "confidence": 0.9},
]
SHORT = [{"epsilon": "0.5"}, {"epsilon": "3", **DELTA}, {"rho": "0.5", **DELTA}]
SHOWN_ORDERS = ("1.25", "2", "10", "128", "1024")

SUMS = (
    *("count", "count by city and member", "sum", "sum by member", "mean", "mean by city"),
    *("variance", "ratio", "ratio of sums", "reciprocal", "aggregates", "workload", "cdf"),
    *("workload of ranges", "linear regression", "prediction variance", "mean of blocks"),
    *("persons", "persons by city", "sum per person", "sum per person by city"),
)
CHOICES = ("mode", "top 2", "median", "min", "price", "median of blocks")
NOISES: list[Json] = [
    {},
    {"noise": "student_t", "degrees": 2, "beta": 0.1},
    {"noise": "cauchy", "gamma": 4},
    {"noise": "laplace"},
    {"noise": "gaussian"},
    {"noise": "laplace_log_normal", "sigma": 0.5},
    {"noise": "uniform_log_normal"},
    {"noise": "arsinh_normal"},
    {"interval_epsilon": "0.05"},
]
DESCENTS: list[Json] = [
    {"steps": 20},
    {"steps": 30, "sampling_rate": 0.05, "clipping_norm": 0.5},
    {"learning_rate": 0.5, "expected_rows": 200},
]
PROPOSALS: list[Json] = [
    {"bound": 25.5},
    {"bound": 25.5, "noise": "gaussian", "test_share": 0.3},
    {},
]
# For each mechanism its parameters and the questions to price.
USES: dict[str, tuple[list[Json], dict[str, Json]]] = {
    "laplace": ([{}], {name: queries.SUMS[name] for name in SUMS}),
    "gaussian": ([{}], {name: queries.SUMS[name] for name in SUMS}),
    "permute_and_flip": ([{}], {name: queries.CHOICES[name] for name in CHOICES}),
    "exponential": ([{}], {name: queries.CHOICES[name] for name in CHOICES}),
    "noisy_max": (
        [{"noise": noise} for noise in ("exponential", "laplace", "gumbel")],
        {name: queries.CHOICES[name] for name in CHOICES[:2]},
    ),
    "randomized_response": ([{}], queries.REPORTED),
    "noisy_gradient_descent": (DESCENTS, queries.LEARNED),
    "stability_histogram": (
        [{}, {"noise": "laplace"}, {"noise": "gaussian"}],
        queries.KEYS,
    ),
    "partition_selection": ([{}], {"keys": {"kind": "keys", "column": "note"}}),
    "propose_test_release": (PROPOSALS, {**queries.RANKS, "mean": queries.SUMS["mean"]}),
    "stable_value": ([{}, {"ordered": True}], {n: queries.CHOICES[n] for n in ("mode", "top 2")}),
    "smooth_sensitivity": (
        NOISES,
        {n: queries.RANKS[n] for n in ("median", "iqr", "trimmed mean")} | queries.GRAPHS,
    ),
    "noisy_bound": ([{}, {"bound_share": 0.3}], queries.GRAPHS),
}


def units() -> str:
    assert set(USES) == set(reach.MECHANISM_KINDS), "every mechanism must be priced here"
    losses: dict[str, Json] = {}
    items = {name: item for kind in USES for name, item in _of_mechanism(kind, losses)}
    return lines({f"loss {name}": loss for name, loss in losses.items()} | items)


def _of_mechanism(kind: str, losses: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    parameters, asked = USES[kind]
    for more in parameters:
        named = " ".join([kind, *(f"{name}={value}" for name, value in more.items())])
        for title, query in asked.items():
            for card, privacy in _asked_of(query, kind):
                terms = " ".join(f"{name}={value}" for name, value in privacy.items())
                body = {
                    "dataset": card,
                    "query": query,
                    "privacy": privacy,
                    "mechanism": {"kind": kind, **more},
                }
                yield f"{named}, {title}, {card}, {terms}", _priced(body, losses)


def _asked_of(query: Json, kind: str) -> Iterator[tuple[str, Json]]:
    """The whole grid on one card, and a few of its points on the others."""
    first, *others = ["people", "fixed", "visits", "fixed_visits"]
    if query["kind"] == "triangles":
        first, others = "graph", []
    if kind == "randomized_response":
        first, others = "fixed", ["people"]
    delta = {} if kind in PURE else DELTA
    grid: list[Json] = [{"epsilon": epsilon, **delta} for epsilon in EPSILONS]
    without = {"epsilon": "1"} if delta else {"epsilon": "1", **DELTA}
    yield from ((first, privacy) for privacy in [*grid, without, *OTHER_TERMS])
    yield from ((card, privacy) for card in others for privacy in SHORT)


def _priced(body: Json, losses: dict[str, Json]) -> Json:
    """A line for the question, and the loss that it shares with others."""
    try:
        plan = reach.planned(body, reach.card_of(CARDS[body["dataset"]]))
    except reach.Refused as refused:
        return {"refused": refused.pointers}
    loss = _loss(plan)
    number = digest(loss)[:8]
    assert losses.setdefault(number, loss) == loss, "digests differ"
    noise = reach.noise_of(plan)
    if len(str(noise)) > 500:
        noise = {"kind": noise["kind"], "digest": digest(noise)}
    theorem, entry = digest(reach.theorem_of(plan)), digest(reach.ledger_record(plan))
    return {"": {"loss": number, "theorem": theorem[:8], "entry": entry[:8], "noise": noise}}


def _loss(plan: reach.Plan) -> Json:
    loss, charged = reach.units_of(plan), reach.charged(plan)
    curve = loss.pop("renyi_pico")
    shown = {order: _shown(curve[reach.RENYI_ORDERS.index(order)]) for order in SHOWN_ORDERS}
    return {
        "loss": {name: _shown(number) for name, number in loss.items() if number},
        "renyi": {**shown, "digest": digest(curve)},
        "charged": {currency: _few(spend) for currency, spend in charged.items()},
    }


def _shown(units: int) -> int | None:
    return None if units == reach.NO_BOUND else units


def _few(spend: list[int] | None) -> list[int | None] | None:
    """Both ends of a curve: the digest covers all of it."""
    if spend is None:
        return None
    return [_shown(units) for units in (spend if len(spend) < 4 else [*spend[:3], spend[-1]])]
