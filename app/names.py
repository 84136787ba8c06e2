"""Names of people, datasets and columns: one spelling each; and identifiers ordered by time.

Two names that look alike are one name. They are compared after NFKC normalisation and case folding,
and invisible characters are refused.
"""

import itertools
import secrets
import time
import unicodedata

from app.errors import Invalid

NAME_LENGTH_MAX = 100
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Invisible letters and marks: Unicode's Default_Ignorable, and the blank braille pattern.
_BLANKS = (
    range(0x034F, 0x0350),
    range(0x115F, 0x1161),
    range(0x17B4, 0x17B6),
    range(0x180B, 0x1810),
    range(0x2065, 0x2066),
    range(0x2800, 0x2801),
    range(0x3164, 0x3165),
    range(0xFE00, 0xFE10),
    range(0xFFA0, 0xFFA1),
    range(0x1BCA0, 0x1BCA4),
    range(0x1D173, 0x1D17B),
    range(0xE0000, 0xE1000),
)
_PROCESS = secrets.token_bytes(5)
_COUNTER = itertools.count(secrets.randbits(30))
_COUNTER_MASK = (1 << 40) - 1
_REQUESTS = itertools.count()  # of their own, so that they use up no identifier of the ledger


def folded(name: str) -> str:
    """The form in which two names are compared."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def check_name(name: str, pointer: str, *, forbidden: str = "") -> str:
    """The name as displayed, or Invalid; `forbidden` lists characters with a special meaning."""
    shown = unicodedata.normalize("NFKC", name)
    if not 0 < len(shown) <= NAME_LENGTH_MAX or not folded(name):
        raise Invalid.field(pointer, f"a name has 1 to {NAME_LENGTH_MAX} characters")
    if shown in (".", ".."):
        raise Invalid.field(pointer, "a name is not . or .., which mean other paths in a URL")
    if shown != shown.strip():
        raise Invalid.field(pointer, "a name neither begins nor ends with a space")
    if any(_invisible(letter) for letter in name + shown):
        raise Invalid.field(pointer, "a name has no invisible or unassigned characters")
    if any(letter in forbidden for letter in shown):
        raise Invalid.field(pointer, f"a name must not contain any of {' '.join(forbidden)}")
    return shown


def _invisible(letter: str) -> bool:
    if letter.isascii():
        return not letter.isprintable()
    blank = any(ord(letter) in blanks for blanks in _BLANKS)
    return blank or unicodedata.category(letter) in _INVISIBLE


def new_id(prefix: str) -> str:
    """A unique identifier that sorts by time of creation; not secret.

    It has 48 bits of milliseconds, 40 random bits of the process, and a counter of 40 bits.
    """
    moment = time.time_ns() // 1_000_000
    number = moment.to_bytes(6) + _PROCESS + (next(_COUNTER) & _COUNTER_MASK).to_bytes(5)
    return f"{prefix}_{number.hex()}"


def new_request_id() -> str:
    """A unique identifier of a request: 40 random bits of the process, and a counter."""
    return f"r_{_PROCESS.hex()}{next(_REQUESTS):x}"
