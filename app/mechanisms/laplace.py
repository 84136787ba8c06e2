"""Laplace mechanism on whole numbers: discrete Laplace noise of scale sensitivity / epsilon.

Theorem: Dwork, McSherry, Nissim and Smith (2006), Proposition 1, in its discrete form (Ghosh,
Roughgarden and Sundararajan 2009): noise with p = exp(-epsilon / D) on whole numbers whose L1
change over neighbours is at most the whole number D is epsilon-private, for vectors too.
Assumes: for neighbours that change measure i by d_i in L1, sum of share_i * d_i / D_i <= 1
(`queries/measures.py`); then noise of scale D_i / (share_i * epsilon) on each costs epsilon in all.
Rounding: epsilon is the charged integer; the scale rounds up to the next float, so the loss never
exceeds the charge.

Size: OpenDP's noise saturates at 64 bits. Scales stop at 2^55 steps, where that has probability
exp(-256); a question that needs more noise is refused.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from app.accounting.loss import Loss
from app.accounting.losses import discrete_laplace_loss
from app.accounting.rounding import PICO
from app.errors import Invalid
from app.queries.figures import Noisy, number
from app.queries.measures import Measure
from app.queries.shape import Shape
from app.queries.statistics import Exact, Tally

KIND = "laplace"
THEOREM = "Dwork, McSherry, Nissim and Smith 2006, Proposition 1 (discrete Laplace mechanism)"
SCALE_MAX = 2.0**55
SCALE_MIN = 1e-3  # below, a draw other than 0 has probability exp(-1000): no noise at all


class Noise(Protocol):
    def discrete_laplace(self, scale: float, size: int) -> list[int]: ...


def width(scale: float, alpha: float) -> int:
    """The least w with P(|Z| > w) = 2 p^(w+1) / (1 + p) <= alpha, for p = exp(-1 / scale)."""
    tail = math.log(2.0 / (alpha * (1.0 + math.exp(-1.0 / scale))))
    return max(0, math.ceil(scale * tail * (1.0 + 1e-12)) - 1)


@dataclass(frozen=True, slots=True)
class Part:
    """One measure with its noise, in steps of the measure's own grid."""

    measure: Measure
    scale: float

    def noisy(self, exact: int, noise: int, half: int) -> Noisy:
        steps = exact + noise
        return Noisy(steps=steps, low=steps - half, high=steps + half)

    def describe(self) -> dict[str, Any]:
        exponent = self.measure.grid_exponent
        return {
            "measure": self.measure.name,
            "sensitivity": number(self.measure.sensitivity, exponent),
            "scale": math.ldexp(self.scale, -exponent),
            "grid": number(1, exponent),
        }


@dataclass(frozen=True, slots=True)
class LaplaceRelease:
    """What will be asked, what it costs, and how the noise is drawn: public facts only."""

    tally: Tally
    parts: tuple[Part, ...]
    loss: Loss
    theorem: str = THEOREM

    def draw(
        self, exact: Exact, noise: Noise, *, confidence: float
    ) -> tuple[tuple[Noisy, ...], ...]:
        """Noise on every measure and group. Each interval holds with its share of 1 - confidence,
        so that the intervals one figure is made of hold together."""
        alpha = (1.0 - confidence) / len(self.parts)
        released = []
        for part in self.parts:
            terms = part.measure.terms
            exacts = [
                sum(coefficient * exact[index][group] for coefficient, index in terms)
                for group in range(self.tally.group_count())
            ]
            draws = noise.discrete_laplace(part.scale, len(exacts))
            half = width(part.scale, alpha)
            released.append(
                tuple(part.noisy(e, z, half) for e, z in zip(exacts, draws, strict=True))
            )
        return tuple(released)

    def describe(self) -> dict[str, Any]:
        return {"kind": KIND, "noise": [part.describe() for part in self.parts]}

    def record(self) -> dict[str, Any]:
        """For the ledger: whole numbers and fractions from which any accountant can recompute."""
        return {
            "mechanism": KIND,
            "noise": [
                {
                    "measure": part.measure.name,
                    "sensitivity": str(part.measure.sensitivity),
                    "share": str(part.measure.share),
                    "grid_exponent": part.measure.grid_exponent,
                    "scale": part.scale.hex(),
                }
                for part in self.parts
            ],
        }

    def half_width(self, confidence: float) -> float | None:
        """Half of the interval's width where one measure is the figure; None for a mean, whose
        interval depends on what is released."""
        if len(self.parts) != 1:
            return None
        part = self.parts[0]
        return float(number(width(part.scale, 1.0 - confidence), part.measure.grid_exponent))


def prepare(shape: Shape, *, epsilon: int) -> LaplaceRelease:
    """The release that costs exactly `epsilon` units."""
    return LaplaceRelease(
        tally=shape.tally,
        parts=tuple(_part(measure, epsilon) for measure in shape.measures),
        loss=discrete_laplace_loss(
            epsilon, tuple(measure.sensitivity / measure.share for measure in shape.measures)
        ),
    )


def _part(measure: Measure, epsilon: int) -> Part:
    scale = _float_up(measure.sensitivity / (Fraction(epsilon, PICO) * measure.share))
    if scale < SCALE_MIN:
        raise Invalid.field("/privacy/epsilon", "so large that there would be no noise at all")
    if scale > SCALE_MAX:
        raise Invalid.field("/privacy/epsilon", "so small that the noise would not fit 64 bits")
    return Part(measure, scale)


def _float_up(exact: Fraction) -> float:
    scale = float(exact)
    return scale if Fraction(scale) >= exact else math.nextafter(scale, math.inf)
