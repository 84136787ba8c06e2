"""A timing attack: ask about one row, alone or in bursts, and compare reply times.

Two tables differ by one row, the only one that the filter selects. The attacker measures reply
times and guesses which table was asked. AUC is the probability that a random time with the row
exceeds a random time without it. At 0.5 the times reveal nothing, at 1.0 they reveal everything.
"""

import asyncio
import itertools
import math
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any, TypeVar

import httpx

from tests.end_to_end.time.questions import (
    COLUMNS,
    FIXED_ROWS,
    HEADER,
    Json,
    Row,
    large_workload,
    people,
    questions,
)
from tests.server import Person, World, card, made, new_key

T = TypeVar("T")
ONE = 77_777
THE_ROW: Row = (ONE, 30, 12_345.5, "north", True, "w1")
ANOTHER_ROW: Row = (ONE + 1, 90, 199_999.5, "south", False, "w2")
ROWS = 1000
AUC_MAX = 0.6
FALSE_ALARM = 1e-4
EXACT_MAX = 40
_numbers = itertools.count(1)


def auc(ones: list[float], others: list[float]) -> float:
    """Share of pairs in which the first time is larger; ties count half."""
    won = sum((one > other) + 0.5 * (one == other) for one in ones for other in others)
    return won / (len(ones) * len(others))


def is_seen(measured: float, samples: int) -> bool:
    """True if an AUC of this many samples a side reveals the row.

    It must differ from one half by more than AUC_MAX allows, in either direction. For few samples
    it must also be improbable by chance: FALSE_ALARM bounds the false alarms of each comparison.
    """
    away = abs(measured - 0.5)
    return away > AUC_MAX - 0.5 and by_chance(away, samples) <= FALSE_ALARM


@cache
def by_chance(away: float, samples: int) -> float:
    """Probability that the AUC of two equal distributions is at least this far from one half.

    It counts all orders (Mann and Whitney 1947), or uses the normal law for many samples.
    """
    if samples > EXACT_MAX:
        deviation = math.sqrt((2 * samples + 1) / (12 * samples * samples))
        return 2 * NormalDist().cdf(-away / deviation)
    counts = _orders(samples)
    total = math.comb(2 * samples, samples)
    least = (0.5 + away) * samples * samples - 1e-9
    return min(1.0, 2 * sum(counts[u] for u in range(math.ceil(least), len(counts))) / total)


def _orders(samples: int) -> list[int]:
    """Number of orders of twice this many samples for each number of won pairs.

    These are the coefficients of the Gaussian binomial.
    """
    counts = [1] + [0] * (samples * samples)
    for k in range(1, samples + 1):
        for u in range(len(counts) - 1, samples + k - 1, -1):
            counts[u] -= counts[u - samples - k]
        for u in range(k, len(counts)):
            counts[u] += counts[u - k]
    return counts


def only_one_row() -> Json:
    """A filter that selects only the row in question and was never used before."""
    never_asked = {"column": "income", "op": ">=", "value": -next(_numbers) / 1000}
    return {"all": [{"column": "id", "op": "==", "value": ONE}, never_asked]}


@dataclass(frozen=True)
class Target:
    """A server with two pairs of tables, and an analyst with an unlimited budget for them.

    The tables of a pair differ by one row: in the first pair it is there or not, in the second
    (`replace_one`, where the number of rows is public) another row stands in its place.
    """

    world: World
    analyst: Person
    added: tuple[str, str]
    replaced: tuple[str, str]

    @property
    def with_row(self) -> str:
        return self.added[0]

    def tables(self, kind: str) -> tuple[str, str]:
        """The table with the row and the one without it that this kind of question can be asked."""
        return self.replaced if kind in FIXED_ROWS else self.added


def target(world: World) -> Target:
    analyst = world.person()

    def register(contents: list[Row], **public: Any) -> str:
        path = world.write_csv(contents, HEADER)
        body = {**card(path), "columns": COLUMNS, "size": ROWS, **public}
        made(world.admin.post("/v1/datasets", json=body))
        for holder in ("*", analyst.name):
            budget = {"currency": "renyi", "epsilon": 1_000_000, "delta": 0.01}
            made(world.admin.put(f"/v1/datasets/{body['name']}/budgets/{holder}", json=budget))
        return str(body["name"])

    # One row less: the same rows under another neighbouring relation would be refused.
    fixed = {"neighbours": "replace_one", "rows": ROWS}
    return Target(
        world,
        analyst,
        added=(register([*people(ROWS), THE_ROW]), register(people(ROWS))),
        replaced=(
            register([*people(ROWS - 1), THE_ROW], **fixed),
            register([*people(ROWS - 1), ANOTHER_ROW], **fixed),
        ),
    )


def nobody() -> Json:
    """A filter that selects no row of either table and was never used before."""
    never_asked = {"column": "income", "op": ">=", "value": -next(_numbers) / 1000}
    return {"all": [{"column": "id", "op": "==", "value": 0}, never_asked]}


def fresh_question(kind: str, dataset: str, where: Json | None = None) -> Json:
    where = only_one_row() if where is None else where
    body = large_workload(where) if kind == "large workload" else questions(where)[kind]
    return {**body, "dataset": dataset, "fresh": True}


def alone(attacked: Target, kind: str, samples: int) -> float:
    """AUC of single questions that alternate between the tables."""
    client = attacked.world.client(attacked.analyst)
    tables = attacked.tables(kind)
    times: dict[str, list[float]] = {name: [] for name in tables}
    for number in range(samples + 2):
        for name in shuffled(tables):
            question = fresh_question(kind, name)
            begin = time.perf_counter()
            made(client.post("/v1/queries", json=question, headers={"Idempotency-Key": new_key()}))
            if number >= 2:  # the first ones open files and load modules
                times[name].append(time.perf_counter() - begin)
    return auc(*(times[name] for name in tables))


def bursts(attacked: Target, kind: str, samples: int, size: int) -> tuple[float, float]:
    """AUC of the mean and of the last finishing time of bursts."""
    tables = attacked.tables(kind)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in tables}
    for number in range(samples + 1):
        for name in shuffled(tables):
            measured = asyncio.run(
                _burst(attacked, [fresh_question(kind, name) for _ in range(size)])
            )
            if number >= 1:
                times[name].append((sum(measured) / size, max(measured)))
    return _mean_and_last(*(times[name] for name in tables))


def behind(attacked: Target, kind: str, samples: int, size: int) -> tuple[float, float]:
    """AUC of questions about nobody, queued behind as many about the row as there are lanes.

    It shows whether the work on the row delays the questions behind it.
    """
    tables = attacked.tables(kind)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in tables}
    lanes = os.cpu_count() or 1
    for number in range(samples + 1):
        for name in shuffled(tables):
            about_the_row = [fresh_question(kind, name) for _ in range(lanes)]
            others = [fresh_question(kind, name, nobody()) for _ in range(size)]
            measured = asyncio.run(_burst(attacked, about_the_row + others))[lanes:]
            if number >= 1:
                times[name].append((sum(measured) / size, max(measured)))
    return _mean_and_last(*(times[name] for name in tables))


def _mean_and_last(
    with_row: list[tuple[float, float]], without_row: list[tuple[float, float]]
) -> tuple[float, float]:
    mean, last = (
        auc([time[figure] for time in with_row], [time[figure] for time in without_row])
        for figure in (0, 1)
    )
    return mean, last


async def _burst(attacked: Target, bodies: list[Json]) -> list[float]:
    limits = httpx.Limits(max_connections=len(bodies))
    headers = {"Authorization": f"Bearer {attacked.analyst.key}"}
    async with httpx.AsyncClient(
        base_url=attacked.world.server.url, headers=headers, limits=limits, timeout=120
    ) as client:
        await asyncio.gather(*(client.get("/healthz") for _ in bodies))  # connect first

        async def one(body: Json) -> float:
            begin = time.perf_counter()
            key = {"Idempotency-Key": new_key()}
            made(await client.post("/v1/queries", json=body, headers=key))
            return time.perf_counter() - begin

        return list(await asyncio.gather(*map(one, bodies)))


def pairs(samples: int, first: Callable[[], Any], second: Callable[[], Any]) -> float:
    """AUC of two actions that should take the same time, measured in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(samples):
        for measured, action in shuffled(((times[0], first), (times[1], second))):
            begin = time.perf_counter()
            action()
            measured.append(time.perf_counter() - begin)
    return auc(*times)


def shuffled(two: tuple[T, T]) -> tuple[T, T]:
    """The items in random order.

    With a fixed order, periodic work of the server could coincide with every second question and
    look like a row.
    """
    return two if secrets.randbits(1) else (two[1], two[0])
