"""Lower bounds on the loss of a question, from answers of a server about two tables."""

import json
import math
from collections.abc import Callable

from tests.audit import runs
from tests.crowd import answers
from tests.end_to_end.audits.audit_case import Case, Rows
from tests.end_to_end.audits.audited_questions import CASES
from tests.mechanisms.noise.noise_law import lower_chance, upper_chance
from tests.server import COLUMNS, HEADER, Json, Person, World, made

RUNS = runs(400)
CHOOSING = 100  # or a tenth of the answers, if there are more than a thousand
ASKERS = 32
FALSE_ALARM = 1e-6
# of an event's two probabilities, the larger one first
Divergence = Callable[[float, float], float]
ERROR = FALSE_ALARM / (4 * len(CASES))  # of each bound: two probabilities in two directions
HOUSEHOLD: Json = {"name": "household", "type": "integer", "low": 1, "high": 2}


class Tables:
    """Tables registered on a server, each once, with unlimited budgets."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.person: Person = world.person()
        self._names: dict[tuple[Rows, str], str] = {}

    def name(self, rows: Rows, neighbours: str) -> str:
        if (rows, neighbours) not in self._names:
            # One body of data has one relation, so the tables differ in a column that no question
            # uses.
            seen = "2021-01-01" if neighbours == "add_remove" else "2022-02-02"
            lines = [[*each[:4], seen, *(each[4:] or (1,))] for each in rows]
            path = self.world.write_csv(lines, [*HEADER, "household"])
            public = {"rows": len(rows)} if neighbours == "replace_one" else {}
            columns = [*COLUMNS, HOUSEHOLD]
            dataset = self.world.dataset(path, neighbours=neighbours, columns=columns, **public)
            budget = {"currency": "zcdp", "rho": 1_000_000, "delta": "1e-6"}
            for holder in ("*", self.person.name):
                place = f"/v1/datasets/{dataset}/budgets/{holder}"
                made(self.world.admin.put(place, json=budget))
            self._names[rows, neighbours] = dataset
        return self._names[rows, neighbours]

    def read(self, case: Case, rows: Rows, runs: int) -> tuple[list[float], Json]:
        question = {
            "dataset": self.name(rows, case.neighbours),
            "query": case.query,
            "privacy": case.privacy,
            "mechanism": case.mechanism,
        }
        found = answers(self.world.server, self.person.key, question, runs, askers=ASKERS)
        assert len(found) == len({answer["id"] for answer in found}) == runs
        assert len({json.dumps(answer["charged"]["cells"]) for answer in found}) == 1
        return [case.read(answer) for answer in found], found[0]


def loss_at_least(one: list[float], other: list[float], divergence: Divergence) -> float:
    """A lower bound on the loss, over the events {number >= t} and {number <= t}."""
    loss, choosing = 0.0, max(CHOOSING, len(one) // 10)
    for ones, others in ((one, other), (other, one)):
        threshold, sign = _best(ones[:choosing], others[:choosing], divergence)
        a, b = (_hits(numbers[choosing:], threshold, sign) for numbers in (ones, others))
        size = len(ones) - choosing
        low, high = lower_chance(size, a, ERROR), upper_chance(size, b, ERROR)
        loss = max(loss, divergence(low, high))
    return loss


def log_ratio(chance: float, other: float) -> float:
    return math.log(chance / other) if chance > other else 0.0


def kullback_leibler(chance: float, other: float) -> float:
    """The larger of both directions; it grows with the first probability and falls with the
    second.
    """
    if not chance > other:
        return 0.0
    pairs = ((chance, other), (other, chance))
    return max(
        a * math.log(a / b) + ((1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0)
        for a, b in pairs
    )


def _hits(numbers: list[float], threshold: float, sign: int) -> int:
    return sum(sign * each >= sign * threshold for each in numbers)


def _best(ones: list[float], others: list[float], divergence: Divergence) -> tuple[float, int]:
    """The event that would prove the most loss if its probabilities were a tenth less and more."""
    best, chosen = -math.inf, (0.0, 1)
    for threshold in sorted({*ones, *others}):
        for sign in (1, -1):
            a, b = (_hits(numbers, threshold, sign) / len(ones) for numbers in (ones, others))
            proof = divergence(max(a - 0.1, 0.0), min(b + 0.1, 1.0))
            if proof > best:
                best, chosen = proof, (threshold, sign)
    return chosen


def audited(tables: Tables, case: Case, runs: int = RUNS) -> tuple[float, float]:
    """The lower bound and the charge: both epsilon, or both rho."""
    (one, answer), (other, _) = (tables.read(case, rows, runs) for rows in (case.one, case.other))
    if case.by_rho:
        return loss_at_least(one, other, kullback_leibler), answer["charged"]["rho"]
    return loss_at_least(one, other, log_ratio), answer["charged"]["epsilon"]
