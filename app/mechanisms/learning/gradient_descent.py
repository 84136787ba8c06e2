"""Noisy gradient descent: weights of a regression, learned in steps that each see noisy sums only.

In every step the gradients of all rows, or of a Poisson sample of them, are clipped and added up in
whole numbers (`clipping.py`), discrete Gaussian noise goes on the sum, and the weights
move against it (Abadi et al. 2016; Bassily, Smith and Thakurta 2014). What a step does with the
noisy sum is post-processing: it is divided by a public number, never by how many rows there really
were; steps look ahead (Nesterov 1983) with a momentum that rises to MOMENTUM; the weights that are
told are the average over the second half of the steps, which evens out noise.

Sampling: each row is in a step's sample by a coin of its own, 32 bits of the system's generator
below `threshold`; the rate is threshold / 2^32, rounded up from what was asked, and it is priced.
The number of rows is public under replace_one, if there is no filter, or told by the analyst as
`expected_rows`; otherwise it is released with noise (`noise_schedule.py`), and counted as at least
so many that the noise of a step is no larger than the clipping norm.

Defaults are public: the clipping norm is the longest gradient of a logistic regression, so that
none is clipped, and the learning rate one over the largest curvature there can be.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from app.accounting.loss import Loss
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.learning.clipping import NORM, clipped_sum
from app.mechanisms.learning.noise_schedule import Moves, Price, full_batch, sampled
from app.mechanisms.privacy_target import Asked
from app.mechanisms.release import Data, Noise
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.shapes.learning import GradientShape, Weights
from app.queries.tally import Exact, Matrix, Records, Tally

KIND = "noisy_gradient_descent"
THEOREM = (
    "Canonne, Kamath and Steinke 2020, Theorem 4 (discrete Gaussian mechanism); "
    "Bun and Steinke 2016 (zCDP of adaptive steps)"
)
THEOREM_SAMPLED = (
    "Mironov, Talwar and Zhang 2019 (Poisson sampling), for discrete Gaussian noise; "
    "Mironov 2017 (Renyi divergence of adaptive steps)"
)
STEPS = 100
STEPS_MAX = 10_000
MOMENTUM = 0.95
WORK_MAX = 100_000_000_000  # steps times rows times terms, where the rows are public
COINS = 1 << 32
Reading = tuple[Exact | None, Iterable[Matrix], Callable[[int], None]]


def prepare(shape: GradientShape, asked: Asked) -> "GradientRelease":
    if shape.ridged:
        raise Invalid.field("/query/ridge", "0: gradient descent has none")
    wished = asked.descent
    steps = wished.steps or STEPS
    rows = wished.expected_rows or shape.rows
    if shape.rows is not None and steps * shape.rows * len(shape.inputs) > WORK_MAX:
        rule = f"steps times rows times terms is at most {WORK_MAX}"
        raise Invalid.field("/mechanism/steps", rule)
    threshold = math.ceil(Fraction(wished.sampling_rate or 1) * COINS)
    moves = Moves(steps, shape.moves, shape.rows_max if rows is None else None, shape.replaced)
    if threshold == COINS:
        price, theorem = full_batch(moves, asked), THEOREM
    elif shape.rows_max > 1:
        raise Invalid.field("/mechanism/sampling_rate", "only where each row is a person")
    else:
        price, theorem = sampled(moves, Fraction(threshold, COINS), asked), THEOREM_SAMPLED
    curvature = shape.longest**2 / (4.0 if shape.model == "logistic" else 1.0)
    return GradientRelease(
        shape=shape,
        price=price,
        steps=steps,
        clipping_norm=wished.clipping_norm or shape.longest,
        learning_rate=wished.learning_rate or 1.0 / curvature,
        threshold=threshold,
        rows=rows,
        theorem=theorem,
    )


@dataclass(frozen=True, slots=True)
class GradientRelease:
    """A descent that is ready to be charged and run. It is answered by `learn`, over rows."""

    shape: GradientShape
    price: Price
    steps: int
    clipping_norm: float
    learning_rate: float
    threshold: int  # of a row's coin
    rows: int | None  # the public number to divide by; None where it is released
    theorem: str

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def records(self) -> Records:
        return self.shape.records

    @property
    def quick(self) -> bool:
        return False

    @property
    def work(self) -> Work:
        return Work(
            scans=2,
            leaves=self.tally.leaves(),
            aggregates=len(self.records.columns),
            steps=self.steps,
            step_terms=len(self.shape.inputs),
        )

    @property
    def loss(self) -> Loss:
        return self.price.loss

    @property
    def spread(self) -> tuple[float, ...]:
        """Unknown: how far the weights are off depends on the data."""
        return (math.inf,)

    @property
    def noise_multiplier(self) -> float:
        return self.price.scale / NORM

    @property
    def sampling_rate(self) -> float:
        return self.threshold / COINS

    @property
    def groups(self) -> int | None:
        return self.tally.group_count()

    def warm(self, confidence: float) -> None:
        return None

    def read(self, data: Data) -> Reading:
        exact = data.exact(self.tally) if self.rows is None else None
        return exact, data.records(self.records), data.reached

    def answer(
        self, exact: Reading, noise: Noise, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        counted, rows, reached = exact
        return self.learn(counted, rows, noise, reached)

    def learn(
        self,
        exact: Exact | None,
        rows: Iterable[Matrix],
        noise: Noise,
        reached: Callable[[int], None],
    ) -> dict[str, Any]:
        """`exact` is the tally, needed only if the number of rows is to be released. `rows` is gone
        through once for each step; `reached` hears of each batch in which step it is, and may
        raise to end the run."""
        count = self._count(exact, noise)
        step_size = self.learning_rate * self.clipping_norm / (NORM * self.sampling_rate * count)
        weights = before = np.zeros(len(self.shape.inputs))
        average, averaged = np.zeros(len(weights)), self.steps - self.steps // 2
        for step in range(self.steps):
            ahead = min(step / (step + 3.0), MOMENTUM)
            point = weights + ahead * (weights - before)
            moved = step_size * self.noisy_sum(point, rows, noise, partial(reached, step))
            weights, before = point - moved, weights
            if step >= self.steps - averaged:
                average += weights / averaged
        reached(self.steps)
        return {"value": self._told(average, count), "interval": None}

    def noisy_sum(
        self, weights: Weights, rows: Iterable[Matrix], noise: Noise, reached: Callable[[], None]
    ) -> Weights:
        """One step's release, in steps of the grid."""
        total = [0] * len(self.shape.inputs)
        reached()
        for batch in self._one_at_least(rows):
            taken = batch if self.threshold == COINS else batch[self._coins(len(batch), noise)]
            found = clipped_sum(self.shape, weights, taken, self.clipping_norm)
            total = [have + new for have, new in zip(total, found, strict=True)]
            reached()
        drawn = noise.discrete_gaussian(self.price.scale, len(total))
        return np.array([float(have + z) for have, z in zip(total, drawn, strict=True)])

    def _one_at_least(self, rows: Iterable[Matrix]) -> Iterator[Matrix]:
        """The batches, or an empty one: a step over no rows takes as long as one over a few."""
        batch = None
        for batch in rows:
            yield batch
        if batch is None:
            yield np.empty((0, len(self.records.columns)), dtype=np.int64)

    def _coins(self, rows: int, noise: Noise) -> np.ndarray[Any, np.dtype[np.bool_]]:
        words = np.asarray(noise.words((rows + 1) // 2), dtype=np.uint64)
        return words.view(np.uint32)[:rows] < self.threshold

    def _count(self, exact: Exact | None, noise: Noise) -> int:
        if self.rows is not None:
            return self.rows
        if exact is None or self.price.count_scale is None:
            raise ValueError("the number of rows is needed")
        (drawn,) = noise.discrete_gaussian(self.price.count_scale, 1)
        return max(exact[0][0] + drawn, math.ceil(self.noise_multiplier / self.sampling_rate))

    def _told(self, weights: Weights, count: int) -> dict[str, Any]:
        coefficients = self.shape.in_own_units(weights)
        return {
            "coefficients": [
                {"term": term.label, "value": value, "standard_error": None, "interval": None}
                for term, value in zip(self.shape.inputs, coefficients, strict=True)
            ],
            "rows": count,
        }

    def describe(self) -> dict[str, Any]:
        sampling = None if self.threshold == COINS else self.sampling_rate
        return {
            "kind": KIND,
            "steps": self.steps,
            "clipping_norm": self.clipping_norm,
            "learning_rate": self.learning_rate,
            "momentum": MOMENTUM,
            "sampling_rate": sampling,
            "noise_multiplier": self.noise_multiplier,
            "grid": self.clipping_norm / NORM,
            "rows": self.rows,
            "rows_scale": self.price.count_scale,
            "noise_per_coordinate": None if self.rows is None else self._noise_per_coordinate(),
        }

    def _noise_per_coordinate(self) -> float:
        assert self.rows is not None
        return self.noise_multiplier * self.clipping_norm / (self.sampling_rate * self.rows)

    def record(self) -> dict[str, Any]:
        """For the ledger: from these any accountant can recompute the price."""
        return {
            "mechanism": KIND,
            "steps": self.steps,
            "norm": str(NORM),
            "moves": self.shape.moves,
            "scale": self.price.scale.hex(),
            "rate": str(Fraction(self.threshold, COINS)),
            "count": None
            if self.price.count_scale is None
            else {"sensitivity": self.shape.rows_max, "scale": self.price.count_scale.hex()},
            "clipping_norm": self.clipping_norm.hex(),
        }

    def expected_error(self, confidence: float) -> dict[str, Any]:
        return {"half_width": None, "confidence": confidence, "covers": "noise"}
