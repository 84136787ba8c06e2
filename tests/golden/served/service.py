"""The files that one run of the history makes."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from tests.golden.openapi import split
from tests.golden.previews import PREFIX, preview, shortly
from tests.golden.served import later, script
from tests.golden.served.history import History, history_in
from tests.golden.text import digest, lines, pretty

ELSEWHERE = ("openapi", "export", "entries")  # steps whose replies have separate files


def files_of_history() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_run(Path(folder).resolve()))


async def _run(folder: Path) -> dict[str, str]:
    async with history_in(folder) as history:
        await script.set_up(history)
        await preview(history)
        await script.ask_everything(history)
        for part in (later.repeat, later.refuse, later.trouble, later.streams, later.change):
            await part(history)
        described = (await history.step("openapi", "GET /openapi.json", who=None)).json()
        exported = (await history.step("export", "GET /v1/ledger/export", who="vera")).text
        structure, words = split(described)
        entries = await _entries(history)
        replies = history.replies
        for name in [each for each in replies if each.startswith(ELSEWHERE)]:
            del replies[name]
            history.words.pop(name, None)
        seen = [name for name in replies if name.startswith(PREFIX)]
        previews = {name.removeprefix(PREFIX): shortly(replies.pop(name)) for name in seen}
        return {
            "entries.txt": entries,
            "export.txt": _without_entries(exported),
            "messages.json": _messages(history.words),
            "openapi.json": pretty(structure) + "\n",
            "openapi_words.json": pretty(words) + "\n",
            "previews.json": lines(previews),
            "responses.json": lines(replies),
        }


async def _entries(history: History) -> str:
    """Every entry's canonical text, with the hash of its chain."""
    entries: list[Any] = []
    page = await history.json("entries", "GET /v1/ledger?limit=200")
    while True:
        entries += page["entries"] if "entries" in page else page["items"]
        if page["next_cursor"] is None:
            return "".join(f"{each['hash']} {each['text']}\n" for each in entries)
        path = f"GET /v1/ledger?limit=200&cursor={page['next_cursor']}"
        page = await history.json(f"entries {len(entries)}", path)


def _without_entries(exported: str) -> str:
    """Lines of an export; entries have a separate file, so only their digest is here."""
    return "".join(
        f"entry, digest {digest(line)}\n" if '"type":"entry"' in line else f"{line}\n"
        for line in exported.splitlines()
    )


def _messages(words: dict[str, dict[str, str]]) -> str:
    """Every sentence once, with the first step that shows it and the number of steps."""
    places: dict[str, list[str]] = {}
    for step, said in words.items():
        for pointer, text in said.items():
            places.setdefault(text, []).append(f"{step} {pointer}")
    return (
        pretty({f"{where[0]}, {len(where)} times": text for text, where in places.items()}) + "\n"
    )
