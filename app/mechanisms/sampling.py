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

from app.mechanisms.opendp_direct import LaplaceOnWholeNumbers

_SAMPLERS_MAX = 1024
_ONE_BY_ONE_MAX = 16


class SystemNoise:
    """Noise from the system's generator. One for a process; safe to share between threads."""

    def __init__(self) -> None:
        self._samplers: OrderedDict[float, LaplaceOnWholeNumbers] = OrderedDict()
        self._lock = threading.Lock()

    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        """Independent draws; `scale` is positive, in whole steps."""
        if not 0.0 < scale <= 2.0**55:  # 64 bits saturate beyond, see laplace.py
            raise ValueError("a noise scale is positive and at most 2^55 steps")
        sampler = self._sampler(scale)
        if size <= _ONE_BY_ONE_MAX:
            return [sampler.draw() for _ in range(size)]
        draws = sampler.draw_many(size)
        if len(draws) != size:
            raise ArithmeticError("the sampler returned another number of draws")
        return draws

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, each as likely."""
        return secrets.randbelow(bound)

    def _sampler(self, scale: float) -> LaplaceOnWholeNumbers:
        with self._lock:
            found = self._samplers.get(scale)
            if found is None:
                found = self._samplers[scale] = LaplaceOnWholeNumbers(scale)
                if len(self._samplers) > _SAMPLERS_MAX:
                    self._samplers.popitem(last=False)
            return found


def secret_text(bytes_: int) -> str:
    """Text from the system's generator for keys and seeds, URL-safe."""
    return secrets.token_urlsafe(bytes_)
