"""The nearest known name for a misspelt one, for messages.

The known names come from a card, a schema or the list of settings: all public. A caller's own text
is repeated only if it is near a known name, so that a message never carries arbitrary input.
"""

from collections.abc import Collection
from difflib import SequenceMatcher, get_close_matches

NAME_LENGTH_MAX = 60
WORK_MAX = 250_000  # pairs of characters compared: about 0.1 s at most
LISTED_MAX = 12
CUTOFF = 0.6


def nearest(name: object, known: Collection[str]) -> str | None:
    """The known name most similar to this one, ignoring case; None if none is near.

    Among equally similar names, one that begins with this one is taken.
    """
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= NAME_LENGTH_MAX:
        return None
    if len(known) > WORK_MAX or len(name) * sum(map(len, known)) > WORK_MAX:
        return None
    spellings = {each.casefold(): each for each in known if len(each) <= NAME_LENGTH_MAX}
    written = name.casefold()
    matches = get_close_matches(written, spellings, n=LISTED_MAX, cutoff=CUTOFF)
    if not matches:
        return None
    score = SequenceMatcher(None, matches[0], written).ratio()
    equal = [one for one in matches if SequenceMatcher(None, one, written).ratio() == score]
    completed = next((one for one in equal if one.startswith(written)), matches[0])
    return spellings[completed]


def did_you_mean(name: object, known: Collection[str]) -> str:
    """End of a message: the nearest name, or nothing if none is near."""
    match = nearest(name, known)
    return "" if match is None else f"; did you mean '{match}'?"


def no_such(what: str, name: object, known: Collection[str], otherwise: str) -> str:
    """A message about an unknown name.

    If no known name is near: `otherwise`, followed by the known names if they are few.
    """
    match = nearest(name, known)
    if match is not None:
        return f"no {what} '{name}'; did you mean '{match}'?"
    few = 0 < len(known) <= LISTED_MAX
    return f"{otherwise}: {', '.join(known)}" if few else otherwise
