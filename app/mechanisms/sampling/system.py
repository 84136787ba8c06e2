"""The only source of randomness: exact samplers on the system's generator, unseeded.

Discrete Laplace and Gaussian noise come from OpenDP, which samples them in exact arithmetic from
the operating system's generator. No floating-point noise is ever drawn. OpenDP always draws noise
around zero, and this module's callers add it to the exact value in Python's unbounded integers:
OpenDP's 64-bit addition saturates, Python's cannot. Many draws at once use our own samplers
(`bulk_laplace.py`, `bulk_gaussian.py`), which are as exact and many times as fast.

Laplace distribution: P(Z = z) = (1 - p) / (1 + p) * p^|z|, p = exp(-1 / scale).
"""

import secrets
import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence

from app.mechanisms.sampling.bulk_gaussian import gaussian_draws
from app.mechanisms.sampling.bulk_laplace import laplace_draws
from app.mechanisms.sampling.opendp_ffi import (
    GaussianOnWholeNumbers,
    LaplaceOnWholeNumbers,
    OnWholeNumbers,
)

_SAMPLERS_MAX = 1024
_ONE_BY_ONE_MAX = 16
_AT_ONCE_MIN = 256  # draws: the coins of a scale take a millisecond or two to prepare


class SystemRandom:
    """Noise from the system's generator. One per process; safe to share between threads."""

    def __init__(self) -> None:
        self._samplers: OrderedDict[tuple[type, float], OnWholeNumbers] = OrderedDict()
        self._lock = threading.Lock()

    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        """Independent draws; `scale` is positive, in integer steps."""
        if not 0.0 < scale <= 2.0**55:  # 64 bits saturate beyond, see laplace.py
            raise ValueError("the noise scale must be positive and at most 2^55 steps")
        if size > _AT_ONCE_MIN:
            return laplace_draws(scale).draw(size, self)
        return self._draws(self._sampler(scale, LaplaceOnWholeNumbers), size)

    def discrete_gaussian(self, scale: float, size: int) -> list[int]:
        """Independent draws with P(Z = z) in proportion to exp(-z^2 / (2 scale^2))."""
        if not 0.0 < scale <= 2.0**55:
            raise ValueError("the noise scale must be positive and at most 2^55 steps")
        if size > _AT_ONCE_MIN:
            return gaussian_draws(scale).draw(size, self)
        return self._draws(self._sampler(scale, GaussianOnWholeNumbers), size)

    def below(self, bound: int) -> int:
        """Uniform integer from 0 to bound - 1."""
        return secrets.randbelow(bound)

    def words(self, size: int) -> Sequence[int]:
        """Independent uniform integers from 0 to 2^64 - 1."""
        drawn = array("Q")
        drawn.frombytes(secrets.token_bytes(drawn.itemsize * size))
        return drawn

    def _draws(self, sampler: OnWholeNumbers, size: int) -> list[int]:
        if size <= _ONE_BY_ONE_MAX:
            return [sampler.draw() for _ in range(size)]
        draws = sampler.draw_many(size)
        if len(draws) != size:
            raise ArithmeticError("the sampler returned a wrong number of draws")
        return draws

    def _sampler(
        self, scale: float, kind: "type[LaplaceOnWholeNumbers | GaussianOnWholeNumbers]"
    ) -> OnWholeNumbers:
        with self._lock:
            sampler = self._samplers.get((kind, scale))
            if sampler is None:
                sampler = self._samplers[kind, scale] = kind(scale)
                if len(self._samplers) > _SAMPLERS_MAX:
                    self._samplers.popitem(last=False)
            return sampler


def secret_text(bytes_: int) -> str:
    """URL-safe text from the system's generator, for keys and seeds."""
    return secrets.token_urlsafe(bytes_)


def secret_bytes(size: int) -> bytes:
    """Bytes from the system's generator, for keys and nonces."""
    return secrets.token_bytes(size)
