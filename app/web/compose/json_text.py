"""JSON that a person has typed, or that an address carries."""

import json
from typing import Any

DEPTH_MAX = 60  # a filter of 20 levels in a question has 46


def read_json(text: str) -> Any:
    """The value of a text. Raises ValueError for a value that could not be sent as JSON again."""
    try:
        value = json.loads(text)
        if _is_deeper(value, DEPTH_MAX):
            raise ValueError("nested too deeply")
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    members = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return False
    return levels == 0 or any(_is_deeper(member, levels - 1) for member in members)
