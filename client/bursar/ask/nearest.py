"""Nearest names for what was misspelt."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'income'?`, or nothing."""
    lowered = {text.lower(): text for text in known}
    nearest = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean '{lowered[nearest[0]]}'?" if nearest else ""
