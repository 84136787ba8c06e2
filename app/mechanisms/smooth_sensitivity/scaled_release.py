"""Base of releases with noise scaled to a smooth sensitivity: price and disclosure of the scale.

The scale depends on the table, so it is released only if a part of the loss pays for it.
"""

import math
from dataclasses import dataclass
from typing import Any

from app.accounting.loss import Loss
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.release import SingleGroupRelease
from app.mechanisms.smooth_sensitivity.calibrated_noise import CalibratedNoise
from app.mechanisms.smooth_sensitivity.scale_disclosure import Disclosure

KIND = "smooth_sensitivity"


@dataclass(frozen=True, slots=True)
class ScaledRelease(SingleGroupRelease):
    noise: CalibratedNoise
    disclosure: Disclosure | None

    @property
    def loss(self) -> Loss:
        disclosure = self.disclosure
        return self.noise.loss if disclosure is None else self.noise.loss + disclosure.loss

    @property
    def theorem(self) -> str:
        return self.noise.theorem

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """Infinite: the noise depends on the data, so the planner cannot compare it with other
        mechanisms."""
        return math.inf, self.noise.even

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        return self.noise.expected_error(confidence)

    def described(self, **more: Any) -> dict[str, Any]:
        scale = {} if self.disclosure is None else self.disclosure.describe()
        return {"kind": KIND, **self.noise.describe(), **scale, **more}

    def recorded(self, **more: Any) -> dict[str, Any]:
        """Ledger description: any accountant can recompute the price from it."""
        scale = {} if self.disclosure is None else self.disclosure.ledger_entry()
        return {"mechanism": KIND, **self.noise.ledger_entry(), **more, **scale}
