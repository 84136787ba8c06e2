"""Answers that may be withheld: as long as any other of their question, to the byte.

Whether something is told is itself released, by the `status`, and nothing else may tell it: an
answer is padded with spaces to the public size of the longest that its question could have. The
size is counted in bytes of the JSON text that is stored and sent.
"""

import json
from typing import Any

ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
NUMBER_SIZE = 32  # of a number's text: those of floats and of 64 bits have 25 characters at most


def text_size(value: object) -> int:
    return len(ENCODER.encode(value).encode())


def padded(members: dict[str, Any], size: int) -> dict[str, Any]:
    """The answer's own members, and so much padding that they have the size together."""
    spaces = size - text_size(members)
    if spaces < 0:
        raise ArithmeticError("an answer longer than the longest it could be")
    return {**members, "padding": " " * spaces}


def padded_answer(value: object, interval: object, size: int, **more: object) -> dict[str, Any]:
    return padded({"status": "answered", "value": value, "interval": interval, **more}, size)


def padded_refusal(size: int, **more: object) -> dict[str, Any]:
    return padded({"status": "withheld", "value": None, "interval": None, **more}, size)
