"""Limits on request bodies, checked before their bytes are read or the parser runs.

Python's parser and pydantic hold the interpreter lock for a whole call, so no other thread runs
meanwhile. A body that would keep them busy for long is refused by counting its bytes.
"""

from collections import Counter
from itertools import accumulate
from typing import Any

from app.actions.scheduling.fair_threads import FairThreads
from app.errors import Malformed, TooLarge, TooManyRunning

SMALL_BYTES = 64 << 10
VALUES_MAX = 250_000  # commas
LISTS_MAX = 100_000  # opening brackets; 250,000 values are at most 84,000 comparisons
DEPTH_MAX = 100  # a filter of 20 levels in a list of previews has 46
KEYS_MAX = 1000  # of one object: no model and no card has more columns than that
LOOKUP = "map"  # key of the one object that may have more: the table of a lookup
LARGE_EACH = 4
LARGE_MAX = 16
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))


def check_shape(raw: bytes) -> None:
    """Raise TooLarge for too many values, and Malformed for too many levels."""
    if raw.count(b",") > VALUES_MAX:
        raise TooLarge(f"A body has at most {VALUES_MAX} values.")
    opened = raw.count(b"[") + raw.count(b"{")
    if opened > LISTS_MAX:
        raise TooLarge(f"A body has at most {LISTS_MAX} lists and objects.")
    if opened > DEPTH_MAX and _depth(raw) > DEPTH_MAX:
        raise Malformed("The body is nested too deeply.")


def _depth(raw: bytes) -> int:
    """Number of levels in JSON. If only the beginning is valid, at least the number there."""
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(unescaped.split(b'"')[::2])  # without texts and keys
    brackets = outside.translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def check_keys(data: Any) -> None:
    """Raise TooLarge for an object with too many keys: pydantic has an error for each of them."""
    unchecked: list[tuple[str, Any]] = [("", data)]
    while unchecked:
        name, value = unchecked.pop()
        if isinstance(value, dict):
            if len(value) > KEYS_MAX and name != LOOKUP:
                raise TooLarge(f"An object in a body has at most {KEYS_MAX} keys.")
            unchecked.extend(value.items())
        elif isinstance(value, list):
            unchecked.extend(("", item) for item in value)


class LargeBodies:
    """Places for bodies above SMALL_BYTES, from their first byte until they are parsed.

    So a few of them are in memory at a time. They are parsed by one thread, in turns among
    analysts. Used from one event loop.
    """

    def __init__(self, each: int = LARGE_EACH, most: int = LARGE_MAX) -> None:
        self.threads = FairThreads("large-body", 1, 1)
        self._each, self._most = each, most
        self._held: Counter[str] = Counter()

    def take(self, analyst_id: str) -> None:
        """Take a place. Raises TooManyRunning."""
        if self._held[analyst_id] >= self._each:
            raise TooManyRunning(
                f"{self._each} of your large bodies are being read: send this one again when one "
                "of them is done. Nothing was charged."
            )
        if self._held.total() >= self._most:
            raise TooManyRunning(
                f"This server is reading {self._most} large bodies: send this one again later. "
                "Nothing was charged."
            )
        self._held[analyst_id] += 1

    def give_back(self, analyst_id: str) -> None:
        self._held[analyst_id] -= 1
        if not self._held[analyst_id]:
            del self._held[analyst_id]


LARGE_BODIES = LargeBodies()
