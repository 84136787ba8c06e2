"""A table of made-up rows, its exact fit, and descents on it without or with more noise."""

import math
from typing import Any

import numpy as np
from typing_extensions import override

from app.data.card import Card
from app.mechanisms.learning.gradient_descent import GradientRelease
from app.mechanisms.sampling.system import SystemRandom
from app.queries.shapes.learning import LearningShape
from app.queries.tally import Matrix
from tests.queries.reference import Row, tallied
from tests.queries.regression.regressions import LOGISTIC, recorded

SAMPLED: dict[str, Any] = {"sampling_rate": 0.1, "steps": 200}


class Silent(SystemRandom):
    """A sampler without noise, whose coins are real."""

    @override
    def discrete_gaussian(self, scale: float, size: int) -> list[int]:
        return [0] * size


class Louder(SystemRandom):
    """The planted bug: three hundred times the noise."""

    @override
    def discrete_gaussian(self, scale: float, size: int) -> list[int]:
        return super().discrete_gaussian(300 * scale, size)


def nothing(step: int) -> None:
    """A checkpoint without effect."""


def fraction(i: int, root: int) -> float:
    """Evenly spread numbers in [0, 1), a different sequence for each root."""
    return i * math.sqrt(root) % 1.0


def table(count: int) -> list[Row]:
    """Log odds of yes: -1 + 0.8 x - 0.6 z, + 0.9 if b, - 0.3 if c. A tenth of the rows lack
    something."""
    rows = []
    for i in range(count):
        x, z, group = int(4 * fraction(i, 2)), 2.5 * fraction(i, 3) - 0.5, "abc"[i * 7 % 3]
        score = -1 + 0.8 * x - 0.6 * z + {"a": 0.0, "b": 0.9, "c": -0.3}[group]
        yes = fraction(i, 5) < 1 / (1 + math.exp(-score))
        row: Row = {"x": x, "z": z, "group": group, "kept": i % 3 == 0, "yes": yes}
        if i % 10 == 9:
            row[("x", "z", "group", "yes")[i // 10 % 4]] = None
        rows.append(row)
    return rows


ROWS = table(20_000)
QUERY = LOGISTIC | {"features": ["x", "z", "group"]}
LABELS = ["(intercept)", "x", "z", "group=b", "group=c"]


def design(shape: LearningShape, rows: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Terms and outcomes as floats, computed independently."""

    def values(term: Any) -> np.ndarray:
        if term.column is None:
            return np.ones(len(rows))
        if term.code is not None:
            return np.asarray(rows[:, term.column] == term.code, dtype=np.float64)
        return np.asarray(rows[:, term.column] * term.slope + term.shift)

    return np.column_stack([values(term) for term in shape.inputs]), values(shape.outcome)


def fitted(shape: LearningShape, rows: Matrix) -> np.ndarray:
    """The fit without noise: least squares, or Newton's method."""
    terms, outcome = design(shape, rows)
    if shape.model == "squares":
        return np.asarray(np.linalg.lstsq(terms, outcome, rcond=None)[0])
    weights = np.zeros(terms.shape[1])
    for _ in range(30):
        chances = 1 / (1 + np.exp(-terms @ weights))
        curvature = (terms * (chances * (1 - chances))[:, None]).T @ terms
        weights = weights - np.linalg.solve(curvature, terms.T @ (chances - outcome))
    return weights


def learned(
    release: GradientRelease, made: Card, rows: list[Row], noise: SystemRandom
) -> list[float]:
    """Coefficients of an answer, after a check of its form."""
    batches = np.array_split(recorded(made, release.records, rows), 3)
    exact = tallied(made, release.tally, rows) if release.rows is None else None
    answer = release.learn(exact, batches, noise, nothing)
    assert set(answer) == {"value", "interval"}
    assert answer["interval"] is None
    assert set(answer["value"]) == {"coefficients", "rows"}
    for item in answer["value"]["coefficients"]:
        assert set(item) == {"term", "value", "standard_error", "interval"}
        assert item["standard_error"] is None
        assert item["interval"] is None
    assert [item["term"] for item in answer["value"]["coefficients"]] == [
        term.label for term in release.shape.inputs
    ]
    return [item["value"] for item in answer["value"]["coefficients"]]
