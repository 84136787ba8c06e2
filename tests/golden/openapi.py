"""The interface description in two parts: its structure, and the names and sentences in it.

Schemas are named after classes of the app, and sentences are docstrings. Neither is on the wire, so
the structure numbers schemas by their first use, and what people read is in a file of its own.
"""

from typing import Any

Json = dict[str, Any]
WORDS = ("title", "description", "summary")
REF = "#/components/schemas/"


def split(document: Json) -> tuple[Json, dict[str, str]]:
    schemas = document["components"].pop("schemas")
    numbers: dict[str, str] = {}
    words: dict[str, str] = {}

    def plain(value: Any, pointer: str) -> Any:
        if isinstance(value, list):
            return [plain(each, f"{pointer}/{i}") for i, each in enumerate(value)]
        if isinstance(value, str) and value.startswith(REF):
            return REF + numbers.setdefault(value.removeprefix(REF), f"S{len(numbers) + 1}")
        if not isinstance(value, dict):
            return value
        kept = {}
        for name, each in value.items():
            if name in WORDS and isinstance(each, str):
                words[f"{pointer}/{name}"] = each
            else:
                kept[name] = plain(each, f"{pointer}/{name}")
        return kept

    structure = plain(document, "")
    shown: Json = {}
    while len(shown) < len(numbers):
        for name, number in list(numbers.items()):
            if number not in shown:
                shown[number] = plain(schemas[name], f"/{number}")
    structure["components"]["schemas"] = shown
    unused = sorted(set(schemas) - set(numbers))
    named = {number: name for name, number in numbers.items()}
    return structure, {**named, "unused": " ".join(unused), **words}
