"""The OpenAPI description in two parts: its structure, and its names and sentences.

Schemas are named after classes of the app, and sentences are docstrings. Neither is part of a
request or reply. So the structure numbers schemas by their first use, and the texts are in a
separate file.
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
            return [plain(member, f"{pointer}/{i}") for i, member in enumerate(value)]
        if isinstance(value, str) and value.startswith(REF):
            return REF + numbers.setdefault(value.removeprefix(REF), f"S{len(numbers) + 1}")
        if not isinstance(value, dict):
            return value
        kept = {}
        for name, member in value.items():
            if name in WORDS and isinstance(member, str):
                words[f"{pointer}/{name}"] = member
            else:
                kept[name] = plain(member, f"{pointer}/{name}")
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
