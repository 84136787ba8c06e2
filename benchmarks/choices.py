"""Time of a choice among 100,000 candidates, the most allowed: plan and draw, without an engine.

The ceiling is the allowed tenth of a second. Scores are those of a median of 100,000 rows, one at
each candidate: near the middle many are about as good, and the others are far below.
"""

import time
from collections.abc import Iterator
from typing import Any

from app.data.card import Card
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Question
from app.queries.candidates import CANDIDATES_MAX
from benchmarks.harness.table import Row

COUNT = CANDIDATES_MAX
LIMIT_MS = 100.0
TRIES = 5
KINDS: list[dict[str, Any]] = [
    {"kind": "permute_and_flip"},
    {"kind": "exponential"},
    {"kind": "noisy_max", "noise": "laplace"},
]


def measure() -> Iterator[Row]:
    card = Card.model_validate(
        {
            "person": {"kind": "row"},
            "neighbours": "add_remove",
            "columns": [{"name": "x", "type": "integer", "low": 0, "high": COUNT - 1}],
        }
    )
    grid = {"low": 0, "high": COUNT - 1, "count": COUNT}
    query = {"kind": "median", "column": "x", "candidates": grid}
    noise = SystemRandom()
    exact = (tuple([1] * COUNT),)
    for mechanism in KINDS:
        body = {"dataset": "x", "query": query, "privacy": {"epsilon": "0.1"}}
        times = []
        for _ in range(TRIES):
            started = time.perf_counter()
            plan = make_plan(Question.model_validate({**body, "mechanism": mechanism}), card)
            plan.answer(exact, noise)
            times.append(1000 * (time.perf_counter() - started))
        typical = sorted(times)[TRIES // 2]
        name = f"a choice among 100,000, {mechanism['kind']}"
        yield Row(name, typical, "ms", LIMIT_MS, typical / LIMIT_MS, 1.0, at_most=True)
