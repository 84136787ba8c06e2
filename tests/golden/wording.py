"""Takes sentences for people out of a reply, so that a change of prose changes one file only."""

from typing import Any

WORDS = ("detail", "title", "rule", "composition")


def without_words(body: Any) -> tuple[Any, dict[str, str]]:
    """The reply without its sentences, and these by where they stood."""
    words: dict[str, str] = {}
    return _without(body, "", words), words


def _without(value: Any, pointer: str, words: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_without(each, f"{pointer}/{i}", words) for i, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, each in value.items():
        here = f"{pointer}/{name}"
        if isinstance(each, str) and (name in WORDS or here.endswith("expected_error/reason")):
            words[here] = each
            kept[name] = ""
        else:
            kept[name] = _without(each, here, words)
    return kept
