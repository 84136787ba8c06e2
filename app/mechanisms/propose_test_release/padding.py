"""Padding of answers that may be withheld: all answers to a query have the same size in bytes.

The `status` releases whether the answer is withheld, and nothing else may reveal it. So an answer
is padded with spaces to the public size of the longest possible answer to its query. The size is
counted in bytes of the JSON text that is stored and sent.
"""

from typing import Any

from app.mechanisms.answer_json import ENCODER

NUMBER_SIZE = 32  # bytes of a number's text: floats and 64-bit integers have at most 25 characters


def text_size(value: object) -> int:
    return len(ENCODER.encode(value).encode())


def padded(members: dict[str, Any], size: int) -> dict[str, Any]:
    """The answer's own members, with padding that brings them to `size` bytes."""
    spaces = size - text_size(members)
    if spaces < 0:
        raise ArithmeticError("the answer is longer than the longest possible answer")
    return {**members, "padding": " " * spaces}


def padded_answer(value: object, interval: object, size: int, **more: object) -> dict[str, Any]:
    return padded({"status": "answered", "value": value, "interval": interval, **more}, size)


def padded_withheld(size: int, **more: object) -> dict[str, Any]:
    return padded({"status": "withheld", "value": None, "interval": None, **more}, size)
