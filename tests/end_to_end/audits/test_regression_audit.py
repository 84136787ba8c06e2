"""A black-box audit of gradient descent over HTTP.

Answers about neighbouring tables prove no more loss than was charged. One step runs on tables of
two rows and of three. The gradient of the third row is clipped to the norm. The event is a half
line of the sum of the weights. The first half of the answers chooses it, and the second half counts
it. Clopper and Pearson bound both probabilities, each wrong with probability 5e-7. So a sound
server is accused with probability at most 2e-6 in both directions together.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.audit import cases, runs
from tests.conftest import Counts, Template
from tests.mechanisms.noise.noise_law import lower_chance, upper_chance
from tests.server import Json, World, ask, made, new_key

pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]

RUNS = runs(800)
ERROR = 5e-7
DELTA = 1e-6
EPSILON = 1.0
CARD: Json = {
    "columns": [
        {"name": "age", "type": "integer", "low": 0, "high": 120},
        {"name": "smoker", "type": "boolean"},
    ]
}
ROWS: list[list[object]] = [[30, "true"], [60, "false"]]
MECHANISMS: dict[str, Json] = {
    "all rows": {"steps": 1},
    "samples": {"steps": 1, "sampling_rate": 0.5},
    "the number of rows released": {"steps": 1, "expected_rows": None},
}
TEN_TIMES_LESS_NOISE = """
from app.mechanisms.sampling import system as sampling
drawn = sampling.SystemRandom.discrete_gaussian
sampling.SystemRandom.discrete_gaussian = lambda self, scale, size: drawn(self, scale / 10, size)
"""


def weights(answer: Json) -> float:
    """Sum of the weights in standardized units, which is the direction of the third row's
    gradient.
    """
    intercept, age = (item["value"] for item in answer["value"]["coefficients"])
    return float(intercept + 60.0 * age + 60.0 * age)


def answers(world: World, rows: list[list[object]], mechanism: Json) -> list[float]:
    person = world.person()
    dataset = world.dataset(world.write_csv(rows, ["age", "smoker"]), **CARD)
    grant = {"currency": "approximate", "epsilon": 1_000_000, "delta": "0.5"}
    for holder in ("*", person.name):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=grant))
    descent = {
        "kind": "noisy_gradient_descent",
        "clipping_norm": 0.1,
        "learning_rate": 1.0,
        "expected_rows": 3,
        **mechanism,
    }
    question = {
        "dataset": dataset,
        "query": {"kind": "logistic_regression", "outcome": "smoker", "features": ["age"]},
        "privacy": {"epsilon": EPSILON, "delta": DELTA},
        "mechanism": {name: value for name, value in descent.items() if value is not None},
        "fresh": True,
    }

    def some(count: int) -> list[float]:
        client = world.client(person)
        sums = []
        for _ in range(count):
            answer = made(ask(client, question, new_key()))
            assert (answer["charged"]["epsilon"], answer["charged"]["delta"]) == (EPSILON, DELTA)
            sums.append(weights(answer))
        return sums

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(some, [RUNS // 4] * 4))
    return [value for part in parts for value in part]


def loss_at_least(first: list[float], second: list[float]) -> float:
    """A lower bound on epsilon at this delta, over half lines, in both directions."""
    half, loss = RUNS // 2, 0.0
    for one, other in ((first, second), (second, first)):
        best, chosen = -math.inf, (0.0, 1)
        for threshold in sorted({*one[:half], *other[:half]}):
            for sign in (1, -1):
                a = sum(sign * value >= sign * threshold for value in one[:half])
                b = sum(sign * value >= sign * threshold for value in other[:half])
                ratio = math.log((a + 0.1) / (b + 15.0))  # rare events prove little
                if ratio > best:
                    best, chosen = ratio, (threshold, sign)
        threshold, sign = chosen
        a = sum(sign * value >= sign * threshold for value in one[half:])
        b = sum(sign * value >= sign * threshold for value in other[half:])
        low = lower_chance(RUNS - half, a, ERROR) - DELTA
        if low > 0.0:
            loss = max(loss, math.log(low / upper_chance(RUNS - half, b, ERROR)))
    return loss


@pytest.fixture
def embedded(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made_world = peopled("sqlite", tmp_path / "ledger")
    yield made_world
    made_world.ledger.stop()


@pytest.mark.parametrize("mechanism", cases(MECHANISMS, {"all rows"}))
def test_answers_about_neighbours_prove_no_more_loss_than_was_charged(
    embedded: World, mechanism: str, counts: Counts
) -> None:
    with_it = [*ROWS, [120, "true"]]
    first, second = (answers(embedded, rows, MECHANISMS[mechanism]) for rows in (ROWS, with_it))
    assert loss_at_least(first, second) <= EPSILON
    counts("answers audited over HTTP", 2 * RUNS)


@pytest.mark.saboteur
def test_saboteur_ten_times_less_noise_is_caught(embedded: World, counts: Counts) -> None:
    """The audit misses it with probability below 1e-6: the answers are two deviations apart."""
    embedded.serve(sabotage=TEN_TIMES_LESS_NOISE)
    with_it = [*ROWS, [120, "true"]]
    first, second = (answers(embedded, rows, MECHANISMS["all rows"]) for rows in (ROWS, with_it))
    assert loss_at_least(first, second) > EPSILON
    counts("answers of saboteurs", 2 * RUNS)
