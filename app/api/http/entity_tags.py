"""The headers `If-Match` and `If-None-Match` (RFC 9110, section 13.1), and the ETags of budgets.

A budget's tag is its version in quotes. Other tags are valid, but match no version. A list's tag is
a hash of its text. `If-Match` never matches a weak tag.
"""

import hashlib
import re

from app.errors import Invalid
from app.ledger.account import Account
from app.ledger.precondition import Precondition, Versions

RULE = "* or entity tags in double quotes, like a budget's ETag"
# Possessive quantifiers (`*+`) forbid backtracking, so that no header takes long to parse.
_TAG = re.compile(r'[ \t]*+(?:(?P<weak>W/)?"(?P<text>[!#-~\x80-\xff]*+)")?[ \t]*+(?:,|\Z)')
ANY: list[tuple[bool, str]] = []  # compared by identity: the header `*`
_VERSION = re.compile(r"0|[1-9][0-9]{0,18}")


def etag(account: Account) -> str:
    return f'"{account.version}"'


def etag_of_text(text: str) -> str:
    """A strong tag: it changes with every byte of the reply."""
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def has_seen_text(tag: str, none_match: list[str]) -> bool:
    """True if the caller has this very text; an unreadable header counts as no."""
    try:
        tags = _tags("If-None-Match", none_match)
    except Invalid:
        return False
    return tags is ANY or any(f'"{text}"' == tag for _, text in tags)


def precondition(match: list[str], none_match: list[str]) -> Precondition:
    """Condition in the two headers. Raises Invalid: an unreadable condition must not count as
    met.
    """
    return Precondition(
        _read("If-Match", match, weak=False), _read("If-None-Match", none_match, weak=True)
    )


def has_seen(account: Account, none_match: list[str]) -> bool:
    """True if the caller has this very state; an unreadable header counts as no."""
    try:
        seen = _read("If-None-Match", none_match, weak=True)
    except Invalid:
        return False
    return seen is not None and seen.has(account.version)


def _read(name: str, lines: list[str], *, weak: bool) -> Versions | None:
    if not lines:
        return None
    tags = _tags(name, lines)
    if tags is ANY:
        return Versions(any_version=True)
    return Versions(
        frozenset(
            int(text)
            for is_weak, text in tags
            if (weak or not is_weak) and _VERSION.fullmatch(text)
        )
    )


def _tags(name: str, lines: list[str]) -> list[tuple[bool, str]]:
    """The tags of a header, each with whether it is weak; ANY for `*`. Raises Invalid."""
    text = ",".join(lines)
    if text.strip(" \t") == "*":
        return ANY
    tags, at = [], 0
    while at < len(text):
        tag = _TAG.match(text, at)
        if tag is None:
            raise Invalid.field(name, RULE)
        at = tag.end()
        if tag["text"] is not None:
            tags.append((tag["weak"] is not None, tag["text"]))
    if lines and not tags:
        raise Invalid.field(name, RULE)
    return tags
