"""Noise on the moments of a regression: all moments are released, and the fit uses only them."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.data.card import Card
from app.mechanisms.noise.additive import AdditiveRelease
from app.mechanisms.noise.linear_fit import Fit, fit_estimates, model_of
from app.mechanisms.noise.moment_noise import MomentNoise
from app.mechanisms.release import RandomSource
from app.queries import Query
from app.queries.regression.linear import LinearRegression
from app.queries.tally import Exact


@dataclass(frozen=True, slots=True)
class MomentsRelease(AdditiveRelease):
    """Release of one measure over all moments, n first."""

    @property
    @override
    def is_instant(self) -> bool:
        return False

    @override
    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        assert isinstance(query, LinearRegression)
        assert self.shape.moments is not None
        moments, (part,) = self.shape.moments, self.parts
        numbers = [
            sum(coefficient * exact[index][0] for coefficient, index in terms)
            for terms in part.measure.vectors
        ]
        draws = self.law.draw(noise, part.scale, len(numbers))
        noisy = [number + z for number, z in zip(numbers, draws, strict=True)]
        model = model_of(moments, intercept=query.intercept, ridge=query.ridge)
        fit = Fit(model, MomentNoise(moments), noisy, self.law, part.scale, 1.0 - confidence)
        return {"value": fit_estimates(fit, confidence), "interval": None}

    @override
    def describe(self) -> dict[str, Any]:
        return {**super(MomentsRelease, self).describe(), "moments": self._count}

    @override
    def ledger_entry(self) -> dict[str, Any]:
        return {**super(MomentsRelease, self).ledger_entry(), "moments": self._count}

    @property
    def _count(self) -> int:
        return len(self.parts[0].measure.vectors)
