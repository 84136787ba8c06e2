"""Reproducible randomness and time for this process: install before the app is imported.

The app draws from `secrets` and reads the clock through `time.time_ns`, always as attributes of the
modules. Both are replaced here, in the standard library, so that no rename in the app reaches this
file. Every step of a history starts its own stream. A step that draws more or less than before
changes only its own lines.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import Callable

_START = 1_767_225_600_000_000_000  # 2026-01-01, in nanoseconds
_STEP = 1_000_000_000


class Stream:
    """SHA-256 in counter mode: bytes determined by a label."""

    def __init__(self, label: str) -> None:
        self._label = label.encode()
        self._count = 0
        self._rest = b""

    def bytes(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._rest += hashlib.sha256(b"%d " % self._count + self._label).digest()
            self._count += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def bits(self, count: int) -> int:
        return int.from_bytes(self.bytes((count + 7) // 8)) >> -count % 8

    def below(self, bound: int) -> int:
        if bound <= 0:
            raise ValueError("a bound is positive")
        while (drawn := self.bits(bound.bit_length())) >= bound:
            pass
        return drawn


class Chance:
    """The replacement for `secrets`: the stream of the current step."""

    def __init__(self) -> None:
        self.stream = Stream("import")
        # Threads create names of temporary folders at any time, so these have a separate stream.
        self.folders = Stream("folders")

    def token_bytes(self, nbytes: int | None = None) -> bytes:
        return self.stream.bytes(32 if nbytes is None else nbytes)

    def token_urlsafe(self, nbytes: int | None = None) -> str:
        return base64.urlsafe_b64encode(self.token_bytes(nbytes)).rstrip(b"=").decode()

    def token_hex(self, nbytes: int | None = None) -> str:
        return self.folders.bytes(32 if nbytes is None else nbytes).hex()

    def randbelow(self, exclusive_upper_bound: int) -> int:
        return self.stream.below(exclusive_upper_bound)

    def randbits(self, k: int) -> int:
        return self.stream.bits(k)


class Clock:
    """A clock that stands still within a step."""

    def __init__(self) -> None:
        self.now = _START

    def time_ns(self) -> int:
        return self.now


CHANCE, CLOCK = Chance(), Clock()


def begin(label: str) -> None:
    """Start a step: one second later, with its own randomness."""
    CLOCK.now += _STEP
    CHANCE.stream = Stream(label)


def install() -> None:
    """Replace randomness and time for the rest of the process."""
    drawn: list[Callable[..., object]] = [
        CHANCE.token_bytes,
        CHANCE.token_urlsafe,
        CHANCE.token_hex,
        CHANCE.randbelow,
        CHANCE.randbits,
    ]
    for function in drawn:
        setattr(secrets, function.__name__, function)
    time.time_ns = CLOCK.time_ns
