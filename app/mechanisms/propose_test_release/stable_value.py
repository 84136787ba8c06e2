"""Stable values: the exact outcome of a vote, or nothing, by a noisy test of its stability.

The winners are the k outcomes of the highest scores; a tie goes to the one listed first. With
scores of range R (`queries/shapes/selection.py`) one person moves two scores by at most R against
each other. Let g be the score of the worst winner less that of the best loser. If winners are
released in order, g is the least of this and of the steps from each winner to the next. Then

    d = max(0, ceil(g / R) - 1).

Proof of the conditions in `distance_test.py`, where *safe* neighbours have the same winners: g is a
maximum, over choices of winners, of least differences of two scores. Each difference moves by at
most R; so g moves by at most R, ceil(g / R) by 1, and d by 1. If d >= 1 then g > R, and after a
change of one person all differences that made g are still positive: the winners are the same. So
where they differ, d = 0 on both sides. Safe neighbours release the same winners, with no loss: the
release is (epsilon, f)-private for every k.

For counts and one row per person, d is the number of rows to change before two outcomes tie, less
one: g - 1 if rows are added or removed, ceil(g / 2) - 1 if they are replaced.

If all outcomes win, as a set, every table has the same winners: the distance is the cap of the
test.
"""

import math
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise
from typing import Any

from typing_extensions import override

from app.accounting.loss import Loss
from app.accounting.units import ATTO, cost_units
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget, UnsupportedShape
from app.mechanisms.propose_test_release import distance_test
from app.mechanisms.propose_test_release.distance_test import DistanceTest
from app.mechanisms.propose_test_release.padding import (
    NUMBER_SIZE,
    padded_answer,
    padded_withheld,
    text_size,
)
from app.mechanisms.release import OneTally, RandomSource
from app.queries import Query
from app.queries.shapes.selection import SelectionShape
from app.queries.tally import Exact, Tally

KIND = "stable_value"
THEOREM = "Smith and Thakurta 2013 (distance to instability)"


@dataclass(frozen=True, slots=True)
class StableRelease(OneTally):
    shape: SelectionShape
    ordered: bool
    test: DistanceTest
    size: int  # size of an answer, in bytes

    @property
    @override
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    @override
    def is_instant(self) -> bool:
        return True

    @property
    def loss(self) -> Loss:
        return self.test.alone

    @property
    def theorem(self) -> str:
        return THEOREM

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """Infinite: the answer may be withheld, so the planner cannot compare it."""
        return (math.inf,)

    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        scores = self.shape.scores(exact, 0)
        places = winners(scores, self.shape.picks or 1)
        distance = stability(scores, places, self.shape.score_range, ordered=self.ordered)
        passed = self.test.passed(self.test.enough if distance is None else distance, noise)
        shown = [self.shape.outcomes[i] for i in (places if self.ordered else sorted(places))]
        if not passed:
            return padded_withheld(self.size)
        return padded_answer(shown if self.shape.picks is not None else shown[0], None, self.size)

    def describe(self) -> dict[str, Any]:
        choices = {} if self.shape.picks is None else {"choices": self.shape.picks}
        return {
            "kind": KIND,
            "outcomes": len(self.shape.outcomes),
            "score_range": float(self.shape.score_range / self.shape.steps),
            "ordered": self.ordered,
            **choices,
            "test_scale": self.test.scale,
            "threshold": self.test.threshold,
            "failure": self.test.failure / ATTO,
        }

    def ledger_entry(self) -> dict[str, Any]:
        return {
            "mechanism": KIND,
            "outcomes": len(self.shape.outcomes),
            "score_range": str(self.shape.score_range),
            "choices": self.shape.picks or 1,
            "ordered": self.ordered,
            "test_scale": self.test.scale.hex(),
            "threshold": str(self.test.threshold),
        }

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        """Lead that is released with this probability: from it on, g > R times the distance."""
        lead = self.test.likely_from(confidence) * self.shape.score_range + 1
        details = {"told_from": float(lead / self.shape.steps)}
        return ExpectedError(0, "score", withholds=True, details=details)


def _size(shape: SelectionShape) -> int:
    """Size of an answer with the longest possible outcomes."""
    sizes = (
        text_size(outcome) if isinstance(outcome, str) else NUMBER_SIZE
        for outcome in shape.outcomes
    )
    value = sum(size + 1 for size in nlargest(shape.picks or 1, sizes))
    return value + text_size({"status": "withheld", "value": None, "interval": None})


def winners(scores: list[int], picks: int) -> list[int]:
    """Indices of the winners, best first."""
    return sorted(range(len(scores)), key=lambda index: (-scores[index], index))[:picks]


def stability(
    scores: list[int], places: list[int], score_range: int, *, ordered: bool
) -> int | None:
    """Distance d; None if nothing could change the winners."""
    won = set(places)
    best = max((score for index, score in enumerate(scores) if index not in won), default=None)
    leads = [] if best is None else [scores[places[-1]] - best]
    if ordered:
        leads += [scores[a] - scores[b] for a, b in pairwise(places)]
    return max(0, -(-min(leads) // score_range) - 1) if leads else None


def prepare(shape: SelectionShape, target: PrivacyTarget) -> StableRelease:
    if target.ordered is None:
        raise UnsupportedShape("it may withhold the answer, so the query must name it")
    if shape.error != "regret":
        raise UnsupportedShape("it serves highest scores: use a mode, top_k or price query")
    if target.half_width is not None:
        raise CannotServe("the answer is exact or withheld, so it has no half width")
    if target.delta is None:
        raise Invalid.field("/privacy/delta", "required: a test that may fail costs a delta")
    if target.ordered and shape.picks is None:
        raise Invalid.field(
            "/mechanism/ordered", "allowed only for top_k, which has several outcomes"
        )
    test_target = PrivacyTarget(epsilon=target.epsilon, rho=target.rho)
    test = distance_test.prepare(test_target, cost_units(target.delta, ATTO))
    return StableRelease(shape, target.ordered, test, _size(shape))
