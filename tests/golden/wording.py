"""Removal of sentences from a reply, so that a change of prose changes one file only."""

from typing import Any

WORDS = ("detail", "title", "rule", "composition")


def without_words(body: Any) -> tuple[Any, dict[str, str]]:
    """The reply without its sentences, and the sentences by their pointer."""
    words: dict[str, str] = {}
    return _without(body, "", words), words


def _without(value: Any, pointer: str, words: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_without(member, f"{pointer}/{i}", words) for i, member in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, member in value.items():
        here = f"{pointer}/{name}"
        if isinstance(member, str) and (name in WORDS or here.endswith("expected_error/text")):
            words[here] = member
            kept[name] = ""
        else:
            kept[name] = _without(member, here, words)
    return kept
