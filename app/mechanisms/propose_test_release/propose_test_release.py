"""Propose-test-release: noise for a proposed bound on local sensitivity, if the table is stable
enough.

A bound B is proposed. A noisy test checks that the table is far from any in which a person could
change the statistic by more than B. If it passes, the statistic is released with noise for the
sensitivity B. Otherwise the answer is withheld, at the same cost. Theorem and proof are in
`distance_test.py`, where neighbours are safe if their statistics are at most B apart. If no bound
is proposed, a part of the loss pays for a private choice of one (`private_bound.py`).

Laplace noise for a chosen bound costs the same epsilon for every bound. Its Renyi curve is larger
for a bound of fewer steps, so the curve of the smallest bound is charged.

Test and noise are both drawn in any case, and the same data is read. Only the status shows whether
the answer is withheld.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from typing_extensions import override

from app.accounting.loss import Loss
from app.accounting.units import ATTO, PICO, cost_units, limit_units
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.expected_error import ExpectedError, unknown
from app.mechanisms.noise import gaussian, laplace
from app.mechanisms.noise.additive import AdditiveRelease, NoiseDistribution
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget, UnsupportedShape
from app.mechanisms.propose_test_release import distance_test, private_bound
from app.mechanisms.propose_test_release.distance_test import DistanceTest
from app.mechanisms.propose_test_release.local_statistic import LocalStatistic
from app.mechanisms.propose_test_release.padding import (
    NUMBER_SIZE,
    padded_answer,
    padded_withheld,
    text_size,
)
from app.mechanisms.propose_test_release.private_bound import PrivateBound
from app.mechanisms.propose_test_release.proposed_bounds import proposed
from app.mechanisms.propose_test_release.rank_distance import reach_of
from app.mechanisms.release import DataReader, RandomSource, SingleGroupRelease
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.estimates import Estimate, number
from app.queries.shapes.measures import Measure
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.single_mean import MeanShape
from app.queries.shapes.sums import SumShape
from app.queries.tally import Tally

KIND = "propose_test_release"
RANKS_MAX = 1 << 15  # ranks read on either side of a rank
COMPARED_MAX = 1 << 18  # limit on ranks times candidate bounds: a fraction of a second
PROPOSAL_SHARE = Fraction(1, 4)
NOISES = {laplace.KIND: laplace.prepare, gaussian.KIND: gaussian.prepare}
CHOSEN = "the width depends on the bound that is chosen; propose one"


@dataclass(frozen=True, slots=True)
class ProposedRelease(SingleGroupRelease):
    statistic: LocalStatistic
    bounds: tuple[int, ...]  # in steps: the proposed bound, or the candidates
    scales: tuple[float, ...]  # noise scale for each bound
    law: NoiseDistribution
    noise_theorem: str
    test: DistanceTest
    chosen: PrivateBound | None
    loss: Loss

    @property
    def tally(self) -> Tally:
        return self.statistic.tally

    @property
    @override
    def is_instant(self) -> bool:
        return self.statistic.is_instant

    @property
    def work(self) -> Work:
        return self.statistic.work(self.cap, len(self.bounds))

    @property
    def theorem(self) -> str:
        chosen = "" if self.chosen is None else f"; {private_bound.THEOREM}"
        return f"{distance_test.THEOREM}; {self.noise_theorem}{chosen}"

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """Infinite: the answer may be withheld, so the planner cannot compare it."""
        return (math.inf,)

    @property
    def cap(self) -> int:
        """Public cap of the distances."""
        return self.test.enough if self.chosen is None else self.chosen.cap(self.test)

    def read(self, data: DataReader) -> Any:
        return self.statistic.read(data, self.cap)

    def answer(
        self, exact: Any, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        def distance(index: int) -> int:
            return self.statistic.distance(exact, self.bounds[index], self.cap)

        index = 0 if self.chosen is None else self.chosen.choose(distance, noise)
        passed = self.test.passed(distance(index), noise)
        noisy = self.statistic.value(exact) + self.law.draw(noise, self.scales[index], 1)[0]
        figure = self._figure(noisy, self.law.width(self.scales[index], 1.0 - confidence))
        more = {} if self.chosen is None else {"bound": self._in_column_units(self.bounds[index])}
        size = _size(confidence)
        if not passed:
            return padded_withheld(size, **more)
        return padded_answer(figure.value, figure.interval(confidence), size, **more)

    def _figure(self, noisy: int, width: int) -> Estimate:
        """Figure clamped to the statistic's possible values, which loses none of them."""
        low, high = self.statistic.limits
        return Estimate(
            *(
                self._in_column_units(min(max(steps, low), high))
                for steps in (noisy, noisy - width, noisy + width)
            )
        )

    def _in_column_units(self, steps: int) -> int | float:
        return number(steps, self.statistic.grid_exponent)

    def describe(self) -> dict[str, Any]:
        exponent = self.statistic.grid_exponent
        known = self.chosen is None
        return {
            "kind": KIND,
            "noise": self.law.kind,
            "bound": self._in_column_units(self.bounds[0]) if known else None,
            "scale": math.ldexp(self.scales[0], -exponent) if known else None,
            "scale_over_bound": self.scales[-1] / self.bounds[-1],
            "grid": number(1, exponent),
            "test_scale": self.test.scale,
            "threshold": self.test.threshold,
            "failure": self.test.failure / ATTO,
            "distance_max": self.cap,
            **({} if self.chosen is None else self._proposal(self.chosen)),
        }

    def _proposal(self, chosen: PrivateBound) -> dict[str, Any]:
        return {
            "proposal_epsilon": chosen.epsilon / PICO,
            "candidates": chosen.candidates,
            "smallest": self._in_column_units(self.bounds[0]),
            "largest": self._in_column_units(self.bounds[-1]),
            "target": chosen.target,
        }

    def ledger_entry(self) -> dict[str, Any]:
        chosen = self.chosen
        return {
            "mechanism": KIND,
            "noise": self.law.kind,
            "bound": str(self.bounds[0] if chosen is None else self.bounds[-1]),
            "candidates": len(self.bounds),
            "grid_exponent": self.statistic.grid_exponent,
            "scale": self.scales[0 if chosen is None else -1].hex(),
            "test_scale": self.test.scale.hex(),
            "threshold": str(self.test.threshold),
            **({} if chosen is None else {"proposal": str(chosen.epsilon)}),
        }

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        details = {"told_from": self.test.likely_from(confidence)}
        if self.chosen is not None:
            return unknown(CHOSEN, **details)
        half = self._in_column_units(self.law.width(self.scales[0], 1.0 - confidence))
        return ExpectedError(half, withholds=True, details=details)


def _size(confidence: float) -> int:
    """Public size of the answer: no number is longer than its placeholder here."""
    digits = "0" * NUMBER_SIZE
    longest = {**Estimate(0, 0, 0).interval(confidence), "low": digits, "high": digits}
    return text_size({"status": "answered", "value": digits, "interval": longest, "bound": digits})


def prepare(shape: RankShape | MeanShape, target: PrivacyTarget) -> ProposedRelease:
    proposal = target.proposal
    if proposal is None:
        raise UnsupportedShape("it may withhold the answer, so the query must name it")
    if isinstance(shape, RankShape) and shape.candidates:
        raise Invalid.field(
            "/query/candidates", "must be absent: propose_test_release answers with any value"
        )
    if target.delta is None:
        raise Invalid.field("/privacy/delta", "required: a test that may fail costs a delta")
    statistic, bounds = proposed(shape, proposal.bound)
    law = target.noise or ("gaussian" if target.rho is not None and proposal.bound else "laplace")
    if law == "gaussian" and proposal.bound is None:
        raise Invalid.field("/mechanism/noise", "must be laplace, unless you propose a bound")
    shares = _shares(proposal.test_share, proposal.proposal_share, known=proposal.bound is not None)
    parts = _parts(target, shares, statistic, bounds, law)
    noises = [_noise(statistic, bound, law, parts[-1]) for bound in bounds]
    test = distance_test.prepare(parts[0], cost_units(target.delta, ATTO))
    chosen = None
    loss = test.then(noises[0].loss)
    if proposal.bound is None:
        chosen = private_bound.prepare(_epsilon(parts[1]), len(bounds), test)
        loss += chosen.loss
    release = ProposedRelease(
        statistic=statistic,
        bounds=bounds,
        scales=tuple(noise.parts[0].scale for noise in noises),
        law=noises[0].law,
        noise_theorem=noises[0].theorem,
        test=test,
        chosen=chosen,
        loss=loss,
    )
    if isinstance(shape, RankShape):
        reach = reach_of(shape, release.cap)
        if reach > RANKS_MAX or reach * len(bounds) > COMPARED_MAX:
            raise CannotServe("the loss of the test is too small: it would read too many ranks")
    return release


def _noise(
    statistic: LocalStatistic, bound: int, law: str, target: PrivacyTarget
) -> AdditiveRelease:
    measure = Measure(
        "value", ((1, 0),), bound, Fraction(1), statistic.grid_exponent, single_cell=True
    )
    shape = SumShape(statistic.tally, (measure,))
    return NOISES[law](shape, target)


def _shares(
    test: Fraction | None, proposal: Fraction | None, *, known: bool
) -> tuple[Fraction, ...]:
    """Shares of the test, of the private choice if there is one, and of the noise."""
    first = Fraction(0) if known else proposal or PROPOSAL_SHARE
    second = test or (1 - first) / 2
    if first + second >= 1:
        raise Invalid.field(
            "/mechanism", "shares must add up to less than 1: the noise needs the rest"
        )
    rest = 1 - first - second
    return (second, rest) if known else (second, first, rest)


def _parts(
    target: PrivacyTarget,
    shares: tuple[Fraction, ...],
    statistic: LocalStatistic,
    bounds: tuple[int, ...],
    law: str,
) -> list[PrivacyTarget]:
    """Privacy targets of all parts; the noise comes last."""
    noise_delta = target.delta if law == "gaussian" else None
    if target.half_width is not None:
        if len(shares) > 2:
            raise CannotServe(f"no half width can be promised: {CHOSEN}")
        noise_target = PrivacyTarget(
            half_width=target.half_width, confidence=target.confidence, delta=noise_delta
        )
        noise_loss = _noise(statistic, bounds[0], law, noise_target).loss
        test, rest = shares
        if law == "gaussian":
            return [
                PrivacyTarget(rho=_amount(math.ceil(noise_loss.rho * test / rest))),
                noise_target,
            ]
        return [
            PrivacyTarget(epsilon=_amount(math.ceil(noise_loss.epsilon * test / rest))),
            noise_target,
        ]
    if target.epsilon is not None:
        whole = cost_units(target.epsilon, PICO)
    else:
        assert target.rho is not None
        whole = limit_units(target.rho, PICO)
    units = [math.floor(whole * share) for share in shares[:-1]]
    units.append(whole - sum(units))
    if min(units) < 1:
        raise CannotServe("the loss is too small to be split")
    if target.epsilon is None:
        others = [PrivacyTarget(rho=_amount(part)) for part in units[:-1]]
        return [*others, PrivacyTarget(rho=_amount(units[-1]), delta=noise_delta)]
    others = [PrivacyTarget(epsilon=_amount(part)) for part in units[:-1]]
    return [*others, PrivacyTarget(epsilon=_amount(units[-1]), delta=noise_delta)]


def _epsilon(target: PrivacyTarget) -> int:
    if target.epsilon is not None:
        return cost_units(target.epsilon, PICO)
    assert target.rho is not None
    return laplace.epsilon_within_rho(limit_units(target.rho, PICO))


def _amount(units: int) -> Decimal:
    return Decimal(units) / PICO
