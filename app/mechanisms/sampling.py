"""The only randomness: exact samplers on the system's generator, unseeded.

Discrete Laplace comes from OpenDP, which samples it in exact arithmetic from the operating system's
generator; no floating-point noise is ever drawn. OpenDP is always asked for noise around zero and
the noise is added to the exact whole number here, in Python's unbounded integers: its 64-bit
addition saturates, ours cannot.

Law: P(Z = z) = (1 - p) / (1 + p) * p^|z|, p = exp(-1 / scale).
"""

import secrets
import threading
from collections import OrderedDict
from typing import Any

import opendp.prelude as dp

dp.enable_features("contrib")

# A scale above this would let 64 bits saturate with a probability one could write down; the
# planner coarsens the grid long before (laplace.py).
SCALE_MAX = 2.0**50
_MEASUREMENTS_MAX = 1024


class SystemNoise:
    """Noise from the system's generator. One for a process; safe to share between threads."""

    def __init__(self) -> None:
        self._measurements: OrderedDict[float, Any] = OrderedDict()
        self._lock = threading.Lock()

    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        """Independent draws; `scale` is positive, in whole steps."""
        if not 0.0 < scale <= SCALE_MAX:
            raise ValueError("a noise scale is positive and at most 2^50 steps")
        draws: list[int] = self._measurement(scale)([0] * size)
        if len(draws) != size:
            raise ArithmeticError("the sampler returned another number of draws")
        return draws

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, each as likely."""
        return secrets.randbelow(bound)

    def _measurement(self, scale: float) -> Any:
        with self._lock:
            found = self._measurements.get(scale)
            if found is None:
                space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
                found = self._measurements[scale] = dp.m.make_laplace(*space, scale=scale)
                if len(self._measurements) > _MEASUREMENTS_MAX:
                    self._measurements.popitem(last=False)
            return found


def secret_text(bytes_: int) -> str:
    """Text from the system's generator for keys and seeds, URL-safe."""
    return secrets.token_urlsafe(bytes_)
