"""Interval for an answer by smooth sensitivity: S is released as well, with noise, for a price.

ln S changes by at most beta between neighbours, as S is beta-smooth. m = ceil(ln S / g) with the
public g = beta / STEPS then changes by at most STEPS + 1. So m with discrete Laplace noise of scale
(STEPS + 1) / epsilon' costs a pure epsilon' (Dwork, McSherry, Nissim and Smith 2006). Choose w such
that the noise is below -w with probability alpha / 2. Except with that probability, S is at most
exp(g (m' + w)), m' being the noisy m. The noise of the answer is within its quantile at alpha / 2
times this bound. Together the interval holds with probability 1 - alpha. It is computed from the
two releases alone.

Rounding: an error of the computed logarithm changes m only where m is about to change anyway, so
the integers still differ by at most STEPS + 1; the width is rounded up.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from app.accounting.loss import Loss
from app.accounting.losses import pure_loss
from app.accounting.units import PICO
from app.mechanisms.noise.additive import float_up
from app.mechanisms.noise.laplace import width
from app.mechanisms.release import RandomSource
from app.mechanisms.smooth_sensitivity.calibrated_noise import FINE, CalibratedNoise, fine

STEPS = 64
EXPONENT_MAX = Decimal(690)  # its exponential is still a float
_ABOVE = 1.0 + 1e-6  # covers the float error of quantiles


@dataclass(frozen=True, slots=True)
class Disclosure:
    """Noisy release of the size of S, with its part of the loss."""

    epsilon: int  # units of epsilon
    beta: Fraction

    @property
    def loss(self) -> Loss:
        return pure_loss(self.epsilon)

    @property
    def scale(self) -> float:
        return float_up(Fraction((STEPS + 1) * PICO, self.epsilon))

    def level(self, smooth: Fraction) -> int:
        """m = ceil(ln S / g)."""
        with localcontext(FINE):
            steps = fine(smooth).ln() * STEPS / fine(self.beta)
            return int(steps.to_integral_value("ROUND_CEILING"))

    def half_width(
        self, smooth: Fraction, scaled: CalibratedNoise, confidence: float, noise: RandomSource
    ) -> float:
        """Half width in steps. Every call draws new noise, so call it once."""
        half = (1.0 - confidence) / 2.0
        (drawn,) = noise.discrete_laplace(self.scale, 1)
        # P(Z < -w) = P(|Z| > w) / 2
        above = self.level(smooth) + drawn + width(self.scale, min(1.0, 2.0 * half))
        with localcontext(FINE):
            exponent = Decimal(above) * fine(self.beta) / STEPS
            bound = min(max(exponent, -EXPONENT_MAX), EXPONENT_MAX).exp()
        bound_on_s = math.inf if exponent > EXPONENT_MAX else float(bound)
        return bound_on_s * scaled.half_width(1.0 - half) * _ABOVE

    def describe(self) -> dict[str, Any]:
        return {"interval_epsilon": self.epsilon / PICO, "interval_scale": self.scale}

    def ledger_entry(self) -> dict[str, Any]:
        return {"interval": {"sensitivity": STEPS + 1, "scale": self.scale.hex()}}
