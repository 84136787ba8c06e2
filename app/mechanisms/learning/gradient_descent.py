"""Noisy gradient descent: regression weights learned in steps that see only noisy sums.

In every step the gradients of all rows, or of a Poisson sample of them, are clipped and added as
integers (`clipping.py`). Discrete Gaussian noise goes on the sum, and the weights move against it
(Abadi et al. 2016; Bassily, Smith and Thakurta 2014). The rest of a step is post-processing of the
noisy sum:

- it is divided by a public number, never by the true number of rows;
- steps look ahead (Nesterov 1983) with a momentum that rises to MOMENTUM;
- the released weights are the average over the second half of the steps, which reduces noise.

Sampling: each row joins a step's sample by its own coin, 32 bits of the system's generator below
`threshold`. The rate is threshold / 2^32, rounded up from the requested rate, and the rounded rate
is priced.

The number of rows is public under replace_one without a filter, or if the analyst sends
`expected_rows`. Otherwise it is released with noise (`noise_schedule.py`). The divisor is at least
large enough that the noise of a step is no larger than the clipping norm.

Defaults are public. The clipping norm is the longest possible gradient of a logistic regression, so
none is clipped. The learning rate is one over the largest possible curvature.
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
from app.mechanisms.expected_error import ExpectedError, unknown
from app.mechanisms.learning.clipping import NORM, clipped_sum
from app.mechanisms.learning.noise_schedule import Moves, NoiseSchedule, full_batch, sampled
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.release import DataReader, RandomSource
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.shapes.learning import LearningShape, WeightVector
from app.queries.tally import Exact, Matrix, Records, Tally

KIND = "noisy_gradient_descent"
DEPENDS = "how noise moves the weights depends on the rows"
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
# limit on steps times rows times terms, where the number of rows is public
WORK_MAX = 100_000_000_000
COINS = 1 << 32
GradientData = tuple[Exact | None, Iterable[Matrix], Callable[[int], None]]


def prepare(shape: LearningShape, target: PrivacyTarget) -> "GradientRelease":
    if shape.ridged:
        raise Invalid.field("/query/ridge", "must be 0: gradient descent has no ridge")
    parameters = target.descent
    steps = parameters.steps or STEPS
    rows = parameters.expected_rows or shape.rows
    if shape.rows is not None and steps * shape.rows * len(shape.inputs) > WORK_MAX:
        rule = f"too large: steps times rows times terms must be at most {WORK_MAX}"
        raise Invalid.field("/mechanism/steps", rule)
    threshold = math.ceil(Fraction(parameters.sampling_rate or 1) * COINS)
    moves = Moves(steps, shape.moves, shape.rows_max if rows is None else None, shape.replaced)
    if threshold == COINS:
        price, theorem = full_batch(moves, target), THEOREM
    elif shape.rows_max > 1:
        raise Invalid.field(
            "/mechanism/sampling_rate", "allowed only where each person has one row"
        )
    else:
        price, theorem = sampled(moves, Fraction(threshold, COINS), target), THEOREM_SAMPLED
    curvature = shape.norm_max**2 / (4.0 if shape.model == "logistic" else 1.0)
    return GradientRelease(
        shape=shape,
        price=price,
        steps=steps,
        clipping_norm=parameters.clipping_norm or shape.norm_max,
        learning_rate=parameters.learning_rate or 1.0 / curvature,
        threshold=threshold,
        rows=rows,
        theorem=theorem,
    )


@dataclass(frozen=True, slots=True)
class GradientRelease:
    """A prepared descent. `learn` answers it from the rows."""

    shape: LearningShape
    price: NoiseSchedule
    steps: int
    clipping_norm: float
    learning_rate: float
    threshold: int  # a row joins a sample if its 32-bit coin is below this
    rows: int | None  # public divisor; None where the number of rows is released with noise
    theorem: str

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def records(self) -> Records:
        return self.shape.records

    @property
    def is_instant(self) -> bool:
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
    def standard_deviations(self) -> tuple[float, ...]:
        """Infinite: the error of the weights depends on the data."""
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

    def read(self, data: DataReader) -> GradientData:
        exact = data.exact(self.tally) if self.rows is None else None
        return exact, data.records(self.records), data.checkpoint

    def answer(
        self,
        exact: GradientData,
        noise: RandomSource,
        *,
        query: Query,
        card: Card,
        confidence: float,
    ) -> dict[str, Any]:
        counted, rows, reached = exact
        return self.learn(counted, rows, noise, reached)

    def learn(
        self,
        exact: Exact | None,
        rows: Iterable[Matrix],
        noise: RandomSource,
        reached: Callable[[int], None],
    ) -> dict[str, Any]:
        """Run the descent and return the averaged weights.

        `exact` is the tally, needed only if the number of rows is released. `rows` is iterated once
        per step. `reached` receives the step number with every batch and may raise to end the run.
        """
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
        return {"value": self._report(average, count), "interval": None}

    def noisy_sum(
        self,
        weights: WeightVector,
        rows: Iterable[Matrix],
        noise: RandomSource,
        reached: Callable[[], None],
    ) -> WeightVector:
        """Noisy gradient sum of one step, in steps of the clipping grid."""
        total = [0] * len(self.shape.inputs)
        reached()
        for batch in self._one_at_least(rows):
            taken = batch if self.threshold == COINS else batch[self._coins(len(batch), noise)]
            batch_sum = clipped_sum(self.shape, weights, taken, self.clipping_norm)
            total = [have + new for have, new in zip(total, batch_sum, strict=True)]
            reached()
        drawn = noise.discrete_gaussian(self.price.scale, len(total))
        return np.array([float(have + z) for have, z in zip(total, drawn, strict=True)])

    def _one_at_least(self, rows: Iterable[Matrix]) -> Iterator[Matrix]:
        """Yield the batches, or one empty batch. A step over no rows takes as long as over a
        few."""
        batch = None
        for batch in rows:
            yield batch
        if batch is None:
            yield np.empty((0, len(self.records.columns)), dtype=np.int64)

    def _coins(self, rows: int, noise: RandomSource) -> np.ndarray[Any, np.dtype[np.bool_]]:
        words = np.asarray(noise.words((rows + 1) // 2), dtype=np.uint64)
        return words.view(np.uint32)[:rows] < self.threshold

    def _count(self, exact: Exact | None, noise: RandomSource) -> int:
        if self.rows is not None:
            return self.rows
        if exact is None or self.price.count_scale is None:
            raise ValueError("the tally is needed: the number of rows is released with noise")
        (drawn,) = noise.discrete_gaussian(self.price.count_scale, 1)
        return max(exact[0][0] + drawn, math.ceil(self.noise_multiplier / self.sampling_rate))

    def _report(self, weights: WeightVector, count: int) -> dict[str, Any]:
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

    def ledger_entry(self) -> dict[str, Any]:
        """Ledger description: any accountant can recompute the price from it."""
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

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        return unknown(DEPENDS)
