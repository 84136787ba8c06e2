"""The header `Prefer` (RFC 7240): would the caller rather come back than wait for the answer?

Two preferences are known, `respond-async` and `wait`. Others, and invalid values, are ignored, as
the standard requires. If a preference appears twice, the first counts.
"""

import re
from dataclasses import dataclass

from fastapi import Request

# Possessive quantifiers (`*+`, `++`) forbid backtracking, so that no header takes long to parse.
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
    """`wait_seconds` is None if the caller waits as long as the service does."""

    wait_seconds: int | None = None
    applied: str = ""  # the honoured part, for the header `Preference-Applied`


NONE = Preference()


def preference(request: Request) -> Preference:
    lines = request.headers.getlist("prefer")
    return parse_preference(",".join(lines)) if lines else NONE


def parse_preference(text: str) -> Preference:
    values = _found(text)
    asynchronous = values.get("respond-async") == ""
    waits = _SECONDS.fullmatch(values.get("wait", ""))
    wait = int(waits[0]) if waits else 0 if asynchronous else None
    applied = ["respond-async"] if asynchronous else []
    if waits:
        applied.append(f"wait={wait}")
    return Preference(wait, ", ".join(applied))


def _found(text: str) -> dict[str, str]:
    """Values by name, up to the first text that is no preference."""
    values: dict[str, str] = {}
    at = 0
    while one := _PREFERENCE.match(text, at):
        at = one.end()
        values.setdefault(one["name"].lower(), (one["value"] or "").strip('"'))
    return values
