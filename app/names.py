"""Names of people, datasets and columns: one spelling each, and identifiers ordered by time.

Two names that look alike are one name: they are compared after NFKC normalisation and case
folding, and characters that cannot be seen are refused.
"""

import secrets
import time
import unicodedata

from app.errors import Invalid

NAME_LENGTH_MAX = 100
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def folded(name: str) -> str:
    """The form in which two names are compared."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def check_name(name: str, pointer: str, *, forbidden: str = "") -> str:
    """The name as it will be shown, or Invalid; `forbidden` holds characters with a meaning."""
    shown = unicodedata.normalize("NFKC", name)
    if not 0 < len(shown) <= NAME_LENGTH_MAX or not folded(name):
        raise Invalid.field(pointer, f"a name has 1 to {NAME_LENGTH_MAX} characters")
    if shown != shown.strip():
        raise Invalid.field(pointer, "a name neither begins nor ends with a space")
    if any(unicodedata.category(letter) in _INVISIBLE for letter in shown):
        raise Invalid.field(pointer, "a name has no invisible or unassigned characters")
    if any(letter in forbidden for letter in shown):
        raise Invalid.field(pointer, f"a name has none of the characters {' '.join(forbidden)}")
    return shown


def new_id(prefix: str) -> str:
    """An identifier that sorts by time of making: 48 bits of milliseconds, 80 random bits."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(secrets.token_bytes(10))
    letters = []
    for _ in range(26):
        number, digit = divmod(number, 32)
        letters.append(_CROCKFORD[digit])
    return f"{prefix}_{''.join(reversed(letters))}"
