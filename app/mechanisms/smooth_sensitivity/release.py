"""What releases share whose noise is scaled to a smooth sensitivity: its price, and its scale told.

The scale depends on the table, so it is told only where a part of the loss pays for it.
"""

import math
from dataclasses import dataclass
from typing import Any

from app.accounting.loss import Loss
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
        told = self.disclosure
        return self.noise.loss if told is None else self.noise.loss + told.loss

    @property
    def theorem(self) -> str:
        return self.noise.theorem

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """Not known: it is compared with nothing else."""
        return math.inf, self.noise.even

    def expected_error(self, confidence: float) -> dict[str, Any]:
        return self.noise.expected_error(confidence)

    def described(self, **more: Any) -> dict[str, Any]:
        told = {} if self.disclosure is None else self.disclosure.describe()
        return {"kind": KIND, **self.noise.describe(), **told, **more}

    def recorded(self, **more: Any) -> dict[str, Any]:
        """For the ledger: from these any accountant can recompute the price."""
        told = {} if self.disclosure is None else self.disclosure.ledger_entry()
        return {"mechanism": KIND, **self.noise.ledger_entry(), **more, **told}
