"""Refusals of the interface in words: each fact once, and fields by the names of a form."""

import re

from app.web.interface import Refused

# Parts of a pointer that a form does not name.
UNNAMED = {"query", "privacy", "all", "any", "value"}
POINTER = re.compile(r"(?<![\w/])/(?:[a-z_]+|\d+)(?:/(?:\w+))*")


def problems_in_words(refused: Refused) -> list[str]:
    """One sentence for each field that is wrong, or else what the interface says."""
    if not refused.fields:
        return [_without_pointers(refused.detail)]
    sentences = [
        f"{field_in_words(str(field['pointer']))}: {_without_pointers(str(field['rule']))}"
        for field in refused.fields
    ]
    return list(dict.fromkeys(sentences))


def field_in_words(pointer: str) -> str:
    """`/privacy/half_width` is Half width, and `/query/where/all/1/value` is Where 2."""
    parts = [part for part in pointer.split("/") if part and part not in UNNAMED]
    named = [str(int(part) + 1) if part.isdecimal() else part for part in parts]
    text = " ".join(named).replace("_", " ") or "question"
    return "SQL" if text == "sql" else text[0].upper() + text[1:]


def _without_pointers(text: str) -> str:
    return POINTER.sub(lambda match: field_in_words(match[0]).lower(), text)
