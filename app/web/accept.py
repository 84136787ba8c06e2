"""The header `Accept` (RFC 9110, section 12.5.1): does the caller prefer a page to JSON?"""

import re

RANGES_MAX = 50
# Possessive quantifiers (`*+`) forbid backtracking, so that no header takes long to parse.
_RANGE = re.compile(
    r"[ \t]*+(?P<range>[\w!#$&^.+*-]++/[\w!#$&^.+*-]++)[ \t]*+(?P<rest>(?:;[^,;]*+)*+)"
)
_QUALITY = re.compile(r";[ \t]*+[qQ]=(0(?:\.[0-9]{0,3}+)?+|1(?:\.0{0,3}+)?+)[ \t]*+(?=;|\Z)")


def prefers_html(lines: list[str]) -> bool:
    """True if `text/html` has a higher quality than `application/json`; equal is no."""
    qualities: dict[str, float] = {}
    for part in ",".join(lines).split(",")[:RANGES_MAX]:
        listed = _RANGE.fullmatch(part)
        if listed is not None:
            quality = _QUALITY.search(listed["rest"])
            value = 1.0 if quality is None else float(quality[1])
            name = listed["range"].lower()
            qualities[name] = max(value, qualities.get(name, 0.0))
    return _quality(qualities, "text", "html") > _quality(qualities, "application", "json")


def _quality(qualities: dict[str, float], kind: str, form: str) -> float:
    """Quality of one media type: that of the most specific range that includes it."""
    for name in (f"{kind}/{form}", f"{kind}/*", "*/*"):
        if name in qualities:
            return qualities[name]
    return 0.0
