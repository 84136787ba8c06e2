"""The header `Prefer` (RFC 7240): would a caller rather come back than wait for the answer?

Two preferences are known, `respond-async` and `wait`; others, and values that are none, are
ignored, as the standard wants. Of a preference that is given twice the first counts.
"""

import re
from dataclasses import dataclass

from fastapi import Request

# Nothing is tried in a second way (`*+`, `++`), so that no header takes long to read.
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_WORD = rf'(?:{_NAME}|"(?:[^"\\]|\\.)*+")'
_SPACE = r"[ \t]*+"
_VALUE = rf"{_SPACE}={_SPACE}(?P<value>{_WORD})?"
_PARAMETER = rf"{_SPACE};{_SPACE}(?:{_NAME}(?:{_SPACE}={_SPACE}{_WORD}?)?)?"
_PREFERENCE = re.compile(
    rf"[ \t,]*+(?P<name>{_NAME})(?:{_VALUE})?(?:{_PARAMETER})*+{_SPACE}(?:,|$)"
)
_SECONDS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Preference:
    """`wait_seconds` is None if the caller waits for as long as the service does."""

    wait_seconds: int | None = None
    applied: str = ""  # what of it is honoured, as `Preference-Applied` tells it


NONE = Preference()


def preference(request: Request) -> Preference:
    given = request.headers.getlist("prefer")
    return parse_preference(",".join(given)) if given else NONE


def parse_preference(text: str) -> Preference:
    found = _found(text)
    asynchronous = found.get("respond-async") == ""
    waits = _SECONDS.fullmatch(found.get("wait", ""))
    wait = int(waits[0]) if waits else 0 if asynchronous else None
    applied = ["respond-async"] if asynchronous else []
    if waits:
        applied.append(f"wait={wait}")
    return Preference(wait, ", ".join(applied))


def _found(text: str) -> dict[str, str]:
    """Names and values; nothing of what comes after something that is no preference."""
    found: dict[str, str] = {}
    at = 0
    while one := _PREFERENCE.match(text, at):
        at = one.end()
        found.setdefault(one["name"].lower(), (one["value"] or "").strip('"'))
    return found
